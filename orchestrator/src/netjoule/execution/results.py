# SPDX-License-Identifier: Apache-2.0
"""Results of mini-blocks whose runs are all final: energy is computed, the plan told what does not count.

The plan repeats a mini-block with an invalid run at the end of its block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from netjoule.core import files
from netjoule.core.reason import Reason, first_invalidating
from netjoule.design.run_table import FINAL, PlanRow, groups
from netjoule.execution.active_run import Compute
from netjoule.store.campaign import Campaign
from netjoule.workload.load import Kept, Load


@dataclass
class Results:
    """Computes the results of mini-blocks of a campaign, and says which of their runs count.

    Attributes:
        campaign: whose results they are.
        compute: `compute(campaign_dir, run_ids)` writes the result.json of one mini-block's runs.
        tell: told of each result, and of each repetition (kind, row, detail, nodes).
        note: writes a line of a run's events.csv (row, source, event, reason).
        load: of the runs; without it none has a control run.
        waiting: (mini_block, attempt) of those with all flows done.
    """

    campaign: Campaign
    compute: Compute
    tell: Callable[..., None]
    note: Callable[[PlanRow, str, str, Reason], None]
    load: Load | None = None
    waiting: list[tuple[int, int]] = field(default_factory=list)

    def expect(self, mini_block: int, attempt: int) -> None:
        """Compute this mini-block next time; anew when it was computed before."""
        if (mini_block, attempt) not in self.waiting:
            self.waiting.append((mini_block, attempt))

    async def compute_finished(self, open_run_id: str | None) -> None:
        """Compute what waits, but for the mini-block of a run that is still open."""
        waiting, self.waiting = self.waiting, []
        for mini_block, attempt in waiting:
            rows = [r for r in self.campaign.rows() if (r.mini_block, r.attempt) == (mini_block, attempt)]
            if any(r.run_id == open_run_id for r in rows):
                self.waiting.append((mini_block, attempt))
            else:
                await self._compute_group(rows)

    async def compute_leftovers(self) -> None:
        """Compute what an earlier session finished without coming to its results."""
        for rows in groups(self.campaign.rows()):
            done = [r for r in rows if r.status == "valid"]
            if done and all(r.status in FINAL for r in rows) and any(self._unknown(r) for r in done):
                await self._compute_group(rows)

    async def recompute(self) -> None:
        """Give every result the lags that are known now; whether a run counts may change with them."""
        for rows in groups(self.campaign.rows()):
            known = [r for r in rows if r.status in FINAL and self._result_path(r).exists()]
            if known:
                await self._compute_group(known)

    def _unknown(self, row: PlanRow) -> bool:
        """Whether the plan calls a run done that has no result, or an invalid one."""
        path = self._result_path(row)
        return not path.exists() or not files.read_json(path)["valid"]

    async def _compute_group(self, rows: Sequence[PlanRow]) -> None:
        """Compute one mini-block and write the status of each of its runs."""
        with_flow = [r for r in rows if self.campaign.read_run(r.run_id)["status"] != "failed"]
        if with_flow:
            ids = [r.run_id for r in with_flow]
            if self.load is not None:
                write_controls(self.campaign, self.load, [r.run_id for r in rows])
            # In a thread: the radio's records keep flowing meanwhile.
            await asyncio.to_thread(self.compute, self.campaign.path, ids)
        # A run that failed has no result; what it failed of stands in its document.
        why = {
            r.run_id: Reason(**self.campaign.read_run(r.run_id)["reasons"][0])
            for r in rows
            if r not in with_flow
        }
        for row in with_flow:
            if (reason := self._judge_row(row)) is not None:
                why[row.run_id] = reason
        for row in rows:
            if row.run_id in why:
                self.tell("repeat", row, self._why_again(row, why[row.run_id]))

    def _why_again(self, row: PlanRow, reason: Reason) -> str:
        """What makes a mini-block invalid, and whether it is run again."""
        last = row.attempt >= self.campaign.workload.max_attempts
        then = "its attempts are used up" if last else "all its runs are to be repeated"
        return (
            f"invalid ({reason.code}: {reason.detail}), so mini-block {row.mini_block} does not count; {then}"
        )

    def _judge_row(self, row: PlanRow) -> Reason | None:
        """Take a run's validity from its result; why it does not count, None when it does."""
        result = files.read_json(self._result_path(row))
        reason = None if result["valid"] else first_invalidating(result["reasons"])
        if not result["valid"] and reason is None:
            reason = Reason("idle_missing", "the result is invalid without saying why")
        if reason is not None:
            document = self.campaign.read_run(row.run_id)
            known = document["reasons"]
            if reason.code not in {r["code"] for r in known}:
                known = [*known, reason.as_json()]
            self.campaign.write_run(document | {"status": "invalid", "reasons": known})
            self.note(row, "orchestrator", "run_invalid", reason)
        if row.status != "superseded":
            status = "invalid" if reason else "valid"
            self.campaign.set_status(row.run_id, status, reason.code if reason else "")
        detail = f"{reason.code}: {reason.detail}" if reason else "valid"
        unit = (result.get("work") or {}).get("unit")
        self.tell("run_result", row, detail, [{"work_unit": unit, **node} for node in result["nodes"]])
        return reason

    def _result_path(self, row: PlanRow) -> Path:
        return self.campaign.run_dir(row.run_id) / "result.json"


def write_controls(campaign: Campaign, load: Load, run_ids: Sequence[str]) -> None:
    """Write into each run of a mini-block's attempt which control run it has, and whether the two compare."""
    kept = [Kept(campaign.read_run(one), campaign.read_documents(one, load.name)) for one in run_ids]
    control = next((one for one in kept if one.run.get("kind") == "control"), None)
    for one in kept:
        if control is None or one.run.get("kind") != "work":
            continue
        found = dict(load.compare(one, control))
        if one.run["control"] != found:
            campaign.write_run({**one.run, "control": found})
