# SPDX-License-Identifier: Apache-2.0
"""``netjoule run --rigs N``: a campaign's blocks side by side, and how that is shown; simulated ones, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule.cli.progress import event_document, progress_sink
from netjoule.core.clock import SystemClock
from netjoule.core.console import Output
from netjoule.core.errors import UsageError
from netjoule.design import run_table
from netjoule.design.run_table import PlanRow, last_attempts
from netjoule.execution.progress import ProgressEvent, ProgressSink
from netjoule.execution.runner import Outcome
from netjoule.rigs import cluster, simulated_batch
from netjoule.rigs.alone import Alone
from netjoule.rigs.block import RESUME, Done
from netjoule.rigs.campaign_run import Batch, BlocksRun, called
from netjoule.store.campaign import Campaign
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line says of rigs.

    Attributes:
        count: how many; None: one, without Dask.
        scheduler: address of a Dask scheduler that runs; None: one of our own.
    """

    count: int | None = None
    scheduler: str | None = None


def runner(asked: Asked, of: Workload, on: Topology) -> Callable[[Campaign, Output], Outcome] | None:
    """What runs a campaign on the rigs that are asked for; None where it needs none.

    A simulated campaign without `--rigs` has one, without Dask.

    Raises:
        UsageError: for what cannot run on several rigs, naming the option or the field.
        HostLacks: without Dask.
    """
    if asked.count is None:
        if asked.scheduler:
            raise UsageError(
                "--scheduler is for campaigns on rigs", next_step="add --rigs N to 'netjoule run'"
            )
        if on.kind == SIMULATED:
            return _simulated_alone
        return None
    if of.looks:
        raise UsageError(
            "a workload with looks decides block after block, and runs on one rig",
            where=f"workload {of.name}, field looks",
            next_step="leave --rigs out",
        )
    cluster.require()
    if asked.scheduler is not None:
        cluster.security_of(asked.scheduler)
    return lambda campaign, output: run(campaign, asked, output)


def runner_of(scheduler: str | None, campaign: Campaign) -> Callable[[Campaign, Output], Outcome] | None:
    """As `runner`, for what is left of a campaign."""
    count = len(campaign.topology.rigs) if campaign.on_rigs else None
    if campaign.is_simulated and count == 1 and scheduler is None:
        count = None
    return runner(Asked(count, scheduler), campaign.workload, campaign.topology)


def write_out(path: Path, run_id: str, output: Output) -> None:
    """Write a run of a simulated campaign in full. Raises NetjouleError, see `simulated_batch.write_out`."""
    with Campaign.open(path) as campaign:
        folder = simulated_batch.write_out(campaign, run_id)
    output.say(f"run {run_id}: {folder}")
    output.event({"event": "written_out", "run_id": run_id, "path": str(folder)})


def _simulated_alone(campaign: Campaign, output: Output) -> Outcome:
    """Simulate what is left of a campaign in this process."""
    with _shown(campaign, 1, output) as work:
        return work.run(Alone(campaign.topology.rigs[0], campaign.path.resolve(), work.inbox.put))


@contextmanager
def _shown(campaign: Campaign, rigs: int, output: Output) -> Iterator[BlocksRun]:
    """A session of the campaign whose events are shown."""
    with progress_sink(output, len(last_attempts(campaign.rows()))) as sink:
        yield BlocksRun(campaign, SystemClock(), _Shown(campaign, rigs, output, sink))


def run(campaign: Campaign, asked: Asked, output: Output) -> Outcome:
    """Run what is left of a campaign on its rigs.

    Args:
        campaign: open for writing.
        asked: where its workers are.
        output: takes words and events.

    Raises:
        NetjouleError: see `cluster.workers` and `BlocksRun.run`.
    """
    names, folder = campaign.topology.rigs, campaign.path.resolve()
    program = () if campaign.is_simulated else RESUME
    with (
        _shown(campaign, len(names), output) as work,
        cluster.workers(names, folder, work.inbox.put, scheduler=asked.scheduler, program=program) as workers,
    ):
        output.error(f"{', '.join(names)}: dashboard {workers.dashboard}, /metrics beside it")
        output.event({"event": "rigs", "rigs": list(names), "dashboard": workers.dashboard})
        return work.run(workers)


