# SPDX-License-Identifier: Apache-2.0
"""An emulated Current Cost CC128: transmitters on the radio, a display that sends XML ("XML output
description" v0.11). Sans-IO.

Each transmitter measures about every 6 s, at its own pace; what the radio loses is never seen. The display
shows current times 240 V. From one minute past each odd hour of its clock it also sends history, one burst
per 10 s. Not documented, and assumed here: a value is the mean over one second that ended one second before
the message, a clamp is wrong by up to 5 % and 3 W, one message in 50 is lost, and how long history lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from netjoule_meters.emulated.instrument_errors import drawn
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.metering import Metering, soonest
from netjoule_meters.emulated.ports.serial_line import SerialLine
from netjoule_meters.emulated.registry import EmulationOptions
from netjoule_meters.errors import UsageError

INTERVAL_S = 6.0
BAUD_RATE = 57600
NOMINAL_V = 240.0
GAIN_LIMIT, OFFSET_LIMIT_W = 0.05, 3.0
_JITTER_S = 0.05
_LATE_S, _WINDOW_S = 1.0, 1.0
_SOURCE = "CC128-v0.11"
_DAYS_SINCE_BIRTH = 89
_TEMPERATURE = 18.7
_DAY_S, _TWO_HOURS_S = 86_400, 7_200
_HISTORY_FROM_S = 3_660
"""One minute past an odd hour, within two hours."""
_BURST_EVERY_S = 10.0
_OLDEST_HOUR, _HOURS_PER_BURST = 24, 8
_OTHER_W = 100.0
_MOST = {"sensor": 9, "others": 9, "miss_ratio": 1, "clock_s": _DAY_S - 1, "history": 1}


@dataclass(frozen=True, slots=True)
class Options:
    """What may be different about one display.

    Attributes:
        sensor: number of the sensor that measures the power fed.
        others: further sensors, each with a steady 100 W.
        miss_ratio: part of the messages that the radio loses.
        clock_s: the display's clock at campaign time 0, s since midnight.
        history: whether it sends history.
    """

    sensor: int = 0
    others: int = 0
    miss_ratio: float = 0.02
    clock_s: int = 13 * 3600 + 2 * 60 + 39
    history: bool = True


@dataclass
class _Transmitter:
    """One sensor: its next measurement, and its radio identity."""

    sensor: int
    radio_id: int
    next_s: float


class EmulatedCC128(Metering):
    """One display with its sensors. ``seed`` draws its errors; None has none and loses no message."""

    def __init__(
        self, *, seed: int | None = None, supply: Supply | None = None, options: Options | None = None
    ) -> None:
        super().__init__(supply)
        self._options = options or Options()
        self._seed = seed
        self._random = Random(seed or 0)  # noqa: S311 - radio and pace, no secret
        (self._errors,) = drawn(seed, [(GAIN_LIMIT, OFFSET_LIMIT_W)])
        self._line = SerialLine(BAUD_RATE)
        self._transmitters: list[_Transmitter] = []
        self._misses_asked = 0
        self._bursts_left = 0
        self._next_burst_s: float | None = None
        self._energy_j = 0.0

    # -- the outside -----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """It listens to nothing."""

    def step(self, now_s: float) -> bytes:
        """Send what the radio brought and what history is due."""
        self._power_on()
        for transmitter in self._transmitters:
            while transmitter.next_s <= now_s:
                self._transmit(transmitter, transmitter.next_s, now_s)
                transmitter.next_s += INTERVAL_S + self._random.uniform(-_JITTER_S, _JITTER_S)
        self._send_history(now_s)
        return self._line.take(now_s)

    def wake_s(self, now_s: float) -> float | None:
        """When the next message is due or the next byte leaves."""
        messages_s = (transmitter.next_s for transmitter in self._transmitters)
        return soonest(self._line.wake_s(), self._next_burst_s, *messages_s)

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """``miss``: the next ``count`` messages of the fed sensor are lost. ``history``: a burst now."""
        if name == "miss":
            self._misses_asked += int(request.get("count", 1))
        elif name == "history":
            self._bursts_left = _OLDEST_HOUR // _HOURS_PER_BURST
            self._next_burst_s = now_s
        else:
            return False
        return True

    # -- live ------------------------------------------------------------------------------------------

    def _power_on(self) -> None:
        """The sensors begin with the stream of power, each in its own part of the interval."""
        start_s = self._history.start_s
        if self._transmitters or start_s is None:
            return
        others = [number for number in range(10) if number != self._options.sensor][: self._options.others]
        first_s = start_s + _LATE_S + _WINDOW_S
        for place, sensor in enumerate((self._options.sensor, *others)):
            offset_s = place * INTERVAL_S / (1 + len(others))
            self._transmitters.append(
                _Transmitter(sensor, self._random.randrange(1, 4096), first_s + offset_s)
            )
        if self._options.history:
            self._next_burst_s = self._next_history_s(start_s)

    def _transmit(self, transmitter: _Transmitter, t_s: float, now_s: float) -> None:
        """One message, unless the radio loses it or the power of its second is not known."""
        end_s = t_s - _LATE_S
        mean_w: float | None = _OTHER_W
        if transmitter.sensor == self._options.sensor:
            mean_w = self._history.mean_w(end_s - _WINDOW_S, end_s)
            self._history.forget_before(end_s)
            if self._misses_asked > 0:
                self._misses_asked -= 1
                return
        lost = self._seed is not None and self._random.random() < self._options.miss_ratio
        if mean_w is None or lost:
            return
        watts = self._shown_w(mean_w)
        if transmitter.sensor == self._options.sensor:
            self._energy_j += watts * INTERVAL_S
        self._put(self._live(transmitter, watts, t_s), now_s)

    def _shown_w(self, power_w: float) -> int:
        """What the display shows: the clamp's current times the voltage it takes for granted."""
        return max(0, round(self._errors.shown(self._supply.current_a(power_w) * NOMINAL_V, 1.0)))

    def _live(self, transmitter: _Transmitter, watts: int, t_s: float) -> str:
        return (
            f"{self._head(t_s)}<tmpr>{_TEMPERATURE:04.1f}</tmpr><sensor>{transmitter.sensor}</sensor>"
            f"<id>{transmitter.radio_id:05d}</id><type>1</type><ch1><watts>{watts:05d}</watts></ch1></msg>"
        )

    def _head(self, t_s: float) -> str:
        since_s = int(t_s) + self._options.clock_s
        days, clock_s = _DAYS_SINCE_BIRTH + since_s // _DAY_S, since_s % _DAY_S
        time = f"{clock_s // 3600:02d}:{clock_s // 60 % 60:02d}:{clock_s % 60:02d}"
        return f"<msg><src>{_SOURCE}</src><dsb>{days:05d}</dsb><time>{time}</time>"

    def _put(self, message: str, now_s: float) -> None:
        self._line.put(message.encode("ascii") + b"\r\n", now_s)

    # -- history ---------------------------------------------------------------------------------------

    def _next_history_s(self, now_s: float) -> float:
        """Campaign time of the next minute past an odd hour of the display's clock."""
        phase_s = (now_s + self._options.clock_s - _HISTORY_FROM_S) % _TWO_HOURS_S
        return now_s + _TWO_HOURS_S - phase_s

    def _send_history(self, now_s: float) -> None:
        while self._next_burst_s is not None and self._next_burst_s <= now_s:
            due_s = self._next_burst_s
            if self._bursts_left == 0:
                self._bursts_left = _OLDEST_HOUR // _HOURS_PER_BURST
            self._put(self._burst(self._bursts_left, due_s), now_s)
            self._bursts_left -= 1
            going_on = self._bursts_left > 0
            self._next_burst_s = due_s + _BURST_EVERY_S if going_on else self._after_history(due_s)

    def _after_history(self, due_s: float) -> float | None:
        return self._next_history_s(due_s) if self._options.history else None

    def _burst(self, number: int, t_s: float) -> str:
        """Energy of eight hours in steps of two, oldest first; all of it lies in the last two hours."""
        newest = (number - 1) * _HOURS_PER_BURST
        hours = range(newest + _HOURS_PER_BURST, newest, -2)
        data = []
        for sensor in range(10):
            known_kwh = self._energy_j / 3.6e6 if sensor == self._options.sensor else 0.0
            values = "".join(
                f"<h{hour:03d}>{known_kwh if hour == 2 else 0.0:05.1f}</h{hour:03d}>" for hour in hours
            )
            data.append(f"<data><sensor>{sensor}</sensor>{values}</data>")
        return (
            f"{self._head(t_s)}<hist><dsw>{_DAYS_SINCE_BIRTH + 2:05d}</dsw><type>1</type>"
            f"<units>kwhr</units>{''.join(data)}</hist></msg>"
        )


def make(options: EmulationOptions) -> EmulatedCC128:
    """An emulated CC128; see `EmulatedModel`. Options: those of `Options`."""
    if options.update_interval_s not in (None, INTERVAL_S):
        raise UsageError(f"a CC128 hears its sensors every {INTERVAL_S:g} s, which cannot be set")
    extra = options.known_extra("CC128", Options.__dataclass_fields__)
    for name, value in extra.items():
        most = _MOST[name]
        if not isinstance(value, int | float) or not 0 <= value <= most:
            raise UsageError(f"{name} of an emulated CC128 is a number from 0 to {most}, not {value!r}")
    return EmulatedCC128(seed=options.seed, supply=options.supply, options=Options(**extra))
