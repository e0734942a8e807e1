# SPDX-License-Identifier: Apache-2.0
"""What the least step of a meter hides.

A meter that shows whole watts reads a steady 8.3 W as 8 W for ever: no scatter tells, and no number of
readings averages it away. How far a mean may be off depends on how much the readings move between steps:
by half a step when they stand still, by hardly anything once their scatter reaches a step (the first
harmonic of a quantiser under Gaussian dither falls with exp(-2 pi^2 (sigma/step)^2)).
"""

from __future__ import annotations

import math

import numpy as np

from netjoule_energy.power.readings import ENERGY_COUNTER, Readings, WindowMean
from netjoule_energy.power.windows import FloatArray

_UNIT = 1e-6
"""Counts are compared as whole micro-units."""


def step_of_decimals(decimals: int) -> float:
    """Return the value of one in the last of so many decimals."""
    return float(10.0**-decimals)


def counter_step_j(energy_j: FloatArray) -> float:
    """Return the greatest step in J of which all differences of counts are multiples; 0 without any."""
    counts = np.rint(energy_j[np.isfinite(energy_j)] / _UNIT).astype(np.int64)
    return float(np.gcd.reduce(np.abs(np.diff(counts)))) * _UNIT if counts.size > 1 else 0.0


def half_widths_w(readings: Readings, mean: WindowMean, step: float) -> tuple[float, ...]:
    """Return half-widths in W of the rectangular errors that the step leaves in the mean of a window.

    step: least step of the readings, W; of a counter J.
    """
    if readings.semantics == ENERGY_COUNTER:
        return (step / 2 / mean.window.length_s,) * 2
    scatter_w = float(mean.values_w.std()) if mean.values_w.size > 1 else 0.0
    if step <= 0:
        return (0.0,)
    return (step / 2 * math.exp(-2 * (math.pi * min(scatter_w / step, 10.0)) ** 2),)
