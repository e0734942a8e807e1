# SPDX-License-Identifier: Apache-2.0
"""When an emulated instrument shows a new value: its own update grid over the power stream.

Window n is [anchor + n tau, anchor + (n + 1) tau]; its mean is shown one period later, as instruments do.
A stream that is late is waited for, at most half a period; then the update has no data. Nothing is
carried over and nothing is made up. An instrument that was itself held up (a busy host) loses updates: it
never shows an old value at a later time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from netjoule_meters.emulated.power_history import PowerHistory

_PATIENCE = 0.5
_SAME_TIME_S = 1e-9
"""Instants closer than this are one instant; sums of binary fractions are not exact."""


@dataclass(frozen=True, slots=True)
class Update:
    """Mean power over one window, W; None when the stream does not cover it."""

    mean_w: float | None


class UpdateGrid:
    """Decides which window to show next, and when. Times are campaign seconds."""

    def __init__(self, interval_s: float, history: PowerHistory) -> None:
        self.interval_s = interval_s
        self._history = history
        self._next: int | None = None
        self._restarted_s: float | None = None

    def restart(self, interval_s: float, now_s: float) -> None:
        """Change the interval; the first whole window begins after ``now_s``."""
        self.interval_s, self._restarted_s, self._next = interval_s, now_s, None

    def due_s(self) -> float | None:
        """When the next update is shown if the stream is in time; None before the stream has begun."""
        window = self._window()
        return None if window is None else window[1] + self.interval_s

    def wake_s(self, now_s: float) -> float | None:
        """When ``take`` is worth calling again even if no more power arrives."""
        due_s = self.due_s()
        if due_s is None or now_s < due_s - _SAME_TIME_S:
            return due_s
        return due_s + _PATIENCE * self.interval_s

    def take(self, now_s: float) -> Update | None:
        """The next update when its time has come, else None. Call again until None."""
        self._skip_missed(now_s)
        window, due_s = self._window(), self.due_s()
        if window is None or due_s is None or now_s < due_s - _SAME_TIME_S:
            return None
        mean_w = self._history.mean_w(*window)
        waited_s = now_s - due_s
        covered = self._history.end_s >= window[1]
        if mean_w is None and not covered and waited_s < _PATIENCE * self.interval_s - _SAME_TIME_S:
            return None
        assert self._next is not None
        self._next += 1
        self._history.forget_before(window[1])
        return Update(mean_w)

    def _skip_missed(self, now_s: float) -> None:
        """A display that should have changed since then is not shown afterwards."""
        due_s = self.due_s()
        if due_s is not None and self._next is not None and now_s > due_s:
            self._next += int((now_s - due_s) / self.interval_s + _SAME_TIME_S)

    def _window(self) -> tuple[float, float] | None:
        anchor_s = self._history.start_s
        if anchor_s is None:
            return None
        if self._next is None:
            since_s = 0.0 if self._restarted_s is None else self._restarted_s - anchor_s
            self._next = max(0, math.ceil(since_s / self.interval_s - 1e-9))
        start_s = anchor_s + self._next * self.interval_s
        return start_s, start_s + self.interval_s
