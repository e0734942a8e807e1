# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a meter's readings, found as they come: gaps, updates read twice, uneven spacing, values
that stand still, rows without a value.

No clock and no files: readings go in, readings come out (a frozen or repeated one is flagged) with remarks
for the event log. Nothing is ever added, so that a hole stays a hole. Every outage makes exactly one remark
of kind ``gap``; one that lasts makes it when it is noticed and ``gap_over`` when it ends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from netjoule_meters.reading import Flag, Reading

JITTER_RATIO = 0.2
"""The 95th percentile of the spacing may be off by so much (the rule of Green Metrics Tool)."""
_LATE = 1.5
_SURELY_MISSING = 2.5
_TOO_SOON = 0.25
_QUIET_BETWEEN_DUPLICATES_S = 60.0
_STUCK_WITH_VOLTAGE_S, _STUCK_POWER_ONLY_S = 30.0, 600.0
_STUCK_UPDATES = 5
_STUCK_UPDATES_BY_DEFAULT = 20
_UPDATES = (Flag.GOOD, Flag.NO_DATA, Flag.OVERRANGE, Flag.PEAK_OVER, Flag.STALE)
"""Rows that stand for an update of the instrument, with or without a number."""
_SENTENCES = {
    Flag.NO_DATA: ("no_data", "the instrument has no value: check its inputs and its display"),
    Flag.OVERRANGE: ("overrange", "over-range: choose a larger fixed range and repeat"),
    Flag.PEAK_OVER: ("peak_over", "a peak was cut off: choose a larger fixed range or crest factor 6"),
    Flag.GARBAGE: ("garbage", "an answer could not be read: check cable, baud rate and earthing"),
}


@dataclass(frozen=True, slots=True)
class QualityEvent:
    """One thing to report: ``kind`` is a word, ``message`` a sentence; instants are CLOCK_MONOTONIC in ns.

    Attributes:
        since_ns: where the span that the remark is about begins (the last reading before a gap).
        until_ns: where it ends; None while it lasts.
    """

    kind: str
    message: str
    t_ns: int
    since_ns: int | None = None
    until_ns: int | None = None


Report = Callable[[QualityEvent], None]


def stuck_limit_s(setting: float | None, *, may_stand_still: bool, with_voltage: bool) -> float:
    """After how long an unmoved value is a frozen one, s; infinite for never.

    Voltage and current of a live device move in their last digits; watts alone may rest for minutes.
    """
    if setting is not None:
        return math.inf if setting <= 0 else float(setting)
    if may_stand_still:
        return math.inf
    return _STUCK_WITH_VOLTAGE_S if with_voltage else _STUCK_POWER_ONLY_S


