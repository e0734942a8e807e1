# SPDX-License-Identifier: Apache-2.0
"""Which stretch of campaign time a number refers to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

EDGE_TOLERANCE_S = 2e-6
"""CSV times carry 6 decimals: roundings of one instant differ by at most 1e-6 s; twice that is allowed."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of campaign time in seconds, start before end."""

    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not self.end_s > self.start_s:
            raise ValueError(f"a window must end after it starts, got {self.start_s} s to {self.end_s} s")

    @property
    def length_s(self) -> float:
        """Length in seconds."""
        return self.end_s - self.start_s

    @property
    def middle_s(self) -> float:
        """Middle in campaign time, seconds."""
        return (self.start_s + self.end_s) / 2


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals in time order: start and end in campaign seconds, work done in each, in the run's unit."""

    start_s: FloatArray
    end_s: FloatArray
    work: FloatArray

    @classmethod
    def empty(cls) -> Intervals:
        """None at all."""
        return cls(np.empty(0), np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class MeasuredSpan:
    """The effective measure window and the work done in it (None: none is counted there)."""

    window: Window
    work: float | None

    @property
    def work_per_s(self) -> float | None:
        """Work over the window's length, of Mb T_A in Mb/s; None when none is counted."""
        return None if self.work is None else self.work / self.window.length_s


def measured_span(measure: Window, intervals: Intervals) -> MeasuredSpan:
    """Return the longest contiguous span of whole intervals of work inside `measure`, the first of equals.

    Without one, the window is `measure` itself and no work is known.
    """
    inside = (intervals.start_s >= measure.start_s - EDGE_TOLERANCE_S) & (
        intervals.end_s <= measure.end_s + EDGE_TOLERANCE_S
    )
    starts, ends, sizes = intervals.start_s[inside], intervals.end_s[inside], intervals.work[inside]
    if starts.size == 0:
        return MeasuredSpan(measure, None)
    breaks = np.flatnonzero(np.abs(starts[1:] - ends[:-1]) > EDGE_TOLERANCE_S) + 1
    firsts = np.concatenate(([0], breaks))
    lasts = np.concatenate((breaks, [starts.size])) - 1
    best = int(np.argmax(ends[lasts] - starts[firsts]))
    first, last = int(firsts[best]), int(lasts[best])
    window = Window(float(starts[first]), float(ends[last]))
    return MeasuredSpan(window, float(sizes[first : last + 1].sum()))


def span_is_short(measure: Window, span: Window, intervals: Intervals) -> bool:
    """Return whether `span` misses more of `measure` than one cut interval at each edge explains."""
    if intervals.start_s.size == 0:
        return False
    longest_s = float((intervals.end_s - intervals.start_s).max())
    return measure.length_s - span.length_s > 2 * longest_s + EDGE_TOLERANCE_S
