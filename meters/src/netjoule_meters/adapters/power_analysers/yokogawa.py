# SPDX-License-Identifier: Apache-2.0
"""What Yokogawa's WT210 and WT310 have in common: the dialogue that reads each update once.

Updates are read as the manuals synchronise them (IM 760401-01E ch. 14.8): event 1 of the extended event
register is the falling edge of "data is being updated"; ``COMMUNICATE:WAIT 1`` holds the dialogue until
then. The register is read before the values, so that the values are asked for at a known moment, and once
more with them, so that an update in between is noticed. It also tells whether a peak was cut off. Ranges
are fixed: a range change leaves a hole in the data, so autorange is only for the pass before a campaign.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from typing import Any, ClassVar

from netjoule_meters.adapters.base import QUIET_S
from netjoule_meters.adapters.dialogue_meter import Command, DialogueMeter
from netjoule_meters.adapters.power_analysers.nr_values import Gap, Value
from netjoule_meters.adapters.range_selection import least_range
from netjoule_meters.errors import GarbageReply, ReplyTimeout, SettingRefused, WrongInstrument, WrongMode
from netjoule_meters.passport import Identification, MeasuringRange
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting
from netjoule_meters.transports import interface_of

VOLTAGE_RANGES_V = (15.0, 30.0, 60.0, 150.0, 300.0, 600.0)
CURRENT_RANGES_A = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Ranges at crest factor 3; at crest factor 6 each is half of it."""
_JOULES_PER_WH = 3600.0
_MOST_STALE_ANSWERS = 5

# Bits of the extended event register that the set-up lets through.
_UPDATED, _OVERRANGE, _PEAK_VOLTAGE, _PEAK_CURRENT = 1 << 0, 1 << 6, 1 << 7, 1 << 8
_TOO_LARGE = _OVERRANGE | _PEAK_VOLTAGE | _PEAK_CURRENT

_ERRORS = {
    "813": "an integration is running; reset it on the front panel or with :INTEG:RES",
    "390": "characters were lost on the serial line; lower the baud rate or switch the handshake on",
}

EVENT_FILTERS = (
    Command(":STAT:FILT1 FALL"),
    Command(":STAT:FILT7 RISE"),
    Command(":STAT:FILT8 RISE"),
    Command(":STAT:FILT9 RISE"),
)


def halves(ranges: tuple[float, ...]) -> tuple[float, ...]:
    """The ranges of both crest factors."""
    return tuple(sorted({*ranges, *(value / 2 for value in ranges)}))


WT_SETTINGS = (
    Setting("voltage_range_v", "Fixed voltage range.", choices=halves(VOLTAGE_RANGES_V)),
    Setting("current_range_a", "Fixed current range.", choices=halves(CURRENT_RANGES_A)),
    Setting("crest_factor", "Crest factor; 6 halves the ranges and doubles the range error.", 3, (3, 6)),
    Setting("frequency_filter", "Filter of the frequency measurement.", True, (False, True)),
    Setting("line_frequency_hz", "Frequency of the supply, for the accuracy table.", 50.0),
    Setting("power_factor", "Power factor of the load, for the accuracy table.", 1.0),
    Setting("integrate", "Run the integrator; rows then carry its energy_j.", False, (False, True)),
    Setting("lag_s", "Lag of this instrument; None stands for one update interval.", None),
)


