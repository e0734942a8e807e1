# SPDX-License-Identifier: Apache-2.0
"""Scatter of autocorrelated readings, and how well their mean is known.

Readings are taken as a first-order autoregressive series: correlation r from one to the next. Twenty
readings say little about r, and a mean whose uncertainty rests on one estimated r is too sure of itself
just when r is high. So r is not estimated but kept as a distribution (JCGM 101, 6.4: what is known of an
input is its distribution): each r on a grid has its likelihood, its own standard deviation of a reading
and its own standard deviation of the mean, and draws of the mean first draw r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netjoule_energy.power.windows import FloatArray

GREATEST_CORRELATION = 0.95
CORRELATIONS: FloatArray = np.linspace(0.0, GREATEST_CORRELATION, 39)
"""Values of r that are considered. Negative correlation is not credited."""
LEAST_DEGREES_OF_FREEDOM = 3.0
"""JCGM 101, 6.4.9.4: with fewer, the standard deviation of the t distribution does not exist."""


@dataclass(frozen=True, slots=True)
class MeanNoise:
    """Distribution of the error of a mean: a mixture of scaled t distributions.

    scales_w: their scales in W, one for each of `CORRELATIONS`; probabilities: their weights.
    """

    scales_w: FloatArray
    probabilities: FloatArray
    degrees_of_freedom: float

    @property
    def u_w(self) -> float:
        """Standard uncertainty of the mean in W, for a given spread of readings."""
        return math.sqrt(float(self.probabilities @ self.scales_w**2))

    def draw(self, rng: np.random.Generator, draws: int) -> FloatArray:
        """Return errors of the mean in W."""
        picked = rng.choice(self.scales_w, size=draws, p=self.probabilities)
        return np.asarray(picked * rng.standard_t(self.degrees_of_freedom, draws), dtype=np.float64)


NO_NOISE = MeanNoise(np.zeros(1), np.ones(1), LEAST_DEGREES_OF_FREEDOM)


@dataclass(frozen=True, slots=True)
class Scatter:
    """What readings of one state say about their scatter.

    sigmas_w: standard deviation of one reading in W for each of `CORRELATIONS`. probabilities: how
    probable each of these is. `known` is False when no window holds two readings.
    """

    sigmas_w: FloatArray
    probabilities: FloatArray
    degrees_of_freedom: float
    known: bool

    @property
    def correlation(self) -> float:
        """Expected correlation of neighbouring readings."""
        return float(self.probabilities @ CORRELATIONS)

    def effective_readings(self, weights_s: FloatArray) -> float:
        """Return how many independent readings a weighted mean is worth, at least 1 (0 for no readings)."""
        if weights_s.size == 0:
            return 0.0
        return max(1.0, 1 / float(self.probabilities @ variance_of_mean(_equal_weight(weights_s))))

    def mean_noise(self, weights_s: FloatArray) -> MeanNoise:
        """Return the distribution of the error of a mean with these weights."""
        if weights_s.size == 0 or not self.known:
            return NO_NOISE
        scales_w = self.sigmas_w * np.sqrt(variance_of_mean(_equal_weight(weights_s)))
        return MeanNoise(scales_w, self.probabilities, self.degrees_of_freedom)


def variance_of_mean(count: float) -> FloatArray:
    """Return the variance of the mean of `count` readings of variance 1, for each of `CORRELATIONS`.

    (1 + 2 sum over k of (1 - k/n) r^k) / n in closed form.
    """
    r = CORRELATIONS
    return np.asarray(
        np.maximum((count * (1 - r**2) - 2 * r * (1 - r**count)) / (count * (1 - r)) ** 2, 0.0),
        dtype=np.float64,
    )


def estimate(windows: Sequence[FloatArray]) -> Scatter:
    """Return the scatter pooled over windows that share one state, each about a mean of its own."""
    usable = [values - values.mean() for values in windows if values.size >= 2]
    flat = np.full(CORRELATIONS.size, 1 / CORRELATIONS.size)
    if not usable:
        return Scatter(np.zeros(CORRELATIONS.size), flat, LEAST_DEGREES_OF_FREEDOM, known=False)
    count = sum(values.size for values in usable)
    freedom = max(LEAST_DEGREES_OF_FREEDOM, float(count - len(usable)))
    squares = sum(float(values @ values) for values in usable)
    largest = max(float(np.abs(values).max()) for values in windows if values.size)
    if squares <= count * (1e-12 * largest) ** 2:  # rounding of equal numbers is not scatter
        first = np.zeros(CORRELATIONS.size)
        first[0] = 1.0
        return Scatter(np.zeros(CORRELATIONS.size), first, freedom, known=True)
    return _posterior(usable, count - len(usable), freedom)


def _posterior(residuals: Sequence[FloatArray], contrasts: int, freedom: float) -> Scatter:
    """Exact likelihood of the series for each r, with means and standard deviation integrated out."""
    quadratic = np.zeros(CORRELATIONS.size)
    log_weight = np.zeros(CORRELATIONS.size)
    for values in residuals:
        quadratic += _quadratic_form(values)
        count = values.size
        precision_of_mean = (count - (count - 2) * CORRELATIONS) / (1 + CORRELATIONS)
        log_weight -= (count - 1) / 2 * np.log(1 - CORRELATIONS**2) + np.log(precision_of_mean) / 2
    log_weight -= contrasts / 2 * np.log(quadratic)
    weight = np.exp(log_weight - log_weight.max())
    return Scatter(np.sqrt(quadratic / contrasts), weight / weight.sum(), freedom, known=True)


def _quadratic_form(values: FloatArray) -> FloatArray:
    """Squares of a series about its best mean, weighed by the inverse of its correlation matrix, per r."""
    r = CORRELATIONS
    inner = values[1:-1]
    squares, inner_squares = float(values @ values), float(inner @ inner)
    lagged = float(values[:-1] @ values[1:])
    about_zero = (squares + r**2 * inner_squares - 2 * r * lagged) / (1 - r**2)
    total = (float(values.sum()) - r * float(inner.sum())) / (1 + r)
    precision_of_mean = (values.size - (values.size - 2) * r) / (1 + r)
    return np.asarray(np.maximum(about_zero - total**2 / precision_of_mean, 1e-300), dtype=np.float64)


def _equal_weight(weights_s: FloatArray) -> float:
    """Number of readings of equal weight that scatter as little as these."""
    return float(weights_s.sum() ** 2 / (weights_s @ weights_s))
