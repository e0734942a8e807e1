# SPDX-License-Identifier: Apache-2.0
"""Yokogawa WT210 (760401) in its 488.2 mode, over RS-232 (user's manual IM 760401-01E).

Updates are read as the manual synchronises them: event 1 of the extended event register is the falling
edge of "data is being updated"; ``COMMUNICATE:WAIT 1`` holds the dialogue until then. The register is read
before the values, so that the values are asked for at a known moment, and once more with them, so that an
update in between is noticed. It also tells whether a peak was cut off. Ranges are fixed: a range change
leaves a hole in the data, so autorange is not offered.
"""

from __future__ import annotations

import re
from typing import ClassVar

from netjoule_meters.adapters.base import Command, Meter
from netjoule_meters.adapters.nr_values import Gap, Value, parse_values
from netjoule_meters.adapters.settings import Setting
from netjoule_meters.adapters.wt210_accuracy import Conditions, power_accuracy
from netjoule_meters.errors import GarbageReply, ReplyTimeout, SettingRefused, WrongInstrument, WrongMode
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange
from netjoule_meters.reading import Flag, Reading

VOLTAGE_RANGES_V = (15.0, 30.0, 60.0, 150.0, 300.0, 600.0)
CURRENT_RANGES_A = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Ranges at crest factor 3; at crest factor 6 each is half of it."""
UPDATE_INTERVALS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
ITEMS = ("V", "A", "W")

# Bits of the extended event register that the set-up lets through.
_UPDATED, _OVERRANGE, _PEAK_VOLTAGE, _PEAK_CURRENT = 1 << 0, 1 << 6, 1 << 7, 1 << 8
_TOO_LARGE = _OVERRANGE | _PEAK_VOLTAGE | _PEAK_CURRENT

_ADVICE_MODE = "select communication mode 488.2 with the Local menu of the front panel (manual p. 11-5)"
_ERRORS = {
    "813": "an integration is running; reset it on the front panel or with :INTEG:RES",
    "390": "characters were lost on the serial line; lower the baud rate or switch the handshake on",
}


def _halves(ranges: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sorted({*ranges, *(value / 2 for value in ranges)}))


class WT210(Meter):
    """Yokogawa WT210: V, A and W, one reading per display update."""

    name: ClassVar[str] = "wt210"
    make: ClassVar[str] = "Yokogawa"
    model: ClassVar[str] = "WT210"
    advice_no_answer: ClassVar[str] = (
        "check that it is on, the null-modem cable, baud rate, 8N1, no handshake, terminator CR+LF, "
        f"and {_ADVICE_MODE}"
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("update_interval_s", "Display update interval.", 0.25, UPDATE_INTERVALS_S),
        Setting("voltage_range_v", "Fixed voltage range.", choices=_halves(VOLTAGE_RANGES_V)),
        Setting("current_range_a", "Fixed current range.", choices=_halves(CURRENT_RANGES_A)),
        Setting("mode", "Measuring mode.", "RMS", ("RMS", "VMEAN", "DC")),
        Setting("crest_factor", "Crest factor; 6 halves the ranges and doubles the range error.", 3, (3, 6)),
        Setting("line_filter", "Line filter; adds 0.3 % of the reading.", False, (False, True)),
        Setting("frequency_filter", "Filter of the frequency measurement.", True, (False, True)),
        Setting("line_frequency_hz", "Frequency of the supply, for the accuracy table.", 50.0),
        Setting("power_factor", "Power factor of the load, for the accuracy table.", 1.0),
        Setting("lag_s", "Lag of this instrument; None stands for one update interval.", None),
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
        Command(":STAT:FILT1 FALL"),
        Command(":STAT:FILT7 RISE"),
        Command(":STAT:FILT8 RISE"),
        Command(":STAT:FILT9 RISE"),
    )
    _armed = False
    _watch_peaks = True

    @property
    def measuring_range(self) -> MeasuringRange:
        """The fixed range."""
        voltage_v, current_a = self.settings["voltage_range_v"], self.settings["current_range_a"]
        return MeasuringRange(voltage_v, current_a, round(voltage_v * current_a, 9))

    @property
    def lag_s(self) -> float:
        """One update interval unless the setting knows better: the display shows the interval before."""
        lag_s = self.settings["lag_s"]
        return self.update_interval_s if lag_s is None else float(lag_s)

    def accuracy(self, calibration_age_days: float | None) -> Accuracy:
        """Limits of error by the manual's table."""
        if calibration_age_days is None:
            return Accuracy(None, None, "unknown: time since calibration is not known")
        conditions = Conditions(
            frequency_hz=0.0 if self.settings["mode"] == "DC" else self.settings["line_frequency_hz"],
            power_factor=self.settings["power_factor"],
            crest_factor=self.settings["crest_factor"],
            line_filter=self.settings["line_filter"],
            voltage_range_v=self.settings["voltage_range_v"],
            current_range_a=self.settings["current_range_a"],
        )
        return power_accuracy(conditions, calibration_age_days)

    def _begin(self) -> None:
        """End a line that was cut off, clear queues and registers, ask for bare values."""
        self._armed, self._watch_peaks = False, True
        self.write("")
        for command in ("*CLS", ":STAT:QMES ON", ":COMM:REM ON", ":COMM:HEAD OFF"):
            self.write(command)

    def _identify(self) -> Identification:
        try:
            text = self.query("*IDN?", attempts=3)
        except GarbageReply as error:
            baud = "; unreadable bytes also come from another baud rate or frame than the instrument's"
            raise WrongMode(self._not_488_2(str(error)) + baud) from error
        fields = [field.strip() for field in text.split(",")]
        if len(fields) == 1 and text.isdecimal():  # the answer to a wait that another program left behind
            text = self.read_reply()
            fields = [field.strip() for field in text.split(",")]
        if len(fields) != 4:
            raise WrongMode(self._not_488_2(f"it answers {text[:60]!r} to *IDN?"))
        make, model, serial, firmware = fields
        # The text names the product code, not "WT210"; only what clearly is another instrument is refused.
        other_wt = re.match(r"WT(?!210)\d+", model, re.IGNORECASE) or re.match(r"7\d{5}", model)
        if "YOKOGAWA" not in make.upper() or (other_wt and model != "760401"):
            raise WrongInstrument(
                f"another instrument answers on {self._transport.resource}: {text!r}, not a Yokogawa WT210; "
                "name the right port or the adapter for this instrument"
            )
        told_serial = serial if serial not in ("", "0") else None
        return Identification(text, self.make, self.model, told_serial, firmware or None)

    def _not_488_2(self, what: str) -> str:
        return f"the instrument on {self._transport.resource} does not speak 488.2 ({what}): {_ADVICE_MODE}"

    def _check_errors(self, command: str) -> None:
        code, _, text = self.query(":STAT:ERR?").partition(",")
        if code.strip() == "0":
            return
        advice = _ERRORS.get(code.strip(), "check the setting against the instrument's manual")
        raise SettingRefused(
            f"the WT210 on {self._transport.resource} refused '{command}' with error {code.strip()} {text}: "
            f"{advice}"
        )

    def _read_update(self) -> Reading:
        events = self._await_update()
        try:
            reply, t_ns = self.timed_query(":MEAS:VAL?;:STAT:EESR?")
            values, _, later = reply.partition(";")
            # An update between the two questions belongs to these values: its event is taken with them,
            # so that no update is ever read twice.
            events |= self._events(later)
            events |= self._lasting_peaks(events)
        except ReplyTimeout:
            self._resynchronise = True
            raise
        return _reading(t_ns, parse_values(values, ITEMS), events)

    def _lasting_peaks(self, events: int) -> int:
        """Over-range conditions that go on: they make an event only when they begin."""
        if not (self._watch_peaks or events & _TOO_LARGE):
            return 0
        conditions = self._events(self.query(":STAT:COND?")) & _TOO_LARGE
        self._watch_peaks = conditions != 0
        return conditions

    def _await_update(self) -> int:
        """Wait for the next update; the event bits since the last one."""
        if not self._armed:
            self.write(":COMM:WAIT 1")
            self.write(":STAT:EESR?")
            self._armed = True
        reply = self.read_reply(self.gap_s + self.reply_timeout_s * 0.1)
        self._armed = False
        return self._events(reply)

    def _events(self, reply: str) -> int:
        if not (reply.isascii() and reply.isdecimal()):
            raise GarbageReply(f"{reply[:40]!r} is not an event register")
        return int(reply)


def _reading(t_ns: int, values: dict[str, Value], events: int) -> Reading:
    """Numbers where there are any, and the worst flag of the three."""
    numbers = {item: value if isinstance(value, float) else None for item, value in values.items()}
    if Gap.OVERRANGE in values.values():
        flag = Flag.OVERRANGE
    elif Gap.NO_DATA in values.values():
        flag = Flag.NO_DATA
    elif events & _OVERRANGE:
        flag = Flag.OVERRANGE
    elif events & _TOO_LARGE:
        flag = Flag.PEAK_OVER
    else:
        flag = Flag.GOOD if events & _UPDATED else Flag.DUPLICATE
    return Reading(t_ns, numbers["W"], numbers["V"], numbers["A"], flag)
