# SPDX-License-Identifier: Apache-2.0
"""What a testbed of any kind gives to a campaign: ends for its flows, meters, radios, clocks, remarks."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, TypeVar

from netjoule.core.clock import SystemClock
from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, LocalHost, Process, ProcessEnded, how_it_ended
from netjoule.radio import RadioReader
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.topology.topology import Meter
from netjoule.workload.load import Condition, Load, Place

LOGGER_READY_TIMEOUT_S = 60.0
_FOLLOW = 'head -n 1 "$0" && exec tail -n "$1" -f "$0"'
T = TypeVar("T")


@dataclass(frozen=True)
class Remark:
    """Something a part of the testbed said, for events.csv.

    Attributes:
        frozen_since_s: from when on a meter's values were stuck; runs since then do not count.
    """

    t_s: float
    source: str
    event: str
    detail: str
    frozen_since_s: float | None = None


@dataclass(frozen=True, slots=True)
class MeterPlace:
    """A host that has meters.

    Attributes:
        config: path there of their meter_config.
        environment: secrets that it refers to.
    """

    host: Host
    config: str
    meters: Sequence[Meter]
    environment: Mapping[str, str] = field(default_factory=dict)


class Testbed(ABC):
    """Hosts and link, up and running, and meters, which begin with `start_meters`.

    Attributes:
        folder: for files of this session.
        stack: what is started is stopped in reverse when it unwinds.
        passports: the meters as they answered.
        versions: of the programs it started.
    """

    power_grain_s = 0.0
    """Time over which the metered power is smeared by how it is made; 0 for a real device."""

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

    @property
    @abstractmethod
    def place(self) -> Place:
        """The hosts that the campaign's load runs on."""

    @property
    @abstractmethod
    def radio_readers(self) -> Sequence[RadioReader]:
        """One per node whose radio is logged; not opened yet."""

    @abstractmethod
    async def meter_places(self) -> Sequence[MeterPlace]:
        """Where its meters are, for a ranging pass; nobody has them open yet."""

    @abstractmethod
    async def start_meters(self) -> None:
        """Start to log every meter; their passports are known then."""

    @abstractmethod
    async def clock_rows(self, t_s: float) -> Sequence[dict[str, Any]]:
        """Rows of clocks.csv: each host's clock against the controller's at campaign time `t_s`."""

    async def failed(self) -> RunFailed:
        """Wait until a part ends that must not; the error carries the reason code."""
        await asyncio.wait(self._watches, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(self._watches[:1], timeout=self.cause_timeout_s)
        return next(task.result() for task in self._watches if task.done())

    def take_remarks(self) -> Sequence[Remark]:
        """What its parts said since the last call: a meter's gap or reconnection, for instance."""
        remarks, self._remarks = self._remarks, []
        return remarks

    def remark(self, detail: str, event: str = "host") -> None:
        """Keep what is to be said of the testbed itself."""
        t_s = self.session.t_s(SystemClock().monotonic_ns())
        self._remarks.append(Remark(t_s, "orchestrator", event, detail))

    async def collect(self) -> None:
        """Bring the meters' tables up to now into the campaign's folder; called between runs only."""
        return

    async def follow_meter(self, meter_id: str, rows_n: int) -> Process:
        """A process that says the header of a meter's table, its last rows, so many, and then each new one.

        Raises HostLacks when it cannot be started, RunFailed when its host is out of reach.
        """
        return await follow_table(
            LocalHost("controller"), self.campaign.meters_dir / f"{meter_id}.csv", rows_n
        )

    async def returned(self) -> None:
        """Return when all hosts are in reach. Raises RunFailed when one is given up."""
        return

    async def apply(self, _condition: Condition) -> Mapping[str, Any]:
        """Set what the condition asks of the testbed; what is then in force, parameters by factor.

        Between runs. What holds for a whole session (`run_table.of_session`) it has had since it came up. By
        factors.json real hosts are asked for nothing.

        Raises RunFailed when it does not come into force.
        """
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


async def follow_table(host: Host, table: PurePath, rows_n: int) -> Process:
    """`Testbed.follow_meter` of a table on a host."""
    argv = ["sh", "-c", _FOLLOW, str(table), str(rows_n)]
    return await host.start(argv, name=f"tail of {table.name}")


TestbedOpener = Callable[[Campaign, Session, Load], AbstractAsyncContextManager[Testbed]]


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
