# SPDX-License-Identifier: Apache-2.0
"""The gate's rule a second time, with boundaries by Armitage's recursion instead of rpact's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

ALPHA = 0.05
_STEPS = 4000


@dataclass(frozen=True)
class Look:
    critical_value: float
    ratio: float
    low: float
    high: float
    verdict: str


def critical_values(information: Sequence[float]) -> list[float]:
    """One-sided boundaries that spend 2 (1 - Phi(z(1 - alpha / 2) / sqrt(t))) until t (Lan and DeMets 1983).

    The density of the score that has crossed no boundary yet is carried from look to look on a grid
    (Armitage, McPherson and Rowe 1969).
    """
    stats = pytest.importorskip("scipy.stats")
    quantile = stats.norm.ppf(1 - ALPHA / 2)
    spent = [2 * stats.norm.sf(quantile / math.sqrt(min(1.0, t))) for t in information]
    found: list[float] = []
    grid = np.linspace(-9.0, 9.0, _STEPS)
    density = stats.norm.pdf(grid, scale=math.sqrt(information[0]))
    for place, t in enumerate(information):
        to_spend = spent[place] - (spent[place - 1] if place else 0.0)
        if place:
            step = math.sqrt(t - information[place - 1])
            kernel = stats.norm.pdf(grid[:, None] - grid[None, :], scale=step)
            density = kernel @ (density * (grid[1] - grid[0]))
        tail = np.cumsum(density[::-1])[::-1] * (grid[1] - grid[0])
        at = np.interp(-to_spend, -tail, grid - (grid[1] - grid[0]) / 2)
        found.append(float(at) / math.sqrt(t))
        # Of the cell that the boundary cuts, its part below.
        density = density * np.clip((at - grid) / (grid[1] - grid[0]) + 0.5, 0.0, 1.0)
    return found


def decide(ratios: Sequence[float], looks: Sequence[int], margin: float, tolerance: float) -> list[Look]:
    """The looks of a session until the one that decided.

    Args:
        ratios: head over base, one per block.
        looks: planned blocks.
        margin, tolerance: as ratios.
    """
    stats = pytest.importorskip("scipy.stats")
    critical = critical_values([look / looks[-1] for look in looks])
    d = np.log(ratios)
    found: list[Look] = []
    for place, n in enumerate(looks):
        if n > len(d):
            break
        half = stats.t.isf(stats.norm.sf(critical[place]), n - 1) * d[:n].std(ddof=1) / math.sqrt(n)
        low, high = math.exp(d[:n].mean() - half), math.exp(d[:n].mean() + half)
        last = n == looks[-1]
        verdict = "pass" if high < margin else "fail" if low > tolerance else "continue"
        verdict = "inconclusive" if last and verdict == "continue" else verdict
        found.append(Look(critical[place], math.exp(d[:n].mean()), low, high, verdict))
        if verdict != "continue":
            break
    return found
