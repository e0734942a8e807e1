# SPDX-License-Identifier: Apache-2.0
"""A campaign's blocks over its rigs: who has which, what counts, what runs again. Its one writer."""

from __future__ import annotations

import math
import queue
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from netjoule.core.clock import Clock, boot_id
from netjoule.core.errors import HostLacks, NetjouleError, RunFailed
from netjoule.core.signals import handled_by, termination_signals
from netjoule.design import run_table
from netjoule.execution.runner import Outcome
from netjoule.rigs.block import Done, begun_on
from netjoule.rigs.cluster import Returned, SchedulerLost, Told
from netjoule.store import blocks
from netjoule.store.campaign import Campaign

_GRACE_S = 60.0
_SILENCE_S = 60.0
_MOST_LOSSES = 2
"""A block that was lost so often is the block's fault; a rig that lost so many in a row, the rig's."""


Batch = tuple[int, ...]
"""Blocks that a rig has at once: one, or of a simulated campaign many."""
_MOST_RUNS = 500
"""In a batch: so many are lost with its worker."""


class Workers(Protocol):
    """See `cluster.Workers`."""

    def rigs(self) -> list[str]:
        """Names of the rigs whose workers are there."""

    def submit(self, above: Mapping[int, int], rig: str) -> None:
        """Have blocks run, on this rig if it can; with the greatest owner_token that is known of each."""

    def retire(self, rig: str) -> None:
        """Give a rig no more blocks."""


class Listener(Protocol):
    """Who is told what happens, such as a progress bar."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Something that a worker said, with its blocks and rig."""

    def committed(self, done: Done) -> None:
        """A block is a part of the campaign."""

    def lost(self, batch: Batch, rig: str, why: str) -> None:
        """Blocks were lost on a rig; another has them next."""

    def stopping(self) -> None:
        """A signal came: every rig ends what it does."""


