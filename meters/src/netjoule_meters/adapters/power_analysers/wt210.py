# SPDX-License-Identifier: Apache-2.0
"""Yokogawa WT210 (760401) in its 488.2 mode, over RS-232 or GPIB (user's manual IM 760401-01E).

The dialogue is that of `yokogawa`; here are the WT210's own commands, ranges and limits of error. On GPIB it
sits behind a Prologix controller or any interface that PyVISA opens; there, too, it must be in mode 488.2.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from netjoule_meters.adapters.dialogue_meter import Command
from netjoule_meters.adapters.power_analysers.nr_values import Value, parse_values
from netjoule_meters.adapters.power_analysers.wt210_accuracy import Conditions, power_accuracy
from netjoule_meters.adapters.power_analysers.yokogawa import EVENT_FILTERS, WT_SETTINGS, Yokogawa
from netjoule_meters.passport import Accuracy, Identification
from netjoule_meters.settings import Setting

UPDATE_INTERVALS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_ITEMS = ("V", "A", "W")
_ENERGY_ITEMS = ("WH", "TIME")

_ADVICE_MODE = "select communication mode 488.2 with the Local menu of the front panel (manual p. 11-5)"


class WT210(Yokogawa):
    """Yokogawa WT210: V, A and W, one reading per display update."""

    name: ClassVar[str] = "wt210"
    model: ClassVar[str] = "WT210"
    interfaces: ClassVar[tuple[str, ...]] = ("serial", "prologix", "visa", "tcp")
    advice_no_answer: ClassVar[str] = (
        "check that it is on, the null-modem cable, baud rate, 8N1, no handshake, terminator CR+LF "
        f"(on GPIB the cable and the address), and {_ADVICE_MODE}"
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("update_interval_s", "Display update interval.", 0.25, UPDATE_INTERVALS_S),
        Setting("mode", "Measuring mode.", "RMS", ("RMS", "VMEAN", "DC")),
        Setting("line_filter", "Line filter; adds 0.3 % of the reading.", False, (False, True)),
        *WT_SETTINGS,
    )
    set_up_commands: ClassVar[tuple[Command, ...]] = (
        Command(":SAMP:HOLD OFF"),
        Command(":SAMP:RATE {update_interval_s:g}", ":SAMP:RATE?", "update_interval_s"),
        Command(":CONF:CFAC {crest_factor}", ":CONF:CFAC?", "crest_factor"),
        Command(":CONF:MODE {mode}"),
        Command(":CONF:VOLT:AUTO OFF"),
        Command(":CONF:VOLT:RANG {voltage_range_v:g}", ":CONF:VOLT:RANG?", "voltage_range_v"),
        Command(":CONF:CURR:AUTO OFF"),
        Command(":CONF:CURR:RANG {current_range_a:g}", ":CONF:CURR:RANG?", "current_range_a"),
        Command(":CONF:LFILT {line_filter:d}", ":CONF:LFILT?", "line_filter"),
        Command(":CONF:FILT {frequency_filter:d}"),
        Command(":CONF:AVER:STAT OFF"),
        Command(":SCAL:STAT OFF"),
        Command(":MEAS:ITEM:PRES NORM"),
        *EVENT_FILTERS,
    )
    advice_mode: ClassVar[str] = _ADVICE_MODE
    advice_garbage: ClassVar[str] = (
        f"{_ADVICE_MODE}; unreadable bytes also come from another baud rate or frame than the instrument's"
    )
    values_query: ClassVar[str] = ":MEAS:VAL?"
    range_prefix: ClassVar[str] = ":CONF"
    _items: tuple[str, ...] = _ITEMS

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Limits of error by the manual's table."""
        return power_accuracy(Conditions(**self._conditions()), calibration_age_days)

    def _is_this(self, model: str) -> bool:
        """The text names the product code; only what clearly is another instrument is refused."""
        other_wt = re.match(r"WT(?!210)\d+", model, re.IGNORECASE) or re.match(r"7\d{5}", model)
        return not other_wt or model == "760401"

    def _identify(self) -> Identification:
        """Its text has the product code for the model, and 0 where there is no serial number."""
        found = super()._identify()
        return replace(found, model=self.model, serial=None if found.serial == "0" else found.serial)

    def _set_up(self) -> None:
        self._items = _ITEMS
        super()._set_up()

    def _show_energy(self) -> None:
        for item in _ENERGY_ITEMS:
            self.command(f":MEAS:ITEM:{item} ON")
        self._items = (*_ITEMS, *_ENERGY_ITEMS)

    def _parse(self, reply: str) -> dict[str, Value]:
        return parse_values(reply, self._items)
