# SPDX-License-Identifier: Apache-2.0
"""What reading a radio takes of its host's CPU, in idle and while a flow is measured. Pure.

A reader that takes more while packets flow puts its own power into P_A - P_I. What it takes in both alike
cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from netjoule.core.reason import Reason
from netjoule.design.timeline import Span

TOLERANCE_CORES = 0.002
"""Shares of a core that differ by no more count as equal: 20 mW of a core that takes 10 W when busy. A look
costs about a millisecond, so one look a second stays below it however unlike two looks are."""

Look = tuple[float, float]
"""Campaign time of a record in seconds, and CPU seconds that the reader took since the record before."""


@dataclass(frozen=True, slots=True)
class ReaderCost:
    """CPU seconds per second of one node's reader."""

    node: str
    idle_cores: float
    measure_cores: float

    def as_json(self) -> dict[str, str | float]:
        """As run.json holds it."""
        return asdict(self)


def cores(looks: Iterable[Look], spans: Sequence[Span]) -> float | None:
    """CPU seconds per second over some windows, between the first and the last record of each.

    None when no window has records of two moments.
    """
    known = list(looks)
    used_s = passed_s = 0.0
    for span in spans:
        inside = [look for look in known if span.t_start_s <= look[0] <= span.t_end_s]
        first_s = min((t_s for t_s, _ in inside), default=0.0)
        used_s += sum(cpu_s for t_s, cpu_s in inside if t_s > first_s)
        passed_s += max((t_s for t_s, _ in inside), default=0.0) - first_s
    return round(used_s / passed_s, 6) if passed_s > 0 else None


def differs(cost: ReaderCost) -> bool:
    """Whether a reader took another share of a core in the measure window than in idle."""
    return abs(cost.measure_cores - cost.idle_cores) > TOLERANCE_CORES


def reasons(costs: Iterable[ReaderCost]) -> list[Reason]:
    """One reason for all readers whose cost differs; none when all are alike."""
    words = [
        f"the radio reader of {cost.node} took {cost.idle_cores:.4f} of a core in idle,"
        f" {cost.measure_cores:.4f} in measure"
        for cost in costs
        if differs(cost)
    ]
    return [Reason("reader_cpu_differs", "; ".join(words))] if words else []
