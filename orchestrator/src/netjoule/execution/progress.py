# SPDX-License-Identifier: Apache-2.0
"""What a running campaign tells whoever watches it: a bar for people, lines for machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from netjoule.design.run_table import PlanRow

Kind = Literal[
    "testbed_ready", "sync_pulse", "run_started", "run_finished", "run_result", "repeat", "session_finished"
]


@dataclass(frozen=True)
class ProgressEvent:
    """One thing that happened.

    Attributes:
        kind: sync_pulse: bursts showed how late each meter is; run_finished: the flow's raw data are in;
            run_result: its result.json is; repeat: its mini-block will be tried again.
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
    """Estimates what is left from the plan's nominal run length and the runs seen so far."""

    def __init__(self, nominal_run_s: float) -> None:
        """`nominal_run_s` is the length of a run by its timing alone."""
        self._nominal_s = nominal_run_s
        self._spent_s = 0.0
        self._runs = 0

    def ran(self, seconds: float) -> None:
        """Note how long a run took with everything around it."""
        self._spent_s += seconds
        self._runs += 1

    def remaining_s(self, runs_left: int) -> float:
        """Expected seconds for `runs_left` runs."""
        return runs_left * (self._spent_s / self._runs if self._runs else self._nominal_s)
