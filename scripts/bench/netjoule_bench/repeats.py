# SPDX-License-Identifier: Apache-2.0
"""Rounds of several arms, taken by turns, and what a round's figures say together. Pure but for the arms."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
INTERVALS = (
    "In brackets the least and the greatest round: of 5 rounds a confidence interval of 94 % of the median."
)


def interleaved(arms: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """Run every arm once per round, so that what drifts on the machine meets all of them.

    Returns the outcomes of each arm, one per round.
    """
    taken: dict[str, list[T]] = {name: [] for name in arms}
    for _ in range(repeats):
        for name, run in arms.items():
            taken[name].append(run())
    return taken


def median(values: Sequence[float | None]) -> float | None:
    """The median; None when a value is missing or there is none."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return statistics.median(known)


def ratio(own: Sequence[float | None], reference: Sequence[float | None]) -> float | None:
    """Median of the ratios within each round; None when a figure is missing or a reference is 0."""
    rounds = list(zip(own, reference, strict=True))
    return median([None if a is None or not b else a / b for a, b in rounds])


def interval(values: Sequence[float | None], form: str = ".1f") -> str:
    """The median with its confidence interval from the least to the greatest of all rounds.

    It holds the true median of a round with a probability of 1 - 2^(1-n) whatever the distribution: 94 % of 5
    rounds. "-" when a value is missing; without an interval for less than 3 rounds.
    """
    middle = median(values)
    known = [value for value in values if value is not None]
    if middle is None or len(known) < 3:
        return shown(middle, form)
    return f"{middle:{form}} ({min(known):{form}} to {max(known):{form}})"


def shown(value: float | None, form: str = ".2f") -> str:
    """A figure in its form; "-" where there is none."""
    return "-" if value is None else format(value, form)
