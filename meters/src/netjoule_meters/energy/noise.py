# SPDX-License-Identifier: Apache-2.0
"""Scatter of autocorrelated readings, and how many independent readings they are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netjoule_meters.energy.windows import FloatArray

GREATEST_CORRELATION = 0.95
LEAST_DEGREES_OF_FREEDOM = 3.0
"""JCGM 101, 6.4.9.4: with fewer, the standard deviation of the t distribution does not exist."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Standard deviation of one reading in W, lag-1 correlation (0 to 0.95), degrees of freedom (at least 3).

    `known` is False when no window holds two readings: then there is nothing to estimate from.
    """

    sigma_w: float
    correlation: float
    degrees_of_freedom: float
    known: bool

    def effective_readings(self, weights_s: FloatArray) -> float:
        """Return how many independent readings a weighted mean is worth, at least 1 (0 for no readings)."""
        if weights_s.size == 0:
            return 0.0
        equal_weight = float(weights_s.sum() ** 2 / (weights_s @ weights_s))
        return max(1.0, equal_weight * _shrink(self.correlation))

    def u_mean_w(self, weights_s: FloatArray) -> float:
        """Return the standard uncertainty in W of the mean of readings with these weights."""
        effective = self.effective_readings(weights_s)
        return self.sigma_w / math.sqrt(effective) if effective > 0 else 0.0


def estimate(windows: Sequence[FloatArray]) -> Scatter:
    """Return the scatter pooled over windows that share one state, each about its own mean.

    The readings are taken as a first-order autoregressive series: n of them are worth n (1-r)/(1+r), and
    their sample variance is corrected for that. The lag-1 estimate is corrected for its bias in short
    series (Kendall 1954: about -(1+3r)/n); negative correlation is not credited.
    """
    usable = [values for values in windows if values.size >= 2]
    if not usable:
        return Scatter(0.0, 0.0, LEAST_DEGREES_OF_FREEDOM, known=False)
    residuals = [values - values.mean() for values in usable]
    squares = sum(float(r @ r) for r in residuals)
    largest = max(float(np.abs(values).max()) for values in usable)
    count = sum(r.size for r in residuals)
    if squares <= count * (1e-12 * largest) ** 2:  # rounding of equal numbers is not scatter
        return Scatter(0.0, 0.0, max(LEAST_DEGREES_OF_FREEDOM, float(count - len(usable))), known=True)
    lagged = sum(float(r[:-1] @ r[1:]) for r in residuals) / squares
    per_window = count / len(usable)
    correlation = min(max(lagged + (1 + 3 * lagged) / per_window, 0.0), GREATEST_CORRELATION)
    worth = [max(2.0, r.size * _shrink(correlation)) for r in residuals]
    variance = squares / sum(r.size * (1 - 1 / n) for r, n in zip(residuals, worth, strict=True))
    freedom = max(LEAST_DEGREES_OF_FREEDOM, sum(worth) - len(usable))
    return Scatter(math.sqrt(variance), correlation, freedom, known=True)


def _shrink(correlation: float) -> float:
    return (1 - correlation) / (1 + correlation)
