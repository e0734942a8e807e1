# SPDX-License-Identifier: Apache-2.0
"""Windows until done: readings on an edge, the tail behind the work, how many updates it wants.

All of the work lies in such a window, and its energy is the integral of P - P_I from the first request to
the end of the last. A reading that lies on an edge is shared by time, as if power had been constant in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netjoule_energy.power.readings import INSTANTANEOUS, Pieces, Readings, instants_of, pieces_of
from netjoule_energy.power.windows import FloatArray, Window

LEAST_UPDATES = 20
"""Work shorter than so many updates of the meter is repeated back to back inside one window."""
_TOUCH_S = 1e-9


def updates_in(window: Window, update_interval_s: float) -> int:
    """Return the whole updates of a meter that fit in a window."""
    return int(window.length_s / update_interval_s + 1e-9)


def straddle_half_widths_w(readings: Readings, window: Window) -> tuple[float, float]:
    """Return limits in W of what sharing a reading by time does to the mean of a window, by edge.

    Of a mean over an update the part outside of the window is known from the reading beyond it, and so is
    what the part inside may have drawn: the limit is exact where power outside is steady. Of instantaneous
    readings power may step anywhere between two of them.
    """
    if readings.semantics == INSTANTANEOUS:
        limits_j = [_of_instants(*instants_of(readings), edge, window) for edge in _edges(window)]
    else:
        limits_j = [_of_means(pieces_of(readings), edge, window) for edge in _edges(window)]
    return limits_j[0] / window.length_s, limits_j[1] / window.length_s


def _edges(window: Window) -> tuple[float, float]:
    return window.start_s, window.end_s


def _of_means(pieces: Pieces, edge_s: float, window: Window) -> float:
    """Limit in J at one edge: time outside times power less that of the reading beyond; or as much inside."""
    on = np.flatnonzero((pieces.start_s < edge_s - _TOUCH_S) & (pieces.end_s > edge_s + _TOUCH_S))
    if on.size == 0:
        return 0.0
    at, first = int(on[0]), edge_s == window.start_s
    start_s, end_s, power_w = (float(part[at]) for part in (pieces.start_s, pieces.end_s, pieces.power_w))
    outside_s = edge_s - start_s if first else end_s - edge_s
    inside_s = min(end_s, window.end_s) - max(start_s, window.start_s)
    beyond, within = (at - 1, at + 1) if first else (at + 1, at - 1)
    limits = [
        length_s * abs(power_w - float(pieces.power_w[k]))
        for length_s, k in ((outside_s, beyond), (inside_s, within))
        if 0 <= k < pieces.power_w.size
    ]
    return max(limits, default=inside_s * abs(power_w))


def _of_instants(at_s: FloatArray, power_w: FloatArray, edge_s: float, window: Window) -> float:
    """Limit in J at one edge between two instants: power may have stepped anywhere between them."""
    later = int(np.searchsorted(at_s, edge_s))
    if later in (0, at_s.size) or at_s[later] - edge_s < _TOUCH_S:
        return 0.0
    start_s, end_s = float(at_s[later - 1]), float(at_s[later])
    inside_s = min(end_s, window.end_s) - max(start_s, window.start_s)
    return inside_s * abs(float(power_w[later] - power_w[later - 1]))


@dataclass(frozen=True, slots=True)
class RadioStates:
    """States of a radio as logged: campaign seconds, and whether it was idle from then on."""

    t_s: FloatArray
    idle: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the work; window: None without any. cut: it ended before the radio was idle."""

    window: Window | None
    cut: bool

    @property
    def length_s(self) -> float:
        """Length in seconds."""
        return 0.0 if self.window is None else self.window.length_s


def tail_of(planned: Window, states: RadioStates | None, greatest_s: float | None = None) -> Tail:
    """Return the tail: until the radio is idle, or without its states the planned one.

    planned: from the end of the work to where nothing was done yet. greatest_s: greatest length of a tail.
    """
    if states is None:
        return Tail(planned, cut=False)
    limit_s = planned.end_s if greatest_s is None else min(planned.end_s, planned.start_s + greatest_s)
    before = int(np.searchsorted(states.t_s, planned.start_s, side="right")) - 1
    if before >= 0 and states.idle[before]:
        return Tail(None, cut=False)
    idle_s = states.t_s[before + 1 :][states.idle[before + 1 :]]
    if idle_s.size == 0 or idle_s[0] > limit_s:
        return Tail(Window(planned.start_s, limit_s), cut=True)
    end_s = float(idle_s[0])
    return Tail(Window(planned.start_s, end_s) if end_s > planned.start_s else None, cut=False)
