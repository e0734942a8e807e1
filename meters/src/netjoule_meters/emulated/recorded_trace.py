# SPDX-License-Identifier: Apache-2.0
"""A recorded power trace as the power of an emulated instrument, replayed in real time from its first row.

Two forms: CSV with the columns ``t_s`` and ``power_w`` (a meter's file of a campaign, for instance), each
row holding until the next; or NDJSON lines of the contract ``device_stream``.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netjoule_meters.emulated.power_history import BadPowerStream, PowerInterval, parse_interval
from netjoule_meters.errors import UsageError


@dataclass
class TraceSource:
    """Intervals of a trace, shifted so that the first one begins at the first call; over after the last."""

    trace: Sequence[PowerInterval]
    repeat: bool = False
    _shift_s: float | None = None
    _next: int = 0

    def descriptor(self) -> int | None:
        """Nothing to watch."""
        return None

    def take(self, now_s: float) -> list[PowerInterval] | None:
        """What of the trace lies before ``now_s``; None once all of it does."""
        if self._shift_s is None:
            self._shift_s = now_s - self.trace[0].t_start_s
        due: list[PowerInterval] = []
        while self._next < len(self.trace):
            interval = self.trace[self._next]
            if interval.t_end_s + self._shift_s > now_s:
                return due
            due.append(
                PowerInterval(
                    interval.t_start_s + self._shift_s, interval.t_end_s + self._shift_s, interval.power_w
                )
            )
            self._next += 1
            if self._next == len(self.trace) and self.repeat:
                self._next = 0
                self._shift_s += interval.t_end_s - self.trace[0].t_start_s
        return due or None


def load_trace(path: Path, *, repeat: bool = False) -> TraceSource:
    """The trace in a file.

    Raises:
        UsageError: when it cannot be read or holds no trace.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the power trace {path}: {why}") from error
    try:
        is_ndjson = bool(lines) and lines[0].lstrip().startswith("{")
        trace = [parse_interval(line) for line in lines if line.strip()] if is_ndjson else _held(lines)
    except (BadPowerStream, KeyError, ValueError) as error:
        raise UsageError(f"{path} is not a power trace: {error}") from error
    if not trace:
        raise UsageError(f"{path} is not a power trace: it needs at least two rows of t_s and power_w")
    return TraceSource(trace, repeat)


def _held(lines: Sequence[str]) -> list[PowerInterval]:
    """Rows of a CSV file, each holding until the next; rows without a number are left out."""
    reader = csv.DictReader(lines)
    missing = {"t_s", "power_w"} - set(reader.fieldnames or ())
    if missing:
        raise ValueError(f"its header has no column {' and no '.join(sorted(missing))}")
    rows = [(float(row["t_s"]), float(row["power_w"])) for row in reader if row["power_w"]]
    if not all(map(math.isfinite, (value for row in rows for value in row))):
        raise ValueError("a value is not finite")
    held = []
    for (t_s, power_w), (next_s, _) in itertools.pairwise(rows):
        if next_s <= t_s:
            raise ValueError(f"time does not go on after t_s = {t_s:g}")
        held.append(PowerInterval(t_s, next_s, power_w))
    return held
