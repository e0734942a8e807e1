# SPDX-License-Identifier: Apache-2.0
"""An emulated WT310 or WT310E: its own settings and numeric items (communication manual IM WT310-17EN).

Values are ASCII: ``NAN`` stands for no data and ``INF`` for over-range. When a WT310E changes a range while
it integrates, it counts the first value after the change for the time of the change, too, and marks the
range with a hyphen from then on (IM WT310E-01EN p. 5-12). The rest is `yokogawa`. Not emulated, and refused:
scaling factors, averaging, MATH, binary values, the WT200 command set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from netjoule_meters.adapters.power_analysers.nr_values import NO_DATA_TEXT, OVERRANGE_TEXT
from netjoule_meters.adapters.power_analysers.wt210_accuracy import Conditions
from netjoule_meters.adapters.power_analysers.wt310 import UPDATE_INTERVALS_S
from netjoule_meters.adapters.power_analysers.wt310_accuracy import power_accuracy
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_analysers.wt210_measurement import Errors
from netjoule_meters.emulated.power_analysers.yokogawa import EmulatedYokogawa, checked, one
from netjoule_meters.emulated.quantisation import nr3_significant
from netjoule_meters.emulated.registry import EmulationOptions
from netjoule_meters.emulated.scpi import Entry, ScpiError, parse_number, parse_word, pattern_nodes

_FUNCTIONS = {
    "U": "V",
    "I": "A",
    "P": "W",
    "S": "VA",
    "Q": "VAR",
    "LAMBda": "PF",
    "PHI": "DEGR",
    "FU": "VHZ",
    "FI": "AHZ",
    "UPPeak": "VPK",
    "IPPeak": "APK",
    **{name: name for name in ("WH", "WHP", "WHM", "AH", "AHP", "AHM", "TIME", "MATH")},
    "URANge": "URANge",
    "IRANge": "IRANge",
}
_WORDS = {NO_DATA_TEXT: "NAN", OVERRANGE_TEXT: "INF"}
_MOST_ITEMS = 255
_OVERLOAD_RANGE_A, _LEAST_STURDY_A = 1.0, 0.5


class EmulatedWT310(EmulatedYokogawa):
    """One instrument. ``seed`` draws its errors for this ``supply``; None is an instrument without error."""

    def __init__(
        self, *, model: str = "WT310", seed: int | None = None, supply: Supply | None = None, **how: Any
    ) -> None:
        """``how``: see `EmulatedYokogawa`."""
        self._model = model
        self.identification = f"YOKOGAWA,{model},EMULATED,F1.03"
        self.intervals_s = UPDATE_INTERVALS_S[model]
        self._missed = 0
        self._marked = False
        super().__init__(_drawn(model, seed, supply or Supply()), supply=supply, **how)

    def _reset_settings(self) -> None:
        super()._reset_settings()
        self._items, self._count = ["U", "I", "P"], 3

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """Beside ``range_change``: ``overload``, after which a range below 0.5 A is 1 A and automatic."""
        if name != "overload":
            return super().take_fault(name, request, now_s)
        ratio = 3 / self._crest_factor
        if self._current_range_a < _LEAST_STURDY_A * ratio:
            self._current_range_a = _OVERLOAD_RANGE_A * ratio
            self._on["current_auto"] = True
        return True

    # -- values --------------------------------------------------------------------------------------

    def _integrate(self, current_a: float | None) -> None:
        if self._model != "WT310E" or not self._integrator.running:
            self._missed, self._marked = 0, False
            super()._integrate(current_a)
        elif self._hole > 0:
            self._missed, self._marked = self._missed + 1, True
        else:
            for _ in range(1 + self._missed):
                super()._integrate(current_a)
            self._missed = 0

    def _text(self, function: str) -> str:
        if function in ("URANge", "IRANge"):
            active = self._active_ranges()
            mark = "-" if self._marked else ""
            return nr3_significant(active.voltage_v if function == "URANge" else active.current_a) + mark
        if function == "TIME":
            elapsed_s = self._integrator.elapsed_s
            return "NAN" if elapsed_s is None else str(int(elapsed_s + 1e-6))
        text = {**self._shown.texts, **self._integrator.texts()}[_FUNCTIONS[function]].strip()
        return _WORDS.get(text, text)

    def _values(self, numbers: list[int]) -> str:
        shown = self._items[: self._count]
        if not numbers:
            return ",".join(self._text(function) for function in shown)
        if len(numbers) != 1 or not 1 <= numbers[0] <= len(shown):
            raise ScpiError(222)
        return self._text(shown[numbers[0] - 1])

    def _item_text(self, suffixes: list[int]) -> str:
        return f"{self._word(self._items[self._item_index(suffixes)])},1"

    def _item_index(self, suffixes: list[int]) -> int:
        if not 1 <= suffixes[0] <= _MOST_ITEMS:
            raise ScpiError(114)
        self._items += ["NONE"] * (suffixes[0] - len(self._items))
        return suffixes[0] - 1

    def _set_item(self, suffixes: list[int], parameters: list[str]) -> None:
        if len(parameters) not in (1, 2):
            raise ScpiError(108 if parameters else 109)
        if len(parameters) == 2 and parse_number(parameters[1]) != 1:
            raise ScpiError(222)  # it has one element
        self._items[self._item_index(suffixes)] = parse_word(parameters[0], tuple(_FUNCTIONS))

    def _set_count(self, value: float) -> None:
        if not 1 <= value <= _MOST_ITEMS:
            raise ScpiError(222)
        self._count = round(value)

    # -- commands ------------------------------------------------------------------------------------

    def _own_commands(self) -> list[Entry]:
        return [
            self._fixed_entry("SYSTem:COMMunicate:COMMand", ("WT300", "WT200")),
            self._number_entry("[:SAMPle]:RATE", lambda: self._grid.interval_s, self._set_rate, "S"),
            self._switch_entry("[:SAMPle]:HOLD", "hold", locked=False),
            *self._input_commands("[:INPut]"),
            self._switch_entry("[:INPut]:FILTer:LINE", "lfilter"),
            self._switch_entry("[:INPut]:FILTer:FREQuency", "filter"),
            self._off_entry("[:INPut]:SCALing[:STATe]"),
            self._off_entry("MEASure:AVERaging[:STATe]"),
            self._switch_entry("MEASure:MHOLd", "mhold", fixed=True),
            Entry("INTEGrate:STATe", lambda _: self._word(self._integrator.state)),
            *self._numeric_commands(),
        ]

    def _numeric_commands(self) -> list[Entry]:
        return [
            self._fixed_entry("NUMeric:FORMat", ("ASCii", "FLOat")),
            Entry(
                "NUMeric:NORMal:NUMber",
                lambda _: str(self._count),
                lambda _s, p: self._set_count(parse_number(one(p))),
            ),
            Entry("NUMeric:NORMal:ITEM<n>", self._item_text, self._set_item),
            Entry("NUMeric:NORMal:VALue", self._values, bare=True, grouped=False, asks_number=True),
        ]

    def _fixed_entry(self, pattern: str, words: tuple[str, ...]) -> Entry:
        """A choice of which only the first is emulated."""

        def change(_suffixes: list[int], parameters: list[str]) -> None:
            if _word_of(one(parameters), words) != words[0]:
                raise ScpiError(221)

        return Entry(pattern, lambda _: self._word(words[0]), change)

    def _word(self, word: str) -> str:
        return word if word[-1].isdigit() or word == "NONE" else super()._word(word)


def _word_of(text: str, words: tuple[str, ...]) -> str:
    """Like ``parse_word`` for words that may end in digits (WT300)."""
    for word in words:
        if text.strip().upper() in (word.upper(), pattern_nodes(word)[0].short):
            return word
    raise ScpiError(141)


def _drawn(model: str, seed: int | None, supply: Supply) -> Errors:
    """Errors within the limits at this supply, or at 50 Hz and power factor 1 where there are none."""
    here = Conditions(supply.frequency_hz, supply.power_factor, 3, False, 0.0, 0.0)
    limits = power_accuracy(model, here, 365.0)
    if limits.reading_ratio is None:
        limits = power_accuracy(model, replace(here, frequency_hz=50.0, power_factor=1.0), 365.0)
    assert limits.reading_ratio is not None and limits.range_ratio is not None, "the table has 50 Hz"
    return Errors.drawn(seed, limits.reading_ratio, limits.range_ratio)


def make(options: EmulationOptions) -> EmulatedWT310:
    """An emulated WT310 (variant "" or wt310) or WT310E (variant wt310e); see `EmulatedModel`."""
    model = (options.variant or "WT310").upper()
    return EmulatedWT310(model=model, **checked(options, UPDATE_INTERVALS_S[model], model))
