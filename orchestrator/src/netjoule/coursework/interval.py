# SPDX-License-Identifier: Apache-2.0
"""Means with 95 % t intervals over blocks, as analysis-r's tables have them. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache
from statistics import fmean, stdev

_LEVEL = 0.95


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % t interval of the mean.

    Args:
        values: one per block, in any unit; two at least.

    Raises:
        ValueError: for fewer than two.
    """
    if len(values) < 2:
        raise ValueError("an interval needs two blocks")
    return t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def differ_clearly(pairs: Collection[tuple[float, float]]) -> bool:
    """Whether the interval of the mean log-ratio of pairs, one per block, leaves out equality.

    Args:
        pairs: of values above 0.
    """
    if len(pairs) < 2:
        return False
    logs = [math.log(a / b) for a, b in pairs]
    return abs(fmean(logs)) > half_width(logs)


@cache
def t_quantile(degrees: int) -> float:
    """The 0.975 quantile of Student's t, found by halving.

    Args:
        degrees: of freedom, 1 or more.
    """
    low, high = 0.0, 13.0  # that of one degree is 12.706
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < _LEVEL else (low, middle)
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """Probability that |T| < t: the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(degrees))
    sine, square = math.sin(theta), math.cos(theta) ** 2
    odd = degrees % 2
    term, total = math.cos(theta) ** odd, 0.0
    for k in range(odd, degrees - 1, 2):
        total += term
        term *= square * (k + 1) / (k + 2)
    return 2 / math.pi * (theta + sine * total) if odd else sine * total
