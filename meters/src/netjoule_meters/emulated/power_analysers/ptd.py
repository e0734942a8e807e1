# SPDX-License-Identifier: Apache-2.0
"""An emulated PTDaemon in front of an emulated WT210. Sans-IO.

It speaks what the adapter's ``ptd_messages`` knows of PTDaemon and says in its identification that it is
emulated. Commands are answered in order; ``RL`` without an unread sample holds the dialogue for at most one
interval, as its clients describe. A sample is the mean over one interval, shown one interval later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from netjoule_meters.adapters.power_analysers.nr_values import Gap, parse_value
from netjoule_meters.adapters.power_analysers.ptd_messages import GREETING
from netjoule_meters.adapters.power_analysers.yokogawa import CURRENT_RANGES_A, VOLTAGE_RANGES_V
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.metering import Metering, soonest
from netjoule_meters.emulated.power_analysers.wt210_measurement import (
    RANGE_RATIO,
    READING_RATIO,
    DisplayedValues,
    Errors,
    Ranges,
    measure,
)
from netjoule_meters.emulated.registry import EmulationOptions
from netjoule_meters.emulated.update_grid import UpdateGrid
from netjoule_meters.errors import UsageError

IDENTIFICATION = (
    "YokogawaWT210,{interval_ms},1,1,1,1,0,0,0,version=1.11.1-00000000-20240901,OS=netjoule,mode=power,"
    "1,1,1,0,0,no_cal_date,emulated by netjoule"
)
_MOST_SAMPLES = 500_000
_UNCERTAINTY_LIMIT = 0.01
_LEAST_INTERVAL_S = 0.1
_LONGEST_COMMAND = 4096
_CLOCK_BEGINS = datetime(2000, 1, 1, tzinfo=UTC)
"""PTDaemon tells a date; an emulated one counts from campaign time 0."""


@dataclass
class _Measurement:
    """What ``Go`` began."""

    mark: str
    powers_w: list[float] = field(default_factory=list)
    uncertainties: list[float] = field(default_factory=list)
    samples: int = 0
    errors: int = 0
    unknown: int = 0
    unread: deque[str] = field(default_factory=deque)


class EmulatedPtd(Metering):
    """One PTDaemon and its analyser. ``seed`` draws the analyser's errors; None is one without error."""

    def __init__(self, *, update_interval_s: float, seed: int | None, supply: Supply) -> None:
        super().__init__(supply)
        self._errors = Errors.drawn(seed)
        self._own_interval_s = update_interval_s
        self._grid = UpdateGrid(update_interval_s, self._history)
        self._now_s = 0.0
        self._received = b""
        self._commands: deque[str] = deque()
        self._voltage_range_v, self._current_range_a = VOLTAGE_RANGES_V[-1], CURRENT_RANGES_A[-1]
        self._auto = {"V": True, "A": True}
        self._measurement: _Measurement | None = None
        self._waits_until_s: float | None = None
        self._wrong_samples = 0
        self._wrong_watts = "-1.000000"
        self._answers: Mapping[str, Callable[[list[str]], str | None]] = {
            "HELLO": lambda _: GREETING,
            "IDENTIFY": lambda _: IDENTIFICATION.format(interval_ms=round(self._own_interval_s * 1e3)),
            "RR": lambda _: self._tell_ranges(),
            "SR": self._set_range,
            "GO": self._go,
            "STOP": lambda _: self._stop(),
            "RL": self._read_last,
            "WATTS": lambda _: self._watts(),
            "UNCERTAINTY": lambda _: self._uncertainty(),
        }

    # -- the outside ---------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Bytes from the client."""
        *lines, rest = (self._received + data).split(b"\n")
        self._received = rest[-_LONGEST_COMMAND:]
        self._commands.extend(line.decode("latin-1").strip() for line in lines)

    def step(self, now_s: float) -> bytes:
        """Take the samples that are due, answer commands in order."""
        self._now_s = now_s
        replies = self._answer()
        while True:
            due_s = self._grid.due_s()
            update = self._grid.take(now_s)
            if update is None:
                break
            self._sample(update.mean_w, due_s or now_s)
        replies += self._answer()
        return "".join(f"{reply}\r\n" for reply in replies).encode("ascii", "replace")

    def wake_s(self, now_s: float) -> float | None:
        """When a sample or the end of a wait is due."""
        return soonest(self._grid.wake_s(now_s), self._waits_until_s)

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """``error_sample`` and ``nan``: the next ``count`` samples come without watts."""
        wrong = {"error_sample": "-1.000000", "missed_sample": "-2.000000", "nan": "nan"}
        if name not in wrong:
            return False
        self._wrong_watts, self._wrong_samples = wrong[name], int(request.get("count", 1))
        return True

    # -- measuring -----------------------------------------------------------------------------------

    def _sample(self, mean_w: float | None, due_s: float) -> None:
        """One sample into the running measurement."""
        if self._measurement is None or self._measurement.samples >= _MOST_SAMPLES:
            return
        shown = None if mean_w is None else self._measure(mean_w)
        watts, volts, amps, factor = (_text(shown, item) for item in ("W", "V", "A", "PF"))
        if self._wrong_samples > 0:
            self._wrong_samples -= 1
            watts = self._wrong_watts
        measurement = self._measurement
        measurement.samples += 1
        if shown is None or shown.power_w is None or watts == self._wrong_watts:
            measurement.errors += 1
            measurement.unknown += 1
        else:
            measurement.powers_w.append(float(watts))
            self._note_uncertainty(measurement, shown.power_w)
        measurement.unread.append(
            f"Time,{_clock_text(due_s)},Watts,{watts},Volts,{volts},Amps,{amps},PF,{factor},"
            f"Mark,{measurement.mark}"
        )

    def _measure(self, mean_w: float) -> DisplayedValues:
        current_a = self._supply.current_a(mean_w)
        if self._auto["V"]:
            self._voltage_range_v = _upwards(VOLTAGE_RANGES_V, self._supply.voltage_v) or VOLTAGE_RANGES_V[-1]
        if self._auto["A"]:
            self._current_range_a = _upwards(CURRENT_RANGES_A, current_a) or CURRENT_RANGES_A[-1]
        return measure(mean_w, self._supply, self._ranges, self._errors)

    @property
    def _ranges(self) -> Ranges:
        return Ranges(self._voltage_range_v, self._current_range_a, 3)

    def _note_uncertainty(self, measurement: _Measurement, power_w: float) -> None:
        """The analyser's limits over the reading; unknown while it ranges by itself."""
        if True in self._auto.values() or power_w <= 0:
            measurement.unknown += 1
            return
        limit_w = READING_RATIO * power_w + RANGE_RATIO * self._ranges.power_w
        measurement.uncertainties.append(limit_w / power_w)

    # -- commands ------------------------------------------------------------------------------------

    def _answer(self) -> list[str]:
        """Answers to the commands that can be answered now; ``RL`` may hold up the rest."""
        replies: list[str] = []
        while self._commands:
            name, *parameters = [part.strip() for part in self._commands[0].split(",")]
            answer = self._answers.get(name.upper())
            reply = "Unknown command" if answer is None else answer(parameters)
            if reply is None:
                break
            self._commands.popleft()
            replies.append(reply)
        return replies

    def _tell_ranges(self) -> str:
        auto_a, auto_v = int(self._auto["A"]), int(self._auto["V"])
        return f"Ranges,{auto_a},{self._current_range_a:.6f},{auto_v},{self._voltage_range_v:.6f}"

    def _set_range(self, parameters: list[str]) -> str:
        if len(parameters) != 2:
            return "Invalid number of parameters"
        which, text = parameters[0].upper(), parameters[1]
        if self._measurement is not None:
            return "Meter busy"
        if which in self._auto and text.upper() == "AUTO":
            self._auto[which] = True
            return f"Range {which} changed"
        ranges = {"V": VOLTAGE_RANGES_V, "A": CURRENT_RANGES_A}.get(which)
        found = _upwards(ranges, _positive(text)) if ranges else None
        if found is None:
            return "Error in parameter"
        self._auto[which] = False
        if which == "V":
            self._voltage_range_v = found
        else:
            self._current_range_a = found
        return f"Range {which} changed"

    def _go(self, parameters: list[str]) -> str:
        if not 2 <= len(parameters) <= 3:
            return "Invalid number of parameters"
        if not (parameters[0].isdecimal() and parameters[1] == "0"):
            return "Error in parameter"
        interval_s = int(parameters[0]) / 1e3 or self._own_interval_s
        if interval_s < _LEAST_INTERVAL_S:
            return "Error in parameter"
        if self._measurement is not None:
            return "Meter busy"
        self._measurement = _Measurement(parameters[2] if len(parameters) == 3 else "notset")
        self._grid.restart(interval_s, self._now_s)
        return (
            f"Starting untimed measurement, maximum {_MOST_SAMPLES} samples at {round(interval_s * 1e3)}ms "
            "with 0 rampup samples"
        )

    def _stop(self) -> str:
        if self._measurement is None:
            return "Error: no measurement to stop"
        self._measurement = None
        return "Stopping untimed measurement"

    def _read_last(self, parameters: list[str]) -> str | None:
        """``RL,*``: all unread samples; ``RL,N``: the last N of them. None: wait for one."""
        if self._measurement is None:
            return "Error: no measurement running"
        if len(parameters) > 1:
            return "Invalid number of parameters"
        unread = self._measurement.unread
        if not unread:
            if self._waits_until_s is None:
                self._waits_until_s = self._now_s + self._grid.interval_s
            if self._now_s < self._waits_until_s:
                return None
        self._waits_until_s = None
        if not unread:
            return "No unread samples available"
        count = len(unread) if parameters in ([], ["*"]) else _whole(parameters[0])
        if not 0 < count <= len(unread):
            return "Insufficient unread samples available"
        lines = list(unread)[-count:]
        unread.clear()
        return "\r\n".join([f"Last {count} samples", *lines])

    def _watts(self) -> str:
        if self._measurement is None:
            return "Watts,-1,-1,-1,0,0,0"
        powers_w, samples = self._measurement.powers_w, self._measurement.samples
        return f"Watts,{_three(powers_w)},{samples},{self._measurement.errors},{len(powers_w)}"

    def _uncertainty(self) -> str:
        if self._measurement is None:
            return "Uncertainty,-1,-1,-1,0,0,0,0"
        ratios = self._measurement.uncertainties
        over = sum(ratio > _UNCERTAINTY_LIMIT for ratio in ratios)
        counts = (self._measurement.samples, over, len(ratios) - over, self._measurement.unknown)
        return f"Uncertainty,{_three(ratios)},{','.join(map(str, counts))}"


