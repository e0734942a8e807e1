# SPDX-License-Identifier: Apache-2.0
"""Idle power at the middle of a measure window, from the idle windows on both sides of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from netjoule_energy.power.windows import Window

DRIFT_FLOOR_RATIO = 0.005
DRIFT_U_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle power before, after and at the middle of the measure window, in W.

    after_share: weight of `after_w` in `at_middle_w` (0.5 when the windows lie symmetrically).
    """

    before_w: float
    after_w: float
    at_middle_w: float
    after_share: float

    @property
    def drift_w(self) -> float:
        """Change of idle power over the run in W."""
        return self.after_w - self.before_w


def interpolate(before_w: float, before: Window, after_w: float, after: Window, measure: Window) -> Idle:
    """Return the line through both idle means (at the middles of their windows) at mid-`measure`."""
    share = (measure.middle_s - before.middle_s) / (after.middle_s - before.middle_s)
    return Idle(before_w, after_w, before_w + share * (after_w - before_w), share)


def has_drifted(idle: Idle, u_difference_w: float) -> bool:
    """Return whether idle moved by more than max(3 u(difference), 0.5 % of P_I).

    `u_difference_w` is the standard uncertainty of after minus before in W. It holds noise only: gain and
    offset of one meter on one range are the same in both idle windows.
    """
    limit_w = max(DRIFT_U_FACTOR * u_difference_w, DRIFT_FLOOR_RATIO * abs(idle.at_middle_w))
    # A difference of rounding size is never drift, whatever the limit (an idle power of 0 W has limit 0).
    return abs(idle.drift_w) > limit_w + 1e-12


def drift_half_width_w(idle: Idle, u_difference_w: float) -> float:
    """Return the half-width in W of the rectangular error of the interpolation.

    Between the two idle windows the true idle power may have left the straight line; it is taken to lie
    within half of the observed change. Change that noise explains is not counted twice.
    """
    excess = idle.drift_w**2 - u_difference_w**2
    return math.sqrt(max(excess, 0.0)) / 2
