# SPDX-License-Identifier: Apache-2.0
"""What every testbed does with its processes: watches them, keeps what is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from netjoule.core.clock import SystemClock
from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Process, ProcessEnded, how_it_ended
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import Remark
from netjoule.workload.load import Condition

LOGGER_READY_TIMEOUT_S = 60.0

T = TypeVar("T")


class Supervised:
    """A testbed of processes, as far as all kinds do the same (`base.Testbed`).

    Attributes:
        folder: for files of this session.
        stack: what is started is stopped in reverse when it unwinds.
    """

    cause_timeout_s = 0.0
    """What dies of the first part's death may be seen to do so first: so long it is waited for, to name the
    cause."""

    def __init__(self, campaign: Campaign, session: Session, folder: Path, stack: AsyncExitStack) -> None:
        """Nothing runs yet."""
        self.campaign, self.session, self.folder, self.stack = campaign, session, folder, stack
        self.topology = campaign.topology
        self.passports: Sequence[dict[str, Any]] = ()
        self.versions: dict[str, str | None] = {}
        self._remarks: list[Remark] = []
        self._watches: list[asyncio.Task[RunFailed]] = []

    async def failed(self) -> RunFailed:
        """Wait until a part ends that must not; the error carries the reason code."""
        await asyncio.wait(self._watches, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(self._watches[:1], timeout=self.cause_timeout_s)
        return next(task.result() for task in self._watches if task.done())

    def take_remarks(self) -> Sequence[Remark]:
        """What the parts said since the last call."""
        remarks, self._remarks = self._remarks, []
        return remarks

    def remark(self, detail: str, event: str = "host") -> None:
        """Keep what is to be said of the testbed itself."""
        t_s = self.session.t_s(SystemClock().monotonic_ns())
        self._remarks.append(Remark(t_s, "orchestrator", event, detail))

    async def collect(self) -> None:
        """Nothing to fetch: all files are written here."""

    async def returned(self) -> None:
        """Nothing to wait for: what has died here does not come back by itself."""

    async def apply(self, _condition: Condition) -> Mapping[str, Any]:
        """Nothing: by factors.json no factor is set on this kind."""
        return {}

    async def log_with(self, logger: Process) -> None:
        """Have meters logged by a process that was started; their passports are known then."""
        ready = await logger.expect("ready", LOGGER_READY_TIMEOUT_S)
        self.passports = [*self.passports, *ready["passports"]]
        self.watch(logger, "meter_stopped", self._note_meter)

    def watch(self, process: Process, code: str, on_line: Callable[[bytes], None] | None = None) -> None:
        """Have `failed` tell of its death. The watch ends before the process is stopped: both read it."""
        self.watch_for(_death(process, code, on_line))

    def watch_for(self, failure: Coroutine[Any, Any, RunFailed]) -> None:
        """Have `failed` tell of what `failure` waits for."""
        watch = asyncio.ensure_future(failure)
        self._watches.append(watch)
        self.stack.push_async_callback(cancelled, [watch])

    def _note_meter(self, line: bytes) -> None:
        """Keep what a logger says about a meter."""
        said = json.loads(line)
        if said.get("event") == "meter":
            detail = f"{said['meter_id']}: {said['message']}"
            kind = str(said.get("kind", "note"))
            frozen_s = float(said["since_s"]) if kind == "stuck" and "since_s" in said else None
            self._remarks.append(Remark(float(said["t_s"]), "meter", f"meter_{kind}", detail, frozen_s))


async def _death(process: Process, code: str, on_line: Callable[[bytes], None] | None) -> RunFailed:
    """Wait for a process to end; what to raise then. `on_line` gets what it says meanwhile."""
    while line := await process.next_line():  # without it too: a full pipe would stop the process
        if on_line is not None:
            on_line(line)
    try:
        status = await process.wait()
    except ProcessEnded as lost:
        return RunFailed(lost.what, where=lost.where, next_step="'netjoule resume' goes on", code=lost.code)
    words = process.said()
    return RunFailed(
        f"{process.name} {how_it_ended(status)} during the campaign" + (f": {words}" if words else ""),
        next_step="finished runs are kept: 'netjoule resume' goes on",
        code=code,
    )


async def all_or_none(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all; when one fails the others have ended before its error goes on."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await cancelled(tasks)


async def cancelled(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