@dataclass
class _Spacing:
    """Gaps and jitter, from the instants of updates alone."""

    interval_s: float
    report: Report
    gaps: int = 0
    missing_updates: int = 0
    longest_gap_s: float = 0.0
    worst_jitter_ratio: float = 0.0
    last_ns: int | None = None
    _late_since_ns: int | None = None
    _lost: bool = False
    _announced: bool = False
    _spacings_s: list[float] = field(default_factory=list)
    _window_since_ns: int = 0
    _jitter_since_ns: int | None = None

    def silence(self, t_ns: int) -> None:
        """The meter says nothing any more."""
        self._settle(t_ns)
        self._lost = True
        if not self._announced:
            self._announced = True
            self.gaps += 1
            since = "yet" if self.last_ns is None else f"for {(t_ns - self.last_ns) / 1e9:.3f} s"
            self.report(QualityEvent("gap", f"no new value {since}", t_ns, self.last_ns))

    def connected_again(self, t_ns: int) -> None:
        """The connection was lost and is back."""
        self._settle(t_ns)
        self._lost = True

    def update(self, t_ns: int) -> None:
        """One update of the instrument."""
        last_ns, self.last_ns = self.last_ns, t_ns
        if last_ns is None:
            if self._announced:
                self.report(QualityEvent("gap_over", "the first value has come", t_ns, None, t_ns))
            self._lost = self._announced = False
            return
        spacing = (t_ns - last_ns) / 1e9 / self.interval_s
        if self._lost or spacing >= _SURELY_MISSING:
            self._late_since_ns = None
            self._gap(last_ns, t_ns, max(1, round(spacing) - 1) if spacing >= _LATE else 0)
        elif self._late_since_ns is not None:
            self._after_a_late_one(last_ns, t_ns)
        elif spacing >= _LATE:  # late or one missing: the next one tells
            self._late_since_ns = last_ns
        else:
            self._spaced(spacing, t_ns)

    def end(self) -> None:
        """No more updates."""
        if self.last_ns is not None:
            self._settle(self.last_ns)

    def _after_a_late_one(self, late_ns: int, t_ns: int) -> None:
        """A late update leaves the one after it in its place; a missing one moves everything on."""
        since_ns, self._late_since_ns = self._late_since_ns, None
        assert since_ns is not None
        missing = round((t_ns - since_ns) / 1e9 / self.interval_s) - 2
        if missing > 0:
            self._gap(since_ns, late_ns, missing)
        else:
            self._spaced((late_ns - since_ns) / 1e9 / self.interval_s, late_ns)
        self._spaced((t_ns - late_ns) / 1e9 / self.interval_s, t_ns)

    def _settle(self, t_ns: int) -> None:
        """What came late before a silence: nobody will tell, so it counts as a gap."""
        since_ns, self._late_since_ns = self._late_since_ns, None
        if since_ns is not None and self.last_ns is not None:
            self._gap(since_ns, self.last_ns, 1)

    def _gap(self, since_ns: int, until_ns: int, missing: int) -> None:
        self._lost = False
        if missing == 0 and not self._announced:  # a slow meter connected again between two updates
            return
        seconds = (until_ns - since_ns) / 1e9
        self.missing_updates += missing
        self.longest_gap_s = max(self.longest_gap_s, seconds)
        kind = "gap_over" if self._announced else "gap"
        self.gaps += 0 if self._announced else 1
        updates = f"{missing} update{'' if missing == 1 else 's'} missing"
        self._announced = False
        self.report(
            QualityEvent(kind, f"no reading for {seconds:.3f} s, {updates}", until_ns, since_ns, until_ns)
        )

    def _spaced(self, spacing: float, t_ns: int) -> None:
        """Collect a spacing (in update intervals); judge a window of them when it is full."""
        if not self._spacings_s:
            self._window_since_ns = t_ns - round(spacing * self.interval_s * 1e9)
        self._spacings_s.append(spacing * self.interval_s)
        if len(self._spacings_s) >= min(100, max(20, round(300 / self.interval_s))):
            self._judge(sorted(self._spacings_s), t_ns)
            self._spacings_s.clear()

    def _judge(self, spacings_s: list[float], t_ns: int) -> None:
        off = sorted(abs(spacing_s / self.interval_s - 1) for spacing_s in spacings_s)
        p95 = off[math.ceil(0.95 * len(off)) - 1]
        self.worst_jitter_ratio = max(self.worst_jitter_ratio, p95)
        median_s = spacings_s[len(spacings_s) // 2]
        if p95 > JITTER_RATIO and self._jitter_since_ns is None:
            self._jitter_since_ns = self._window_since_ns
            text = (
                f"updates are unevenly spaced: p95 is {100 * p95:.0f} % off {self.interval_s:g} s over "
                f"{len(off)} updates (median {median_s:.3g} s); check update_interval_s and this host's load"
            )
            self.report(QualityEvent("jitter", text, t_ns, self._jitter_since_ns))
        elif p95 <= JITTER_RATIO and self._jitter_since_ns is not None:
            since_ns, self._jitter_since_ns = self._jitter_since_ns, None
            text = f"updates are evenly spaced again: p95 is {100 * p95:.0f} % off {self.interval_s:g} s"
            self.report(QualityEvent("jitter_over", text, t_ns, since_ns, self._window_since_ns))


@dataclass
class _Standstill:
    """Finds the reading that does not move."""

    limit_s: Callable[[Reading], float]
    least_updates: int
    report: Report
    _values: tuple[float | None, ...] | None = None
    _since_ns: int = 0
    _count: int = 0
    _told: bool = False

    def stuck(self, reading: Reading) -> bool:
        """Whether this good reading only repeats what a frozen meter has shown for too long."""
        values = _values(reading)
        if values != self._values:
            if self._told:
                seconds = (reading.t_ns - self._since_ns) / 1e9
                text = f"the value moves again after {seconds:.1f} s"
                self.report(QualityEvent("stuck_over", text, reading.t_ns, self._since_ns, reading.t_ns))
            self._values, self._since_ns, self._count, self._told = values, reading.t_ns, 1, False
            return False
        self._count += 1
        seconds = (reading.t_ns - self._since_ns) / 1e9
        if self._count < self.least_updates or seconds < self.limit_s(reading):
            return False
        if not self._told:
            self._told = True
            text = (
                f"the value has not moved for {seconds:.1f} s ({reading.power_w} W in {self._count} updates)"
                ": look at the meter's display (hold, communication), then repeat"
            )
            self.report(QualityEvent("stuck", text, reading.t_ns, self._since_ns))
        return True


class QualityMonitor:
    """Watches one meter.

    Args:
        interval_s: its update interval, s.
        stuck_after_s: see `stuck_limit_s`; None asks for the default.
        may_stand_still: by default an unmoved value is no defect.
    """

    def __init__(self, interval_s: float, *, stuck_after_s: float | None, may_stand_still: bool) -> None:
        self._events: list[QualityEvent] = []
        report = self._events.append
        least = _STUCK_UPDATES_BY_DEFAULT if stuck_after_s is None else _STUCK_UPDATES
        self._interval_s = interval_s
        self._spacing = _Spacing(interval_s, report)
        self._standstill = _Standstill(
            lambda reading: stuck_limit_s(
                stuck_after_s,
                may_stand_still=may_stand_still,
                with_voltage=reading.voltage_v is not None or reading.current_a is not None,
            ),
            least,
            report,
        )
        self._flags: Counter[Flag] = Counter()
        self._before: Flag | None = None
        self._last_good: Reading | None = None
        self._spacing_before_s = math.inf
        self._duplicate_told_ns: int | None = None

    def see(self, reading: Reading) -> tuple[Reading, list[QualityEvent]]:
        """The reading as it is to be written, and what is to be told about it."""
        reading = self._judged(reading)
        self._flags[reading.flag] += 1
        if reading.flag is Flag.TIMEOUT:
            self._spacing.silence(reading.t_ns)
        elif reading.flag is Flag.RECONNECT:
            self._spacing.connected_again(reading.t_ns)
            self._report("reconnect", "connected again", reading, self._spacing.last_ns)
        elif reading.flag is Flag.DUPLICATE:
            self._duplicate(reading)
        else:
            if reading.flag in _UPDATES:
                self._spacing.update(reading.t_ns)
            if reading.flag in _SENTENCES and reading.flag is not self._before:
                self._report(*_SENTENCES[reading.flag], reading)
            elif reading.flag is Flag.STALE and self._before is not Flag.STALE:
                self._stale_by_adapter(reading)
        self._before = reading.flag
        return reading, self._taken()

    def end(self) -> list[QualityEvent]:
        """What only the end of the readings settles."""
        self._spacing.end()
        return self._taken()

    def summary(self) -> dict[str, float]:
        """Counts over everything seen."""
        flagged = {flag.value: count for flag, count in sorted(self._flags.items()) if flag is not Flag.GOOD}
        return {
            "readings": self._flags[Flag.GOOD],
            "gaps": self._spacing.gaps,
            "missing_updates": self._spacing.missing_updates,
            "longest_gap_s": round(self._spacing.longest_gap_s, 6),
            "worst_jitter_ratio": round(self._spacing.worst_jitter_ratio, 4),
            **flagged,
        }

    def _judged(self, reading: Reading) -> Reading:
        """A good reading, or the flag that it deserves."""
        if reading.flag is not Flag.GOOD:
            return reading
        if self._read_twice(reading):
            return replace(reading, flag=Flag.DUPLICATE)
        if self._last_good is not None:
            self._spacing_before_s = (reading.t_ns - self._last_good.t_ns) / 1e9
        self._last_good = reading
        return replace(reading, flag=Flag.STALE) if self._standstill.stuck(reading) else reading

    def _read_twice(self, reading: Reading) -> bool:
        """The same digits far too soon; after a late reading soon is normal."""
        last = self._last_good
        if last is None or _values(reading) != _values(last):
            return False
        spacing_s = (reading.t_ns - last.t_ns) / 1e9
        return spacing_s < _TOO_SOON * self._interval_s and self._spacing_before_s < 1.25 * self._interval_s

    def _duplicate(self, reading: Reading) -> None:
        """Tell of the first in a while; a device that is asked too often would fill the log."""
        told_ns = self._duplicate_told_ns
        if told_ns is None or (reading.t_ns - told_ns) / 1e9 >= _QUIET_BETWEEN_DUPLICATES_S:
            self._duplicate_told_ns = reading.t_ns
            self._report(
                "duplicate", f"an update was read twice ({self._flags[Flag.DUPLICATE]} so far)", reading
            )

    def _stale_by_adapter(self, reading: Reading) -> None:
        """The device's own clock or count stands still."""
        if all(remark.kind != "stuck" for remark in self._events):
            self._report("stuck", "the meter repeats an old value: look at the meter", reading)

    def _report(self, kind: str, message: str, reading: Reading, since_ns: int | None = None) -> None:
        self._events.append(QualityEvent(kind, message, reading.t_ns, since_ns))

    def _taken(self) -> list[QualityEvent]:
        taken = self._events.copy()
        self._events.clear()
        return taken


def _values(reading: Reading) -> tuple[float | None, ...]:
    return (reading.power_w, reading.voltage_v, reading.current_a, reading.energy_j)
