# SPDX-License-Identifier: Apache-2.0
"""What a running campaign tells whoever watches it: a bar for people, lines for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from netjoule.design.run_table import PlanRow
    from netjoule.workload.cell import Cell

Kind = Literal[
    "testbed_ready",
    "sync_pulse",
    "run_started",
    "run_finished",
    "run_result",
    "repeat",
    "look",
    "session_finished",
]


@dataclass(frozen=True)
class ProgressEvent:
    """One thing that happened.

    Attributes:
        kind: sync_pulse: bursts showed how late each meter is; run_finished: the flow's raw data are in;
            run_result: its result.json is; repeat: its mini-block will be tried again; look: what the
            blocks of a gate decide so far.
        t_s: campaign time.
        done: runs of the plan whose flow is over, in this session or an earlier one. A run that is to be
            repeated is not.
        total: runs of the plan; a repeat takes the place of what it repeats.
        remaining_s: estimate for the rest of the plan.
        detail: in words; for run_result its validity and reasons.
        nodes: for run_result the `nodes` of result.json (E_A by meter).
        settled: runs of the plan of which is known whether they count.
    """

    kind: Kind
    t_s: float
    done: int
    total: int
    remaining_s: float
    row: PlanRow | None = None
    detail: str = ""
    nodes: Sequence[dict[str, Any]] = field(default=())
    settled: int = 0


ProgressSink = Callable[[ProgressEvent], None]


class Pace:
    """Estimates what is left from the plan's nominal run length and the runs seen so far.

    Runs of a condition take alike, the later ones most: its first has warm-up runs in it.
    """

    def __init__(self, nominal_run_s: float) -> None:
        """`nominal_run_s` is the length of a run by its timing alone."""
        self._nominal_s = nominal_run_s
        self._took_s: dict[tuple[str, Cell], float] = {}

    def ran(self, row: PlanRow, seconds: float) -> None:
        """Note how long a run took with everything around it."""
        self._took_s[row.arm, row.cell] = seconds

    def remaining_s(self, left: Iterable[PlanRow]) -> float:
        """Expected seconds for the runs that are left."""
        other_s = fmean(self._took_s.values()) if self._took_s else self._nominal_s
        return sum(self._took_s.get((row.arm, row.cell), other_s) for row in left)
