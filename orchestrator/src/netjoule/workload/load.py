# SPDX-License-Identifier: Apache-2.0
"""What a load is to the rooms that plan, run and check it. A load says what a run does; `loads` has them.

Execution owns windows and asks a load for sessions; a load never sees meters, the plan's file or R.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from netjoule.core.errors import UsageError
from netjoule.core.reason import Reason
from netjoule.hosts.host import Host
from netjoule.workload.cell import Cell

Value = str | int | float | bool
"""Of a factor."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one run does: the arm that it takes and the value of every factor, the arm's own among them.

    Attributes:
        control: whether it is a control run, which only the load's control arm is.
        testbed: what it asks of the testbed, by its factors: the name of a preset, or parameters.
        run_id: names it in messages.
        seed: of this run.
        schedule_seed: the same for every arm and attempt of its mini-block.
    """

    arm: str
    factors: Mapping[str, Value]
    run_id: str
    seed: int
    schedule_seed: int
    control: bool = False
    testbed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sending:
    """What a client sends in a cell: messages of so many bytes at a rate."""

    cell: Cell
    message_bytes: int
    rate_mbps: float


class LiveEnergy(Protocol):
    """What a host takes above its idle power, told while it works."""

    @property
    def source(self) -> str:
        """Name of what tells it."""

    def since_now(self) -> AsyncGenerator[float, None]:
        """Joules since the first call, again and again; it may end, or fall silent, at any time."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a load runs: the hosts of a testbed that is up, by role, the first one first.

    Attributes:
        control_addresses: by host, for what must stay off the network under test.
        test_addresses: by host, on that network.
        interfaces: by host, to that network.
        simulate: of a simulated testbed, which has no hosts: what came of a document, in its own time.
        routers: rows of routers.csv of a time of the campaign, from and to seconds; None where nobody knows.
        live_energy: of a host, by its name; None of one whose energy nobody tells.
    """

    roles: Mapping[str, Sequence[Host]]
    control_addresses: Mapping[str, str] = field(default_factory=dict)
    test_addresses: Mapping[str, str] = field(default_factory=dict)
    interfaces: Mapping[str, str] = field(default_factory=dict)
    simulate: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    routers: Callable[[float, float], Sequence[Mapping[str, Any]]] | None = None
    live_energy: Callable[[str], LiveEnergy | None] = lambda _host: None

    def hosts(self, role: str, most: int | None = None) -> Sequence[Host]:
        """Hosts with a role, at most so many of them; none when no host has it."""
        return tuple(self.roles.get(role, ()))[:most]


class HostTime(Protocol):
    """A host's CLOCK_MONOTONIC against campaign time, as last seen."""

    def campaign_s(self, host: str, at_ns: int) -> float:
        """Campaign time, seconds, of a moment on a host's clock."""

    def host_ns(self, host: str, t_s: float) -> int:
        """A moment of campaign time on a host's clock."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something of a run for its events.csv; `t_s`, campaign time, is now where it is None."""

    event: str
    detail: str = ""
    code: str = ""
    t_s: float | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a run's work, such as a flow: from its first packet to its end, campaign time."""

    t_start_s: float
    t_end_s: float


@dataclass(frozen=True, slots=True)
class Document:
    """What a load has to keep of a part of a run.

    Attributes:
        contract: name of its JSON Schema.
        part: its number in the run, from 1.
    """

    contract: str
    content: Mapping[str, Any]
    part: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run's work came to.

    Attributes:
        parts: the work is on from the start of the last to begin, and done when all have ended.
        judge: the reasons that it gives, once execution knows when the measure window ends (campaign time).
        run_fields: fields of run.json that are known only now, `work` and `measures` among them.
        clock_limit_s: limit of the error of the clock that the work was counted by, at an edge of a window.
        documents: what is kept of it.
        intervals: rows of intervals.csv.
        events: of its parts.
        routers: rows of routers.csv.
        power: of a simulated run, what the model says of each node: node, model, form, p_i_w (W) and steps, a
            list of [t_start_s, t_end_s, power_w] in time order.
    """

    parts: Sequence[Part]
    judge: Callable[[float], Sequence[Reason]]
    run_fields: Mapping[str, Any] = field(default_factory=dict)
    documents: Sequence[Document] = ()
    intervals: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Event] = ()
    routers: Sequence[Mapping[str, Any]] = ()
    clock_limit_s: float = 0.0
    power: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a run that has ended: run.json, and its load's document of each part that has one."""

    run: Mapping[str, Any]
    documents: Mapping[int, Mapping[str, Any]]


