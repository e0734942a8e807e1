# SPDX-License-Identifier: Apache-2.0
"""Hameg HM8115-2, an analog multiplier behind a serial line (its manual's list of commands, p. 18).

In its continuous mode (``MA1``) the instrument sends one line per measuring cycle, so that each value is
read once; the stamp is the arrival of a line's first byte, because the instrument sends byte by byte. Over
how long it averages is not stated, so a reading counts as a spot value. Two things are known from its
sibling IeS ISW8001 only: XON and XOFF stand inside the data, and the first line after a range change shows
about 180 A. Hence ranges are fixed, and the two lines that follow a set-up are not read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

from netjoule_meters.adapters.base import Semantics
from netjoule_meters.adapters.dialogue_meter import LineMeter
from netjoule_meters.adapters.power_analysers.hm8115_messages import (
    CURRENT_RANGES_A,
    FLOW_CONTROL,
    VOLTAGE_RANGES_V,
    Measurement,
    Status,
    digit_w,
    parse_measurement,
    parse_status,
)
from netjoule_meters.adapters.provisional_checks import Finding, sample_updates, spacing_s
from netjoule_meters.errors import (
    DialogueError,
    GarbageReply,
    ReplyTimeout,
    SettingRefused,
    WrongInstrument,
)
from netjoule_meters.passport import Accuracy, AccuracyTerm, Identification, MeasuringRange
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting
from netjoule_meters.transports.base import StampedTransport

CYCLE_S = 0.47
"""Time between two values, measured on the ISW8001."""
READING_RATIO, DIGITS = 0.008, 10
"""Limits of error of active power: part of the reading, and digits of the range."""
_IMPOSSIBLE_A = 20.0
"""The greatest range is 16 A; the line after a range change shows about 180 A."""
_LINES_AFTER_RANGE_CHANGE = 2
_SWITCHING_S = 0.2
_STATUS_ATTEMPTS = 3
_YEAR_DAYS = 366.0
_LONG_AGO_NS = -(10**12)
_WHOLE_CYCLE = 0.5
"""An answer sooner than this part of a cycle after the last is an old value; late ones leave more room."""

_PROVISIONAL_CYCLE = f"a new value comes every {CYCLE_S} s (seen on the IeS ISW8001)"
_PROVISIONAL_FORM = "a line is one voltage, one current and one measured value (examples of the manual)"
_PROVISIONAL_FLOW = "XON and XOFF stand inside the data (seen on the IeS ISW8001)"
_PROVISIONAL_RANGE = "SET:U and SET:I switch the automatic choice of that range off"
_PROVISIONAL_LIMITS = f"limits of error of {100 * READING_RATIO:g} % of the reading and {DIGITS} digits"
_PROVISIONAL_DIGIT = "weight of a digit of 1 mW on 8 W, 10 mW to 80 W, 100 mW to 800 W, 1 W above"
_PROVISIONAL_LAG = "a value stands for the measuring cycle before it"


class HM8115(LineMeter):
    """Hameg HM8115-2: active power, one reading per measuring cycle."""

    name: ClassVar[str] = "hm8115"
    make: ClassVar[str] = "Hameg"
    lag_updates: ClassVar[float] = 1
    model: ClassVar[str] = "HM8115-2"
    interface_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"handshake": "xon_xoff", "line_end": "cr"}
    )
    semantics: ClassVar[Semantics] = Semantics.INSTANTANEOUS
    provisional: ClassVar[tuple[str, ...]] = (
        _PROVISIONAL_CYCLE,
        _PROVISIONAL_FORM,
        _PROVISIONAL_FLOW,
        _PROVISIONAL_RANGE,
        _PROVISIONAL_LIMITS,
        _PROVISIONAL_DIGIT,
        _PROVISIONAL_LAG,
    )
    advice_no_answer: ClassVar[str] = (
        "check that it is on, the cable, the port, 8N1 with XON/XOFF, and that baud_rate is the one "
        "its display shows when it is switched on (9600 or 1200)"
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("voltage_range_v", "Fixed voltage range.", choices=tuple(VOLTAGE_RANGES_V.values())),
        Setting("current_range_a", "Fixed current range.", choices=tuple(CURRENT_RANGES_A.values())),
        Setting(
            "readout",
            "How values are taken: the instrument sends each, or each is asked for.",
            "continuous",
            ("continuous", "query"),
        ),
        Setting("update_interval_s", "Length of its measuring cycle; it cannot be set.", CYCLE_S),
        Setting("lag_s", "Lag of this instrument; None stands for one measuring cycle.", None),
    )

    meaningless: ClassVar[bytes] = FLOW_CONTROL
    _transport: StampedTransport
    _streaming = _automatic = False
    _unsettled_lines = 0
    _last_value_ns = _LONG_AGO_NS

    # -- what it is ------------------------------------------------------------------------------------

    @property
    def measuring_range(self) -> MeasuringRange:
        """The fixed range."""
        voltage_v, current_a = self.settings["voltage_range_v"], self.settings["current_range_a"]
        return MeasuringRange(voltage_v, current_a, round(voltage_v * current_a, 9))

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Limits of error; provisional, and for 12 months after calibration."""
        if not 0 <= calibration_age_days <= _YEAR_DAYS:
            return Accuracy(None, None, "unknown: not calibrated within the last 12 months")
        weight_w, power_w = self.resolution, self.measuring_range.power_w
        assert power_w is not None
        terms = (
            AccuracyTerm("reading", READING_RATIO, 0.0),
            AccuracyTerm("digits", 0.0, round(DIGITS * weight_w / power_w, 9)),
        )
        return Accuracy.of_terms(
            terms,
            f"provisional, no data sheet at hand: {100 * READING_RATIO:g} % of reading and {DIGITS} digits "
            f"of {weight_w:g} W, 20 Hz to 1 kHz and DC, 23 degrees Celsius after 30 min",
        )

    @property
    def resolution(self) -> float:
        """Weight of the last digit on this range, W."""
        return digit_w(*self._range_numbers())

    # -- dialogue --------------------------------------------------------------------------------------

    def _switch(self, command: str) -> None:
        """Send a command that is not answered, and leave the instrument the time to do it."""
        self.write(command)
        self._transport.drain(_SWITCHING_S)

    def _begin(self) -> None:
        """End a line that was cut off; end the continuous output and let its last line pass."""
        self._streaming, self._last_value_ns = False, _LONG_AGO_NS
        self.write("")
        self.write("MA0")
        self._transport.drain(1.5 * self.update_interval_s)

    def _identify(self) -> Identification:
        text = self.query("*IDN?", attempts=3)
        if "HM8115" not in text.upper():
            raise WrongInstrument(
                f"another instrument answers on {self._transport.resource}: {text[:60]!r}, not a Hameg "
                "HM8115-2; name the right port or the adapter for this instrument"
            )
        version = self.query("VERSION?", attempts=2)
        return Identification(text, self.make, self.model, None, version.removeprefix("version ").strip())

    def _set_up(self) -> None:
        """Select active power and the ranges, and see in the status that they are so."""
        wanted = Status("WATT", *self._range_numbers())
        self._automatic = False
        if self._status().function != wanted.function:
            self._switch("WATT")
        # Sent even when these ranges are on, because they may have been chosen automatically, just now.
        self._switch(f"SET:U{wanted.voltage_range}")
        self._switch(f"SET:I{wanted.current_range}")
        self._unsettled_lines = _LINES_AFTER_RANGE_CHANGE
        for _ in range(_STATUS_ATTEMPTS):
            now = self._status()
            if now == wanted:
                return
        raise SettingRefused(
            f"the HM8115-2 on {self._transport.resource} shows {now.function} U{now.voltage_range} "
            f"I{now.current_range} where {wanted.function} U{wanted.voltage_range} I{wanted.current_range} "
            "was set: check that no key is held and that the ranges suit what is connected"
        )

    def _status(self) -> Status:
        return parse_status(self.query("STATUS?", attempts=2))

    def _range_numbers(self) -> tuple[int, int]:
        """Numbers of the ranges that the settings ask for."""
        voltage_v, current_a = self.settings["voltage_range_v"], self.settings["current_range_a"]
        numbers_v = {value: number for number, value in VOLTAGE_RANGES_V.items()}
        numbers_a = {value: number for number, value in CURRENT_RANGES_A.items()}
        return numbers_v[voltage_v], numbers_a[current_a]

    # -- readings --------------------------------------------------------------------------------------

    def _read_update(self) -> Reading:
        """One value; the lines after a range change are taken and not used."""
        while self._unsettled_lines > 0:
            self._unsettled_lines -= 1
            with contextlib.suppress(GarbageReply):
                self._next_line()
        try:
            measurement = parse_measurement(self._next_line())
            self._demand_set_up(measurement)
            _demand_possible(measurement)
        except GarbageReply as error:  # lines are apart, so the next one is as good as any
            self._log.info("%s: %s", self._transport.resource, error)
            return Reading(self._transport.first_byte_ns, flag=Flag.GARBAGE)
        return self._reading(measurement, self._transport.first_byte_ns)

    def _next_line(self) -> str:
        """The next line of values, asked for or not."""
        if self.settings["readout"] == "query":
            self.write("VAL?")
        elif not self._streaming:
            self.write("MA1")
            self._streaming = True
        try:
            return self.read_reply(self.gap_s)
        except ReplyTimeout:
            if self.settings["readout"] == "query":  # else its late answer would be the next one's
                self._resynchronise = True
            raise

    def _reading(self, measurement: Measurement, t_ns: int) -> Reading:
        voltage, current = measurement.voltage, measurement.current
        reading = Reading(
            t_ns,
            measurement.value.number,
            None if voltage is None else voltage.number,
            None if current is None else current.number,
        )
        if measurement.overrange:
            return replace(reading, flag=Flag.OVERRANGE)
        # Values asked for come at the end of a cycle (manual p. 18); one that comes sooner is an old one.
        soonest_ns = self._last_value_ns + self.update_interval_s * _WHOLE_CYCLE * 1e9
        if self.settings["readout"] == "query" and t_ns < soonest_ns:
            return replace(reading, flag=Flag.DUPLICATE)
        self._last_value_ns = t_ns
        return reading

    def _demand_set_up(self, measurement: Measurement) -> None:
        """Somebody at the front panel may have chosen another function or range."""
        if measurement.function not in ("W", "WATT"):
            raise GarbageReply(f"it shows {measurement.function} instead of W")
        shown = (measurement.voltage_range, measurement.current_range)
        if not self._automatic and shown != self._range_numbers():
            raise GarbageReply(f"it measures on ranges U{shown[0]} I{shown[1]}, which were not set")

    # -- ranging, probing, leaving ---------------------------------------------------------------------

    def autorange(self, on: bool) -> None:
        """Let the instrument choose its ranges, or hold those of the settings again."""
        self._begin()
        if on:
            self._switch("AUTO:U")
            self._switch("AUTO:I")
            self._automatic = True
        else:
            self._set_up()

    def choose_range(self, most_v: float, most_a: float, most_w: float) -> dict[str, Any]:
        """Settings of the least ranges that hold these values with head-room; power has none of its own.

        Raises:
            UsageError: also for lines without voltage and current, whose ranges are set by hand.
        """
        from netjoule_meters.adapters.range_selection import least_range

        return {
            "voltage_range_v": least_range(tuple(VOLTAGE_RANGES_V.values()), most_v, "V"),
            "current_range_a": least_range(tuple(CURRENT_RANGES_A.values()), most_a, "A"),
        }

    def confirm(self, updates: int = 5) -> list[Finding]:
        """Look at ``updates`` values for what the documents at hand leave open; call after ``open``.

        Raises:
            MeterError: when the instrument falls silent.
        """
        readings = sample_updates(self._read_update, updates, self._transport.resource)
        apart_s = spacing_s(readings)
        values = "with" if readings[-1].voltage_v is not None else "without"
        held = abs(apart_s - self.update_interval_s) <= 0.1 * self.update_interval_s
        return [
            Finding(_PROVISIONAL_CYCLE, held, f"{apart_s:.3f} s between values, median of {updates - 1}"),
            Finding(_PROVISIONAL_FORM, True, f"{updates} lines read, {values} voltage and current"),
            Finding(
                _PROVISIONAL_FLOW,
                True if self._heard_meaningless else None,
                "XON or XOFF came"
                if self._heard_meaningless
                else "none came through; handshake=none would show them",
            ),
            Finding(
                _PROVISIONAL_RANGE, None, "ranges are as set; watch whether they stay under another load"
            ),
            *(
                Finding(statement, None, "cannot be seen from here")
                for statement in (_PROVISIONAL_LIMITS, _PROVISIONAL_DIGIT, _PROVISIONAL_LAG)
            ),
        ]

    def close(self) -> None:
        """End the continuous output and let go of the instrument."""
        if self._streaming:
            self._streaming = False
            with contextlib.suppress(DialogueError):
                self.write("MA0")
        super().close()


def _demand_possible(measurement: Measurement) -> None:
    """A current beyond all ranges, or more power than voltage times current, has not been measured."""
    current_a = None if measurement.current is None else measurement.current.number
    if current_a is not None and abs(current_a) > _IMPOSSIBLE_A:
        raise GarbageReply(f"{current_a:g} A cannot be: the greatest range is 16 A")
    voltage_v = None if measurement.voltage is None else measurement.voltage.number
    power_w = measurement.value.number
    if voltage_v is None or current_a is None or power_w is None:
        return
    digits_w = 2 * DIGITS * digit_w(measurement.voltage_range, measurement.current_range)
    if abs(power_w) > 1.1 * abs(voltage_v * current_a) + digits_w:
        raise GarbageReply(f"{power_w:g} W cannot be: voltage times current is less")
