# SPDX-License-Identifier: Apache-2.0
"""Runs of a campaign with their states: in memory, and as they change in plan.csv and status.csv."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.store import planfile


class Ledger:
    """What plan.csv and status.csv say, and the one who writes both.

    Attributes:
        session: number of the campaign's session, 0 before the first.
    """

    def __init__(self, campaign: Path, rows: Sequence[PlanRow], *, session: int, rig: str) -> None:
        """`rows`: as both files have them; `rig`: that has a run where nothing else is said."""
        self.session = session
        self._campaign, self._rig = campaign, rig
        self._rows = tuple(rows)
        self._by_id = {row.run_id: row for row in rows}

    @property
    def rows(self) -> tuple[PlanRow, ...]:
        """All runs, in the order of execution."""
        return self._rows

    def row(self, run_id: str) -> PlanRow:
        """A run; KeyError for one that the plan does not have."""
        return self._by_id[run_id]

    def rows_of(self, block: int) -> tuple[PlanRow, ...]:
        """Runs of a block, in the order of execution."""
        return tuple(row for row in self._rows if row.block == block)

    def add(self, repeats: Sequence[PlanRow]) -> None:
        """Append the runs among these that plan.csv lacks, on disk when this returns."""
        if new := [row for row in repeats if row.run_id not in self._by_id]:
            planfile.append_plan(self._campaign, new)
            self._set(run_table.in_order([*self._rows, *new]))

    def settle(self, rows: Sequence[PlanRow], rig: str = "", tokens: Mapping[int, int] | None = None) -> None:
        """Record the state of runs, on disk when this returns; `tokens`: see `planfile.append_status`."""
        now = datetime.now(UTC)
        planfile.append_status(self._campaign, rows, self.session, now, rig=rig or self._rig, tokens=tokens)
        changed = {row.run_id: row for row in rows}
        self._set([changed.get(row.run_id, row) for row in self._rows])

    def plan_again(self, run_ids: Container[str]) -> None:
        """Runs that have to run again; their last row in status.csv says that they were stopped."""
        self._set([with_state(row, "planned") if row.run_id in run_ids else row for row in self._rows])

    def finished(self) -> list[PlanRow]:
        """Runs that happened and count: not the invalid ones whose mini-block was repeated since."""
        last = {row.run_id for row in run_table.last_attempts(self._rows)}
        return [
            row
            for row in self._rows
            if row.status in run_table.HAPPENED and (row.status != "invalid" or row.run_id in last)
        ]

    def _set(self, rows: Sequence[PlanRow]) -> None:
        self._rows = tuple(run_table.superseded(rows))
        self._by_id = {row.run_id: row for row in self._rows}


def with_state(row: PlanRow, status: str, reason: str = "") -> PlanRow:
    """A run in another state."""
    return replace(row, status=status, reason=reason)
