# SPDX-License-Identifier: Apache-2.0
"""An emulated WT210: its own settings and output items (IM 760401-01E ch. 14); the rest is `yokogawa`.

Not emulated, and refused with an execution error rather than accepted in silence: scaling factors,
averaging, storing, MATH.
"""

from __future__ import annotations

from typing import Any

from netjoule_meters.adapters.power_analysers.nr_values import ITEM_ORDER
from netjoule_meters.adapters.power_analysers.wt210 import UPDATE_INTERVALS_S
from netjoule_meters.emulated.power_analysers.wt210_measurement import Errors
from netjoule_meters.emulated.power_analysers.yokogawa import EmulatedYokogawa, checked, one
from netjoule_meters.emulated.registry import EmulationOptions
from netjoule_meters.emulated.scpi import Entry, parse_boolean, parse_word

IDENTIFICATION = "YOKOGAWA,760401,0,F2.01"
_PRESETS = {"NORMal": ("V", "A", "W"), "CLEar": (), "INTEGrate": ("V", "A", "W", "WH", "AH", "TIME")}


class EmulatedWT210(EmulatedYokogawa):
    """One instrument. ``seed`` draws its errors; None is an instrument without error."""

    identification = IDENTIFICATION
    intervals_s = UPDATE_INTERVALS_S

    def __init__(self, *, seed: int | None = None, **how: Any) -> None:
        """``how``: see `EmulatedYokogawa`."""
        super().__init__(Errors.drawn(seed), **how)

    def _reset_settings(self) -> None:
        super()._reset_settings()
        self._items = {"V", "A", "W"}

    def _preset_items(self, word: str) -> None:
        self._items = set(_PRESETS[parse_word(word, tuple(_PRESETS))])

    def _values(self) -> str:
        texts = {**self._shown.texts, **self._integrator.texts()}
        return ",".join(texts[item] for item in ITEM_ORDER if item in self._items)

    def _own_commands(self) -> list[Entry]:
        return [
            self._number_entry("SAMPle:RATE", lambda: self._grid.interval_s, self._set_rate, "S"),
            self._switch_entry("SAMPle:HOLD", "hold", locked=False),
            *self._input_commands("[:CONFigure]"),
            self._switch_entry("[:CONFigure]:LFILter", "lfilter"),
            self._switch_entry("[:CONFigure]:FILTer", "filter"),
            self._switch_entry("[:CONFigure]:MHOLd", "mhold", fixed=True),
            self._off_entry("[:CONFigure]:AVERaging[:STATe]"),
            self._off_entry("[:CONFigure]:SCALing[:STATe]"),
            *self._measure_commands(),
        ]

    def _measure_commands(self) -> list[Entry]:
        def item(name: str) -> Entry:
            return Entry(
                f"MEASure[:NORMal]:ITEM:{name}",
                lambda _: str(int(name in self._items)),
                lambda _s, p: (self._items.add if parse_boolean(one(p)) else self._items.discard)(name),
            )

        return [
            Entry("MEASure[:NORMal]:VALue", lambda _: self._values(), bare=True, grouped=False),
            Entry("MEASure[:NORMal]:ITEM:PRESet", put=lambda _s, p: self._preset_items(one(p))),
            *(item(name) for name in ITEM_ORDER),
        ]


def make(options: EmulationOptions) -> EmulatedWT210:
    """An emulated WT210; see `EmulatedModel`."""
    return EmulatedWT210(**checked(options, UPDATE_INTERVALS_S, "WT210"))
