# SPDX-License-Identifier: Apache-2.0
"""The power that an emulated instrument is fed: contiguous intervals of constant power."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass

_TOLERANCE_S = 1e-5
"""Times in the stream have 6 decimals; a crack of two roundings is not a hole."""


class BadPowerStream(ValueError):
    """A line of the power stream that is not one."""


@dataclass(frozen=True, slots=True)
class PowerInterval:
    """Constant power between two instants of campaign time (s, W)."""

    t_start_s: float
    t_end_s: float
    power_w: float


def parse_interval(line: str) -> PowerInterval:
    """One line of the device stream (contract ``device_stream``); fields it does not need are ignored.

    Raises:
        BadPowerStream: saying what is wrong.
    """
    try:
        document = json.loads(line)
        interval = PowerInterval(*(float(document[key]) for key in ("t_start_s", "t_end_s", "power_w")))
    except (ValueError, KeyError, TypeError) as error:
        raise BadPowerStream(
            f"not a line of a power stream: {line[:80]!r} ({error!r}); "
            "expected JSON with t_start_s, t_end_s, power_w"
        ) from error
    if not all(map(math.isfinite, (interval.t_start_s, interval.t_end_s, interval.power_w))):
        raise BadPowerStream(f"a power stream holds finite numbers only: {line[:80]!r}")
    if interval.t_end_s <= interval.t_start_s:
        raise BadPowerStream(f"an interval of the power stream ends before it starts: {line[:80]!r}")
    return interval


class PowerHistory:
    """Intervals not yet measured; oldest first."""

    def __init__(self) -> None:
        self._intervals: deque[PowerInterval] = deque()
        self.start_s: float | None = None

    @property
    def end_s(self) -> float:
        """End of the newest interval."""
        return self._intervals[-1].t_end_s if self._intervals else -math.inf

    def append(self, interval: PowerInterval) -> None:
        """Add the next interval.

        Raises:
            BadPowerStream: when it overlaps what is there.
        """
        if interval.t_start_s < self.end_s - _TOLERANCE_S:
            raise BadPowerStream(
                f"the power stream goes back to {interval.t_start_s:.6f} s after an interval "
                f"that ended at {self.end_s:.6f} s"
            )
        if self.start_s is None:
            self.start_s = interval.t_start_s
        self._intervals.append(interval)

    def mean_w(self, start_s: float, end_s: float) -> float | None:
        """Mean power between two instants, W; None when any part of it is not known."""
        energy_j = known_s = 0.0
        for interval in self._intervals:
            overlap_s = min(end_s, interval.t_end_s) - max(start_s, interval.t_start_s)
            if overlap_s > 0:
                known_s += overlap_s
                energy_j += overlap_s * interval.power_w
        if known_s < end_s - start_s - 2 * _TOLERANCE_S:
            return None
        return energy_j / known_s

    def forget_before(self, t_s: float) -> None:
        """Drop what ended before ``t_s``, but never the newest interval."""
        while len(self._intervals) > 1 and self._intervals[0].t_end_s <= t_s:
            self._intervals.popleft()