@dataclass
class BlocksRun:
    """One session of a campaign over rigs.

    Attributes:
        campaign: open for writing.
        clock: time.
        listener: told what happens.
        inbox: what workers say and return, in the order in which it comes.
    """

    campaign: Campaign
    clock: Clock
    listener: Listener
    inbox: queue.SimpleQueue[Returned | Told | None] = field(default_factory=queue.SimpleQueue)
    _owners: dict[int, tuple[str, int]] = field(default_factory=dict)
    _flying: dict[Batch, str] = field(default_factory=dict)
    _waiting: list[int] = field(default_factory=list)
    _lost_on: dict[int, list[str]] = field(default_factory=dict)
    _losses: Counter[str] = field(default_factory=Counter)
    _stopping: bool = False

    def run(self, workers: Workers) -> Outcome:
        """Blocks until the plan is done or a signal stops it.

        Raises:
            NetjouleError: when no rig can go on, or a block is lost again and again; what is in is kept.
        """
        campaign, end = self.campaign, "failed"
        blocks.ask_to_stop(campaign.path, wanted=False)
        session = campaign.begin_session(
            boot_id=boot_id(), monotonic_ns=self.clock.monotonic_ns(), utc=self.clock.utc_now()
        )
        try:
            with handled_by(self._on_signal, termination_signals()):
                try:
                    self._run_all(workers)
                except NetjouleError:
                    self._stop()
                    self._wind_down(workers)
                    raise
            end = "stopped" if self._stopping else "complete"
        finally:
            campaign.recover()
            campaign.end_session(
                session, end=end, monotonic_ns=self.clock.monotonic_ns(), utc=self.clock.utc_now()
            )
        rows = campaign.rows()
        done, invalid = (sum(row.status == status for row in rows) for status in ("valid", "invalid"))
        return Outcome("stopped" if self._stopping else "complete", done, invalid)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """The first asks all to end; a second one ends us, and our workers with us."""
        if self._stopping:
            raise KeyboardInterrupt
        self._stop()
        self.inbox.put(None)

    def _stop(self) -> None:
        self._stopping = True
        blocks.ask_to_stop(self.campaign.path, wanted=True)

    def _wind_down(self, workers: Workers) -> None:
        """Take back what is still under way after an error; nothing new is an error any more."""
        with suppress(queue.Empty):
            while self._flying:
                if isinstance(one := self.inbox.get(timeout=_GRACE_S), Returned):
                    with suppress(NetjouleError):
                        self._take_back(workers, one)

    def _run_all(self, workers: Workers) -> None:
        self._waiting = unfinished_blocks(self.campaign)
        while self._flying or (self._waiting and not self._stopping):
            self._give_out(workers)
            try:
                message = self.inbox.get(timeout=_SILENCE_S)
            except queue.Empty:  # a run may take hours; rigs without a worker do nothing
                self._require_rigs(workers.rigs())
                continue
            match message:
                case Told(event):
                    self._hear(event)
                case Returned() as returned:
                    self._take_back(workers, returned)
                case None:
                    self.listener.stopping()

    def _give_out(self, workers: Workers) -> None:
        """A block for each rig that has none."""
        if self._stopping:
            return
        there = workers.rigs()
        if not self._flying:
            self._require_rigs(there)
        free = [rig for rig in there if rig not in self._flying.values()]
        for rig in free:
            if batch := self._next_for(rig, len(free), len(there)):
                self._waiting = [block for block in self._waiting if block not in batch]
                self._flying[batch] = rig
                workers.submit({block: self.campaign.owned.owner_of(block)[0] for block in batch}, rig)

    def _require_rigs(self, there: list[str]) -> None:
        if not there:
            step = f"when the cause of that is away, 'netjoule resume {self.campaign.path}'"
            raise RunFailed("no rig is left to go on with", next_step=step)

    def _next_for(self, rig: str, free: int, rigs: int) -> Batch:
        """The block that this rig has begun, else the first that it did not lose, or no other can have."""
        fresh = [block for block in self._waiting if rig not in self._lost_on.get(block, ())]
        if not fresh and free == 1 and not self._flying:
            fresh = self._waiting
        if self.campaign.is_simulated:
            of_block = max(1, len(self.campaign.rows()) // self.campaign.workload.blocks)
            return tuple(fresh[: batch_size(of_block, len(self._waiting), rigs)])
        mine = (block for block in fresh if begun_on(self.campaign.path, block) == rig)
        return next(((block,) for block in mine), tuple(fresh[:1]))

    def _hear(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "blocks_begun":
            rig, tokens = str(event["rig"]), dict(event["tokens"])
            fresh = {b: token for b, token in tokens.items() if token > self._owners.get(b, ("", 0))[1]}
            fresh = fresh if tuple(tokens) in self._flying else {}  # else told late, of what is back
            self._owners |= {block: (rig, token) for block, token in fresh.items()}
            if fresh:
                self._flying[tuple(tokens)] = rig  # Dask may have moved it
                self.campaign.owned.begin(fresh, rig)
        self.listener.event(event)

    def _take_back(self, workers: Workers, returned: Returned) -> None:
        rig = self._flying.pop(returned.blocks)
        if returned.error is not None:
            self._lose(workers, returned.blocks, rig, str(returned.error), returned.error)
            return
        done = {one.block: one for one in returned.done if one.whole}
        committed = self._commit(list(done.values()))
        for one in returned.done:
            if one.said:
                self._lose(workers, (one.block,), one.rig, one.said)
        lost = {one.block for one in returned.done if one.said}
        for block in committed:
            self._losses[done[block].rig] = 0
            self.listener.committed(done[block])
        # Asked to end: by us, or since another has it.
        left = set(unfinished_blocks(self.campaign)) - lost - set(committed)
        self._waiting[:0] = [block for block in returned.blocks if block in left]

    def _commit(self, done: Sequence[Done]) -> list[int]:
        """Blocks that became a part of the campaign; not those whose owner is not the newest."""
        if not done:
            return []
        return self.campaign.owned.commit({one.block: one.token for one in done}, done[0].rig)

    def _lose(
        self, workers: Workers, batch: Batch, rig: str, why: str, error: NetjouleError | None = None
    ) -> None:
        """Blocks did not come to their end on a rig: another has them next."""
        if isinstance(error, (SchedulerLost, HostLacks)):
            raise error
        owned = {block: self._owners[block] for block in batch if block in self._owners}
        for owner in {by for by, _ in owned.values()}:
            self.campaign.owned.lose({b: token for b, (by, token) in owned.items() if by == owner}, owner)
        self.listener.lost(batch, rig, why)
        self._waiting[:0] = batch
        for block in batch:
            self._lost_on.setdefault(block, []).append(rig)
        self._losses[rig] += 1
        go_on = f"'netjoule resume {self.campaign.path}' goes on"
        again = next((block for block in batch if len(self._lost_on[block]) >= _MOST_LOSSES), None)
        if again is not None:
            rigs = " and ".join(dict.fromkeys(self._lost_on[again]))
            raise RunFailed(f"{called(batch)} was lost on {rigs}: {why}", next_step=go_on)
        if self._losses[rig] >= _MOST_LOSSES or (error is not None and error.code == "rig_busy"):
            workers.retire(rig)


def called(batch: Batch) -> str:
    """Blocks in words."""
    more = f" (and {len(batch) - 1} more)" if len(batch) > 1 else ""
    return f"block {batch[0]}{more}"


def batch_size(runs_of_block: int, waiting: int, rigs: int) -> int:
    """How many simulated blocks a rig takes at once.

    A part of what waits, so that all rigs end together (guided self-scheduling: Polychronopoulos and Kuck,
    IEEE Trans. Computers C-36 (1987) 1425), and at most so many that little is lost with a worker.

    Args:
        runs_of_block: how many runs each has.
        waiting: blocks that nobody has yet.
        rigs: that share them.
    """
    return max(1, min(_MOST_RUNS // runs_of_block, math.ceil(waiting / (2 * rigs))))


def unfinished_blocks(campaign: Campaign) -> list[int]:
    """Blocks with runs that are still to come, in order."""
    return sorted({row.block for row in campaign.rows() if row.status not in run_table.FINAL})
