# SPDX-License-Identifier: Apache-2.0
"""Campaigns on rigs that need no testbed, and workers that are threads of this process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import synthetic
from fake_block import PROGRAM

from netjoule.core.errors import NetjouleError, RunFailed
from netjoule.rigs.block import Done, execute_block
from netjoule.rigs.campaign_run import BlocksRun
from netjoule.rigs.cluster import Returned, Told
from netjoule.store.campaign import Campaign
from netjoule_synthetic.clock import CREATED, ORIGIN_NS


class Clock:
    """The synthetic campaigns' own."""

    def monotonic_ns(self) -> int:
        return ORIGIN_NS

    def utc_now(self) -> datetime:
        return CREATED

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        raise AssertionError


class Heard:
    """What a listener was told."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.blocks: list[tuple[int, str]] = []
        self.losses: list[tuple[int, str, str]] = []
        self.is_stopping = False

    def event(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def committed(self, done: Done) -> None:
        self.blocks.append((done.block, done.rig))

    def lost(self, batch: tuple[int, ...], rig: str, why: str) -> None:
        self.losses += [(block, rig, why) for block in batch]

    def stopping(self) -> None:
        self.is_stopping = True


Execute = Callable[[Path, int, str, int, Callable[[Mapping[str, Any]], None]], Done]


def fake_execution(
    campaign: Path, block: int, rig: str, above: int, tell: Callable[[Mapping[str, Any]], None]
) -> Done:
    """A block as it is executed, but for what runs it."""
    return execute_block(campaign, block, rig, above, tell, program=PROGRAM, wait_s=30)


class Threads:
    """Workers as `cluster.Workers`, each a thread; `execute` may be anything."""

    def __init__(
        self,
        names: list[str],
        campaign: Path,
        inbox: queue.SimpleQueue[Returned | Told | None],
        execute: Execute = fake_execution,
    ) -> None:
        self.names, self._campaign, self._inbox, self._execute = names, campaign, inbox, execute
        self.given: list[tuple[int, str]] = []

    def rigs(self) -> list[str]:
        return list(self.names)

    def submit(self, above: Mapping[int, int], rig: str) -> None:
        [(block, known)] = above.items()
        self.given.append((block, rig))
        threading.Thread(target=self._work, args=(block, known, rig), daemon=True).start()

    def retire(self, rig: str) -> None:
        self.names.remove(rig)

    def _work(self, block: int, above: int, rig: str) -> None:
        def tell(event: Mapping[str, Any]) -> None:
            self._inbox.put(Told(dict(event)))

        try:
            returned = Returned((block,), (self._execute(self._campaign, block, rig, above, tell),))
        except NetjouleError as error:
            returned = Returned((block,), (), error)
        except Exception as error:
            returned = Returned((block,), (), RunFailed(repr(error)))
        self._inbox.put(returned)


def campaign(path: Path, blocks: int = 4, rigs: int = 2) -> Campaign:
    """A new one on emulated rigs, called rig1 and so on."""
    return synthetic.create(
        path, workload=synthetic.workload(blocks=blocks), topology=synthetic.topology().on_rigs(rigs)
    )


def run(of: Campaign, execute: Execute = fake_execution) -> tuple[Heard, Threads]:
    """Run it with a thread for each rig."""
    heard = Heard()
    work = BlocksRun(of, Clock(), heard)
    threads = Threads(list(of.topology.rigs), of.path, work.inbox, execute)
    work.run(threads)
    return heard, threads