def make(options: EmulationOptions) -> EmulatedPtd:
    """An emulated PTDaemon; see `EmulatedModel`."""
    interval_s = 1.0 if options.update_interval_s is None else options.update_interval_s
    if interval_s < _LEAST_INTERVAL_S:
        raise UsageError(f"an emulated PTDaemon samples every {_LEAST_INTERVAL_S:g} s or more slowly")
    options.known_extra("PTDaemon", ())
    return EmulatedPtd(update_interval_s=interval_s, seed=options.seed, supply=options.supply)


def _text(shown: DisplayedValues | None, item: str) -> str:
    """A value as PTDaemon writes it; -1 where the analyser shows none."""
    value = Gap.NO_DATA if shown is None else parse_value(shown.texts[item])
    return "-1.000000" if isinstance(value, Gap) else f"{value:.6f}"


def _clock_text(t_s: float) -> str:
    at = _CLOCK_BEGINS + timedelta(seconds=round(t_s, 3))
    return f"{at:%m-%d-%Y %H:%M:%S}.{at.microsecond // 1000:03d}"


def _three(values: list[float]) -> str:
    """Mean, least, greatest; -1 when there is none."""
    if not values:
        return "-1,-1,-1"
    return f"{sum(values) / len(values):.6f},{min(values):.6f},{max(values):.6f}"


def _positive(text: str) -> float:
    """A positive number, 0 for anything else."""
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0


def _upwards(ranges: tuple[float, ...], value: float) -> float | None:
    """The least range that is not below ``value``."""
    if value <= 0:
        return None
    return next((candidate for candidate in ranges if candidate >= value * (1 - 1e-9)), None)
