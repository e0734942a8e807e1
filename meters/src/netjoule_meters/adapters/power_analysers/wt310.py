# SPDX-License-Identifier: Apache-2.0
"""Yokogawa WT310 and WT310E over USB-TMC, VXI-11, GPIB or RS-232 (communication manual IM WT310-17EN).

The dialogue is that of `yokogawa`; here are the WT310's own commands, ranges and limits of error. Values come
as ASCII: a number, ``NAN`` for no data, ``INF`` for over-range; the numbers 9.91E+37 and 9.9E+37 are taken
alike. The active ranges are read with each update: after an overload a WT310E leaves a current range below
0.5 A and goes into autorange (IM WT310E-01EN p. 2-7). A hyphen behind a range tells that it was changed
during integration: the count then holds values that were not measured (p. 5-12).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from netjoule_meters.adapters.dialogue_meter import Command
from netjoule_meters.adapters.power_analysers.nr_values import Gap, Value, parse_value
from netjoule_meters.adapters.power_analysers.wt210_accuracy import Conditions
from netjoule_meters.adapters.power_analysers.wt310_accuracy import power_accuracy
from netjoule_meters.adapters.power_analysers.yokogawa import EVENT_FILTERS, WT_SETTINGS, Yokogawa
from netjoule_meters.adapters.provisional_checks import Finding
from netjoule_meters.errors import (
    ConnectionLost,
    GarbageReply,
    NoAnswer,
    ReplyTimeout,
    UsageError,
    WrongInstrument,
)
from netjoule_meters.passport import Accuracy, Identification
from netjoule_meters.settings import Setting

UPDATE_INTERVALS_S = {
    "WT310": (0.1, 0.25, 0.5, 1.0, 2.0, 5.0),
    "WT310E": (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
}
_ITEMS = ("V", "A", "W", "URANGE", "IRANGE")
_ENERGY_ITEMS = ("WH", "TIME")
_ITEM_NAMES = {"V": "U", "A": "I", "W": "P"}
_PROVISIONAL_WORDS = "the words NAN and INF stand for no data and over-range, as in the WT1600 and WT3000"
_PROVISIONAL_FORM = "URANGE and IRANGE are answered with the rated range as a number"
_PROVISIONAL_TIME = "TIME is answered in seconds, as in the WT1600"
_ADVICE_MODE = "select the WT300 command set in the Utility menu of the front panel"


class WT310(Yokogawa):
    """Yokogawa WT310 or WT310E: U, I and P, one reading per display update."""

    name: ClassVar[str] = "wt310"
    model: ClassVar[str] = "WT310"
    interfaces: ClassVar[tuple[str, ...]] = ("usbtmc", "visa", "serial", "prologix", "tcp")
    provisional: ClassVar[tuple[str, ...]] = (
        _PROVISIONAL_WORDS,
        _PROVISIONAL_FORM,
        _PROVISIONAL_TIME,
    )
    advice_no_answer: ClassVar[str] = (
        "check that it is on and that the interface is the one selected in its Utility menu "
        f"(USB; the address on Ethernet or GPIB; baud rate and 8N1 on RS-232), and {_ADVICE_MODE}"
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("model", "Which of the two it is; they differ in accuracy.", "WT310", ("WT310", "WT310E")),
        Setting("update_interval_s", "Display update interval.", 0.25, UPDATE_INTERVALS_S["WT310E"]),
        Setting("mode", "Measuring mode.", "RMS", ("RMS", "VMEAN", "DC")),
        Setting(
            "line_filter",
            "Line filter; adds 0.3 % of the reading (WT310E; WT310: unknown).",
            False,
            (False, True),
        ),
        *WT_SETTINGS,
    )
    set_up_commands: ClassVar[tuple[Command, ...]] = (
        Command(":SYST:COMM:COMM WT300"),
        Command(":HOLD OFF"),
        Command(":RATE {update_interval_s:g}", ":RATE?", "update_interval_s"),
        Command(":INP:CFAC {crest_factor}", ":INP:CFAC?", "crest_factor"),
        Command(":INP:MODE {mode}"),
        Command(":INP:VOLT:AUTO OFF"),
        Command(":INP:VOLT:RANG {voltage_range_v:g}", ":INP:VOLT:RANG?", "voltage_range_v"),
        Command(":INP:CURR:AUTO OFF"),
        Command(":INP:CURR:RANG {current_range_a:g}", ":INP:CURR:RANG?", "current_range_a"),
        Command(":INP:FILT:LINE {line_filter:d}", ":INP:FILT:LINE?", "line_filter"),
        Command(":INP:FILT:FREQ {frequency_filter:d}"),
        Command(":INP:SCAL:STAT OFF"),
        Command(":MEAS:AVER:STAT OFF"),
        Command(":NUM:FORM ASCII"),
        *(
            Command(f":NUM:NORM:ITEM{number} {_ITEM_NAMES.get(item, item)},1")
            for number, item in enumerate((*_ITEMS, *_ENERGY_ITEMS), start=1)
        ),
        Command(f":NUM:NORM:NUM {len(_ITEMS)}"),
        *EVENT_FILTERS,
    )
    place: ClassVar[str] = "address"
    advice_mode: ClassVar[str] = _ADVICE_MODE
    advice_garbage: ClassVar[str] = (
        "set the baud rate and frame of the instrument's Utility menu in the configuration, and "
        f"{_ADVICE_MODE}"
    )
    values_query: ClassVar[str] = ":NUM:NORM:VAL?"
    range_prefix: ClassVar[str] = ":INP"
    _items: tuple[str, ...] = _ITEMS
    _ranging = _left_range = False

    def _check_settings(self) -> None:
        if self.update_interval_s not in UPDATE_INTERVALS_S[self.settings["model"]]:
            raise UsageError(
                f"wt310: update_interval_s {self.update_interval_s:g} is for the WT310E; "
                "set model=WT310E or choose 5 s at most"
            )

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Limits of error by the specifications of the model that the settings name."""
        conditions = Conditions(**self._conditions())
        return power_accuracy(self.settings["model"], conditions, calibration_age_days)

    def autorange(self, on: bool) -> None:
        """Let it choose its ranges, or return to those of the settings."""
        super().autorange(on)
        self._ranging = on

    def confirm(self, updates: int = 5) -> list[Finding]:
        """What ``updates`` readings say about the provisional statements; call after ``open``.

        Raises:
            NoAnswer: when the instrument stops answering.
        """
        try:
            texts = [self.query(self.values_query) for _ in range(updates)]
        except (ConnectionLost, GarbageReply, ReplyTimeout) as error:
            raise NoAnswer(
                f"the instrument on {self._transport.resource} gave no values ({error}): "
                f"{self.advice_no_answer}"
            ) from error
        words = sorted({field for text in texts for field in text.split(",") if field.strip(" +-").isalpha()})
        known = {word.strip(" +-").upper() for word in words} <= {"NAN", "INF"}
        ranges = [",".join(text.split(",")[3:5]) for text in texts]
        held = all(self._shows_set_ranges(text) for text in ranges)
        return [
            Finding(
                _PROVISIONAL_WORDS, known if words else None, f"words among the values: {words or 'none'}"
            ),
            Finding(_PROVISIONAL_FORM, held, f"ranges shown as {ranges[-1]}"),
            Finding(_PROVISIONAL_TIME, None, "the integrator is not started to look"),
        ]

    def _shows_set_ranges(self, text: str) -> bool:
        try:
            shown = [float(field) for field in text.split(",")]
        except ValueError:
            return False
        wanted = (self.settings["voltage_range_v"], self.settings["current_range_a"])
        return len(shown) == 2 and all(
            math.isclose(value, limit, rel_tol=1e-3) for value, limit in zip(shown, wanted, strict=True)
        )

    def _is_this(self, model: str) -> bool:
        return model.upper() in UPDATE_INTERVALS_S

    def _identify(self) -> Identification:
        found = super()._identify()
        if found.model.upper() != self.settings["model"]:
            raise WrongInstrument(
                f"the instrument on {self._transport.resource} is a {found.model} and not a "
                f"{self.settings['model']}, whose accuracy is another: set model={found.model.upper()}"
            )
        return replace(found, model=found.model.upper())

    def _set_up(self) -> None:
        self._items, self._ranging, self._left_range = _ITEMS, False, False
        super()._set_up()

    def _show_energy(self) -> None:
        items = (*_ITEMS, *_ENERGY_ITEMS)
        self.command(f":NUM:NORM:NUM {len(items)}")
        self._items = items

    def _parse(self, reply: str) -> dict[str, Value]:
        fields = reply.split(",")
        if len(fields) != len(self._items):
            raise GarbageReply(f"{reply[:80]!r} has {len(fields)} fields instead of {len(self._items)}")
        texts = dict(zip(self._items, fields, strict=True))
        range_texts = (texts.pop("URANGE"), texts.pop("IRANGE"))
        values: dict[str, Value] = {item: parse_value(text) for item, text in texts.items()}
        return self._with_ranges(values, range_texts)

    def _with_ranges(self, values: dict[str, Value], range_texts: tuple[str, str]) -> dict[str, Value]:
        """Values that the ranges of this update allow to be used."""
        if self._ranging:
            return values
        if any(text.strip().endswith("-") for text in range_texts):
            values = {item: value for item, value in values.items() if item != "WH"}
        limits = (self.settings["voltage_range_v"], self.settings["current_range_a"])
        shown = [parse_value(text.strip().removesuffix("-")) for text in range_texts]
        left = any(
            isinstance(value, float) and abs(value - limit) > 1e-3 * limit
            for value, limit in zip(shown, limits, strict=True)
        )
        if left and not self._left_range:
            self._notify(f"it left its range ({', '.join(range_texts)}): readings are flagged as over-range")
        self._left_range = left
        return {**values, **dict.fromkeys(("V", "A", "W"), Gap.OVERRANGE)} if left else values