class LoadSession(Protocol):
    """The work of one run, from ready and silent to its end."""

    @property
    def holds(self) -> bool:
        """Whether idle before and after has all its processes and sockets."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the programs that do the work."""

    @property
    def events(self) -> Sequence[Event]:
        """What happened while it got ready."""

    async def go(self) -> None:
        """Begin the work."""

    async def outcome(self, time: HostTime) -> Outcome:
        """What came of it, once it has ended.

        Raises RunFailed with a reason code when it failed.
        """

    async def end(self) -> None:
        """Close its sockets and end its processes; may be called at any time, and twice."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A limit of the workload that no run of a mini-block kept.

    Attributes:
        figures: what each run gave, in the order of the runs.
        where: field of the workload.
        next_step: what to change.
        code: of the reason that the runs have.
    """

    limit: str
    figures: Sequence[str]
    where: str
    next_step: str
    code: str


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """A build as a workload has it.

    Attributes:
        said: what stands under its name in the `builds` of its load's settings.
        content: the program or folder whose bytes tell it from others; None where nobody knows.
    """

    said: Mapping[str, Any]
    content: Path | None = None


class Load(Protocol):
    """What the runs of one campaign do; the base of each load, which leaves out what it does not have."""

    @property
    def name(self) -> str:
        """Its entry in loads.json."""

    @property
    def hosts(self) -> Mapping[str, int]:
        """How many hosts of each role take part."""

    @property
    def programs(self) -> Sequence[str]:
        """Programs of this project that the hosts taking part must have."""

    @staticmethod
    def build_settings(
        said: Mapping[str, Any], place: Path | None, environment: Mapping[str, str]
    ) -> BuildSettings:
        """A build of a workload with these settings of its load.

        `place`: a program, or a folder with what was built; None for what is installed. Raises UsageError.
        """
        raise UsageError("this load has no builds", next_step="compare values of one of its factors")

    def require_fit(self) -> None:
        """Refuse what hosts and path of the testbed cannot carry. Raises UsageError."""
        return

    def summary(self) -> Mapping[str, str]:
        """What a plan says of it beside runs and time: sentences, by what they are about."""
        return {}

    def sends(self) -> Sequence[Sending]:
        """What a client sends in each cell, for an estimate of its power; none where nobody knows."""
        return ()

    def require(self) -> None:
        """Refuse what this host's kernel cannot do. Raises HostLacks.

        Only where the work is done here: what the controller of a lab has says nothing about its hosts.
        """
        return

    def require_programs(self) -> None:
        """Refuse a campaign whose programs are not here. Raises HostLacks."""
        return

    async def require_on(self, host: Any) -> None:
        """The same of a lab's host that is connected. Raises HostLacks."""
        return

    def left_open(self) -> Mapping[str, Sequence[str]]:
        """What only the hosts of a lab can tell: sentences, by what they are about."""
        return {}

    def heaviest(self) -> Sequence[Condition]:
        """Conditions under which the hosts draw most, for meters to find their ranges."""

    def check(self, condition: Condition, kept: Kept) -> Iterator[tuple[str, str, str]]:
        """Defects of what a finished run has kept, beyond its schemas: file in its folder, place, what.

        All runs of a campaign are asked about in the order of its plan, those of older versions lifted.
        """
        return iter(())

    def unreachable(self, runs: Sequence[Sequence[Mapping[str, Any]]]) -> Unreachable | None:
        """The first limit that no run of a mini-block kept; `runs`: the documents of each."""
        return None

    def compare(self, own: Kept, control: Kept) -> Mapping[str, Any]:
        """`control` of run.json: whether a run and the control run of its mini-block did the same work."""
        raise UsageError(f"the load {self.name} has no control arm", next_step="leave control out")

    def recall(self, condition: Condition, run: Mapping[str, Any]) -> None:
        """Take up what it fixed for a condition before; `run`: run.json of a run of an earlier session."""
        return

    async def open(self, condition: Condition, place: Place, duration_s: float) -> LoadSession:
        """Bring a run's work to where only `go` is missing; servers that outlive a run stay up.

        `duration_s`: of the work where the load's window is fixed, else its least length.

        Raises RunFailed when something does not get ready.
        """

    async def open_burst(self, number: int, duration_s: float, place: Place) -> LoadSession:
        """A burst of a sync pulse, from every client at once."""
        raise UsageError(f"the load {self.name} has no sync pulses", next_step="leave sync_pulses out")

    async def close(self) -> None:
        """End the servers; may be called twice."""
        return