class Yokogawa(DialogueMeter):
    """A power meter of the WT family: one reading per display update, ranges fixed."""

    make: ClassVar[str] = "Yokogawa"
    lag_updates: ClassVar[float] = 1
    values_query: ClassVar[str]
    range_prefix: ClassVar[str]
    """Header above ``VOLT:RANG``, ``CURR:AUTO`` and so on."""
    place: ClassVar[str] = "port"
    advice_mode: ClassVar[str]
    advice_garbage: ClassVar[str]
    _armed = False
    _watch_peaks = True

    # -- what the two do differently ------------------------------------------------------------------

    @abstractmethod
    def _is_this(self, model: str) -> bool:
        """Whether the instrument may be one by the model of its answer to ``*IDN?``."""

    @abstractmethod
    def _show_energy(self) -> None:
        """Add energy and time of the integrator to the values."""

    @abstractmethod
    def _parse(self, reply: str) -> dict[str, Value]:
        """The answer to ``values_query`` by V, A, W and, with the integrator, WH and TIME (s)."""

    def _conditions(self) -> dict[str, Any]:
        """What the table of limits of error goes by, as the settings say."""
        names = ("power_factor", "crest_factor", "line_filter", "voltage_range_v", "current_range_a")
        frequency_hz = 0.0 if self.settings["mode"] == "DC" else self.settings["line_frequency_hz"]
        return {"frequency_hz": frequency_hz, **{name: self.settings[name] for name in names}}

    # -- range, lag ------------------------------------------------------------------------------------

    @property
    def measuring_range(self) -> MeasuringRange:
        """The fixed range."""
        voltage_v, current_a = self.settings["voltage_range_v"], self.settings["current_range_a"]
        return MeasuringRange(voltage_v, current_a, round(voltage_v * current_a, 9))

    @property
    def resolution(self) -> float:
        """Last of the five digits that show a value of the power range (300 W: 0.01 W)."""
        return float(10.0 ** (math.floor(math.log10(self.measuring_range.power_w or 1.0) + 1e-9) - 4))

    def autorange(self, on: bool) -> None:
        """Let it choose its ranges, or return to those of the settings."""
        self._settle()
        for which, unit in (("VOLT", "voltage_range_v"), ("CURR", "current_range_a")):
            self.command(f"{self.range_prefix}:{which}:AUTO {'ON' if on else 'OFF'}")
            if not on:
                self.command(f"{self.range_prefix}:{which}:RANG {self.settings[unit]:g}")

    def choose_range(self, most_v: float, most_a: float, most_w: float) -> dict[str, Any]:
        """Least ranges of voltage and current, at the crest factor of the settings."""
        ratio = 3 / self.settings["crest_factor"]
        return {
            "voltage_range_v": least_range([ratio * value for value in VOLTAGE_RANGES_V], most_v, "V"),
            "current_range_a": least_range([ratio * value for value in CURRENT_RANGES_A], most_a, "A"),
        }

    # -- integrator --------------------------------------------------------------------------------------

    def integrate_start(self) -> None:
        """Start the integrator from zero; the next readings carry ``energy_j``.

        Raises:
            SettingRefused: when it will not start.
        """
        self._settle()
        for command in (":INTEG:STOP", ":INTEG:RES", "*CLS"):  # an error when it was not running
            self.write(command)
        self._show_energy()
        for command in (":INTEG:MODE NORM", ":INTEG:TIM 0,0,0", ":INTEG:STAR"):
            self.command(command)

    # -- dialogue ----------------------------------------------------------------------------------------

    def command(self, text: str) -> None:
        """Send a command and make sure that it was accepted.

        Raises:
            SettingRefused: with the instrument's error and the next step.
        """
        self.write(text)
        self._check_errors(text)

    def _settle(self) -> None:
        """Before a question out of turn: end a wait for an update that is still pending."""
        if self._armed or self._resynchronise:
            self._transport.drain(QUIET_S)
            self._restart()
            self._resynchronise = False

    def _begin(self) -> None:
        """End a line that was cut off, clear queues and registers, ask for bare values."""
        self._armed, self._watch_peaks = False, True
        self.write("")
        # A bus has a line for remote control; only RS-232 needs the command.
        serial = interface_of(self._transport.resource) in ("serial", "tcp")
        remote = (":COMM:REM ON",) if serial else ()
        for command in ("*CLS", ":STAT:QMES ON", *remote, ":COMM:HEAD OFF"):
            self.write(command)

    def _restart(self) -> None:
        """Skip answers that are still due to earlier questions, above all that to a wait for an update."""
        self._begin()
        self.write("*IDN?")
        assert self.identification is not None, "only an identified instrument is read"
        for _ in range(_MOST_STALE_ANSWERS):
            with contextlib.suppress(GarbageReply):
                if self.read_reply(self.gap_s + self.reply_timeout_s * 0.1) == self.identification.text:
                    return
        raise GarbageReply("no answer belongs to its question")

    def _set_up(self) -> None:
        if self.settings["integrate"]:  # settings are locked until an integration is reset
            for command in (":INTEG:STOP", ":INTEG:RES", "*CLS"):
                self.write(command)
        super()._set_up()
        if self.settings["integrate"]:
            self.integrate_start()

    def _identify(self) -> Identification:
        try:
            text, fields = self._first_answer()
        except GarbageReply as error:
            raise self._not_488_2(str(error), self.advice_garbage) from error
        if len(fields) != 4:
            raise self._not_488_2(f"it answers {text[:60]!r} to *IDN?", self.advice_mode)
        make, model, serial, firmware = fields
        if "YOKOGAWA" not in make.upper() or not self._is_this(model):
            raise WrongInstrument(
                f"another instrument answers on {self._transport.resource}: {text!r}, not a Yokogawa "
                f"{self.model}; name the right {self.place} or the adapter for this instrument"
            )
        return Identification(text, self.make, model, serial or None, firmware or None)

    def _first_answer(self) -> tuple[str, list[str]]:
        """The answer to ``*IDN?`` and its fields; four of them when all is well."""
        text = self.query("*IDN?", attempts=3)
        if text.isdecimal():  # the answer to a wait that another program left behind
            text = self.read_reply()
        return text, [field.strip() for field in text.split(",")]

    def _not_488_2(self, what: str, advice: str) -> WrongMode:
        return WrongMode(
            f"the instrument on {self._transport.resource} does not speak 488.2 ({what}): {advice}"
        )

    def _check_errors(self, command: str) -> None:
        code, _, text = self.query(":STAT:ERR?").partition(",")
        if code.strip() == "0":
            return
        advice = _ERRORS.get(code.strip(), "check the setting against the instrument's manual")
        raise SettingRefused(
            f"the {self.model} on {self._transport.resource} refused '{command}' with error "
            f"{code.strip()} {text}: {advice}"
        )

    def _read_update(self) -> Reading:
        events = self._await_update()
        try:
            reply, t_ns = self.timed_query(f"{self.values_query};:STAT:EESR?")
            values, _, later = reply.partition(";")
            # An update between the two questions belongs to these values: its event is taken with them,
            # so that no update is ever read twice.
            events |= self._events(later)
            events |= self._lasting_peaks(events)
        except ReplyTimeout:
            self._resynchronise = True
            raise
        return reading_of(t_ns, self._parse(values), events)

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


def reading_of(t_ns: int, values: dict[str, Value], events: int) -> Reading:
    """Numbers where there are any, and the worst flag of voltage, current and power."""
    numbers = {item: value if isinstance(value, float) else None for item, value in values.items()}
    shown = [values[item] for item in ("V", "A", "W")]
    energy_wh = numbers.get("WH")
    if Gap.OVERRANGE in shown:
        flag = Flag.OVERRANGE
    elif Gap.NO_DATA in shown:
        flag = Flag.NO_DATA
    elif events & _OVERRANGE:
        flag = Flag.OVERRANGE
    elif events & _TOO_LARGE:
        flag = Flag.PEAK_OVER
    else:
        flag = Flag.GOOD if events & _UPDATED else Flag.DUPLICATE
    energy_j = None if energy_wh is None else energy_wh * _JOULES_PER_WH
    return Reading(t_ns, numbers["W"], numbers["V"], numbers["A"], energy_j, flag)