@dataclass
class _Shown:
    """What workers say as events of the whole campaign.

    Attributes:
        latest: done, total and remaining_s of the blocks that each worker has, as it told last.
    """

    campaign: Campaign
    rigs: int
    output: Output
    sink: ProgressSink
    latest: dict[Batch, tuple[int, int, float]] = field(default_factory=dict)
    _counts: Counter[int] = field(default_factory=Counter)
    _counted_rows: object = None

    def event(self, event: Mapping[str, Any]) -> None:
        """Pass on what a worker said, with numbers of the whole campaign in place of its blocks'."""
        if event["event"] == "rig_busy":
            self.output.error(f"{event['rig']} waits: {event['by']} has it")
        if not {"done", "total", "remaining_s", "blocks"} <= set(event):
            return
        batch = tuple(event["blocks"])
        self.latest[batch] = (int(event["done"]), int(event["total"]), float(event["remaining_s"]))
        done, total = self._done()
        told = ProgressEvent(
            event["event"],
            float(event["t_s"]),
            done,
            total,
            self._remaining_s(),
            self._row(event),
            str(event.get("detail", "")),
            event.get("nodes", ()),
            settled=done,
        )
        if self.output.json_lines:
            self.output.event({**event_document(told), "block": batch[0], "rig": event["rig"]})
        elif event["event"] not in ("testbed_ready", "session_finished", "sync_pulse"):
            self.sink(told)

    def committed(self, done: Done) -> None:
        """A block is a part of the campaign."""
        self.latest = {batch: told for batch, told in self.latest.items() if done.block not in batch}
        self.output.event(
            {"event": "block_done", "block": done.block, "rig": done.rig, "owner_token": done.token}
        )

    def lost(self, batch: Batch, rig: str, why: str) -> None:
        """Blocks were lost on a rig."""
        self.latest.pop(batch, None)
        self.output.error(f"{called(batch)} was lost on {rig}, and runs again: {why}")
        for block in batch:
            self.output.event({"event": "block_lost", "block": block, "rig": rig, "detail": why})

    def stopping(self) -> None:
        """The first Ctrl-C."""
        self.output.error("stopping: every rig ends its run and testbed; Ctrl-C again does not wait for that")

    def _unsettled(self) -> Counter[int]:
        """Runs that are still to come by block, and under 0 how many there are in all that count.

        Of a long sweep: counted anew only where the campaign's rows have changed.
        """
        rows = self.campaign.rows()
        if rows is not self._counted_rows:
            wanted = last_attempts(rows)
            self._counts = Counter(row.block for row in wanted if row.status not in run_table.FINAL)
            self._counts[0], self._counted_rows = len(wanted), rows
        return self._counts

    def _done(self) -> tuple[int, int]:
        counts = self._unsettled()
        total = counts[0]
        settled = 2 * total - counts.total()
        return settled + sum(done for done, _, _ in self.latest.values()), total

    def _remaining_s(self) -> float:
        """Of the blocks under way and those that wait, spread over the rigs; at least the longest of them."""
        under_way = [remaining_s for _, _, remaining_s in self.latest.values()]
        left = sum(total - done for done, total, _ in self.latest.values())
        run_s = sum(under_way) / left if left else 0.0
        counts = self._unsettled()
        theirs = sum(counts[block] for batch in self.latest for block in batch)
        waiting = counts.total() - counts[0] - theirs
        return max([(sum(under_way) + waiting * run_s) / self.rigs, *under_way])

    def _row(self, event: Mapping[str, Any]) -> PlanRow | None:
        """The run that an event is of; of a repeat, of which the campaign learns later, what it repeats."""
        if "run_id" not in event:
            return None
        rows = self.campaign.rows_of(event["blocks"][0])
        return next((row for row in rows if _is_of(row, event)), None)


def _is_of(row: PlanRow, event: Mapping[str, Any]) -> bool:
    if row.run_id == event.get("run_id"):
        return True
    return row.arm == event.get("arm") and all(event.get(name) == value for name, value in row.cell.items())
