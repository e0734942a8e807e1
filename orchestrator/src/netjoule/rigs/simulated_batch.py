# SPDX-License-Identifier: Apache-2.0
"""Blocks of a simulated campaign on one core: in this process, one after the other.

A block that takes a second cannot have a process of its own, nor a place of its own in a queue: a rig takes a
batch of them. A core may be shared, so no lock says who has it; the blocks' tokens say whose result counts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import netjoule_energy
from netjoule.core.errors import InvalidData, RunFailed, UsageError
from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.execution.simulated_runs import Simulation
from netjoule.loads import load_of
from netjoule.rigs.block import Done, Tell
from netjoule.store import blocks, planfile, simulated_blocks
from netjoule.store.campaign import Campaign
from netjoule.store.simulated_blocks import BlockWriter, SimulatedRun
from netjoule.testbeds.simulated.simulator import Simulator

_LOOK_S = 0.5
"""Between two looks at whether it has to stop."""
_WORD_S = 2.0
"""Between two words of how far it is."""
_MOST_FAILURES = 20
"""Of the first runs of a batch: then nothing works."""
_MOST_SAID = 5


def execute_batch(campaign: Path, above: Mapping[int, int], rig: str, tell: Tell) -> tuple[Done, ...]:
    """Simulate blocks, to their end or until it has to stop.

    Args:
        campaign: folder of the campaign; nothing is written in it but private folders.
        above: blocks, with the greatest owner_token that the campaign knows of each.
        rig: this worker's.
        tell: told that they began (tokens by block), and now and then how far they are.

    Returns:
        what became of each block.

    Raises:
        NetjouleError: when runs fail one after the other, or nothing can be written.
    """
    tokens = {block: blocks.claim(campaign, block, known) for block, known in above.items()}
    tell({"event": "blocks_begun", "tokens": list(tokens.items()), "rig": rig})
    batch = _Batch(campaign, tokens, rig, tell, simulation_of(campaign))
    return asyncio.run(batch.run())


def write_out(campaign: Campaign, run_id: str) -> Path:
    """Simulate a run once more and write it in full, as runs/<run_id>/; its folder there.

    Raises:
        UsageError: for a run that the campaign does not have, or one that is not simulated.
        InvalidData: when the simulation gives other numbers than the campaign has.
    """
    row = next((row for row in campaign.rows() if row.run_id == run_id), None)
    if row is None or not campaign.is_simulated:
        what = "the plan has no such run" if row is None else "only a simulated run can be run once more"
        raise UsageError(what, where=f"run {run_id} of {campaign.path}", next_step="name one of plan.csv")
    again = asyncio.run(_once(simulation_of(campaign.path), row))
    home = blocks.home(campaign.path, row.block)
    results = simulated_blocks.documents(home / simulated_blocks.RESULTS)
    stored = next((result for result in results if result["run_id"] == run_id), None)
    if stored is None or again.result is None:
        why = again.run["reasons"][0]["detail"] if again.run["reasons"] else "nothing is wrong with it now"
        has = "has" if stored else "has no"
        raise InvalidData(
            f"block {row.block} {has} result of it, but simulated again: {why}", where=f"run {run_id}"
        )
    computed = json.loads(json.dumps(again.result))  # lists as a file has them
    if other := netjoule_energy.differing(stored, computed):
        raise InvalidData(
            f"the simulation gives other numbers than block {row.block} has: {', '.join(other[:_MOST_SAID])}",
            where=f"run {run_id}",
            next_step="use the programs of the versions in campaign.json",
        )
    folder = campaign.path / "runs" / run_id
    simulated_blocks.write_out(again, row.load, folder)
    campaign.write_datapackage()
    return folder


async def _once(simulation: Simulation, row: PlanRow) -> SimulatedRun:
    simulator = Simulator()
    try:
        return await simulation.run(row, simulator)
    finally:
        await simulator.close()


def simulation_of(campaign: Path) -> Simulation:
    """What simulates the runs of a campaign."""
    of = Campaign.read_head(campaign)
    load = load_of(of.workload, of.topology)
    return Simulation(of.name, of.workload, of.topology, load, of.seed, lambda: datetime.now(UTC))


def planned(campaign: Path, block: int) -> Sequence[PlanRow]:
    """Runs of a block by plan.csv, whichever have run."""
    found = (campaign / planfile.PLAN).stat()
    return _by_block(campaign, found.st_size, found.st_mtime_ns)[block]


@lru_cache(maxsize=1)
def _by_block(campaign: Path, _size: int, _mtime_ns: int) -> Mapping[int, Sequence[PlanRow]]:
    """Runs by block: plan.csv of a sweep is long, and grows only where runs are repeated."""
    found: dict[int, list[PlanRow]] = {}
    for row in planfile.read_planned(campaign):
        found.setdefault(row.block, []).append(row)
    return found


@dataclass
class _Batch:
    campaign: Path
    tokens: Mapping[int, int]
    rig: str
    tell: Tell
    simulation: Simulation
    simulator: Simulator = field(default_factory=Simulator)
    _began_s: float = field(default_factory=time.monotonic)
    _looked_s: float = 0.0
    _told_s: float = 0.0
    _done: int = 0
    _failures: int = 0

    async def run(self) -> tuple[Done, ...]:
        rows = {block: planned(self.campaign, block) for block in self.tokens}
        self._total = sum(map(len, rows.values()))
        done = []
        try:
            for block, token in self.tokens.items():
                whole = await self._block(block, token, rows[block])
                done.append(Done(block, self.rig, token, whole))
                if not whole:
                    break
        finally:
            await self.simulator.close()
        return tuple(done)

    async def _block(self, block: int, token: int, rows: Sequence[PlanRow]) -> bool:
        """Simulate a block; whether it is whole."""
        folder = blocks.private_folder(self.campaign, block, token)
        known, waiting = list(rows), list(rows)
        with BlockWriter(folder, rows[0].load) as writer:
            while waiting:
                settled = {}
                for row in waiting:
                    if self._must_stop(block, token):
                        return False
                    one = await self._run(row, block, token)
                    if one is None:
                        return False
                    writer.add(one)
                    settled[row.run_id] = simulated_blocks.row_of(one.run)
                    self._note(one)
                known = [settled.get(row.run_id, row) for row in known]
                repeated = run_table.with_repeats(
                    known, self.simulation.seed, self.simulation.workload.max_attempts
                )
                there = {row.run_id for row in known}
                known, waiting = list(repeated), [row for row in repeated if row.run_id not in there]
        return True

    async def _run(self, row: PlanRow, block: int, token: int) -> SimulatedRun | None:
        """Simulate a run, however long that takes; None when it has to stop meanwhile."""
        task = asyncio.ensure_future(self.simulation.run(row, self.simulator))
        while not (await asyncio.wait({task}, timeout=_LOOK_S))[0]:
            if self._must_stop(block, token):
                task.cancel()
                await asyncio.wait({task})
                return None
        return task.result()

    def _note(self, one: SimulatedRun) -> None:
        """Count a run; where all of the first ones fail it is not the runs' fault."""
        self._done += 1
        self._failures += one.run["status"] == "failed"
        if self._failures == self._done == _MOST_FAILURES:
            reason = one.run["reasons"][0]
            raise RunFailed(
                f"the first {self._failures} runs failed; the latest: {reason['detail']}", code=reason["code"]
            )

    def _must_stop(self, block: int, token: int) -> bool:
        """Whether another has the block, or the campaign is to stop; looked at now and then."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_S:
            return False
        self._looked_s = now_s
        if self._done and now_s - self._told_s > _WORD_S:
            self._told_s = now_s
            left = max(0, self._total - self._done)
            told = {"done": min(self._done, self._total), "total": self._total, "t_s": now_s - self._began_s}
            remaining_s = left * (now_s - self._began_s) / self._done
            about = {"blocks": list(self.tokens), "rig": self.rig, "remaining_s": remaining_s}
            self.tell({"event": "run_finished", **told, **about})
        return blocks.is_stale(self.campaign, block, token) or blocks.stop_asked(self.campaign)
