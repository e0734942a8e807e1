# SPDX-License-Identifier: Apache-2.0
"""The load ``transfer`` as execution uses it: its web servers, its clients, how often a run repeats a set."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts.host import Host
from netjoule.loads.transfer.clients import ours
from netjoule.loads.transfer.clients.arms import CLIENTS
from netjoule.loads.transfer.clients.task import Task
from netjoule.loads.transfer.downloads import FAILED, Download, OwnDownload, PeerDownload
from netjoule.loads.transfer.host_programs import located
from netjoule.loads.transfer.objective import Objective
from netjoule.loads.transfer.servers.server import FAILED as SERVER_FAILED
from netjoule.loads.transfer.servers.server import SOFTWARE, Order, WebServer
from netjoule.loads.transfer.servers.site import Site
from netjoule.loads.transfer.session import TransferSession, megabits
from netjoule.loads.transfer.settings import (
    Settings,
    complete,
    congestion_control,
    figures_of,
    set_and_files,
)
from netjoule.topology.topology import EMULATED, Topology
from netjoule.workload.load import Condition, Event, Kept, Load, Place
from netjoule.workload.workload import Workload

_MOST_REPEATS = 200
"""Of one run: each is held ready, and what others save stays in memory until the run has ended."""
_OTHER_PROGRAM = "floor_other_program"


class TransferLoad(Load):
    """Transfers of one campaign (`workload.load.Load`)."""

    name = "transfer"
    complete = staticmethod(complete)
    programs: Sequence[str] = (ours.PROGRAM,)
    hosts: Mapping[str, int] = {"client": 1, "server": 1}

    def __init__(self, workload: Workload, topology: Topology) -> None:
        """Nothing runs yet."""
        self._settings, self._workload, self._topology = Settings.of(workload.document), workload, topology
        self._servers: dict[str, WebServer] = {}
        self._repeats: dict[str, int] = {}
        self._version = ""

    # -- what it needs, and what is known before and after -----------------------------------------

    def require_programs(self) -> None:
        """Refuse a campaign whose programs are not here, where the hosts share this one's files."""
        if self._topology.kind == EMULATED:
            for program in (*self._client_programs(), *self._server_programs()):
                programs.find(program)

    async def require_on(self, host: Any) -> None:
        """The same of a lab's host."""
        roles = self._topology.hosts[host.name]["roles"]
        needed = [*self._client_programs()] if "client" in roles else []
        needed += self._server_programs() if "server" in roles else []
        for program in set(needed) - set(self.programs):  # which each host is provided with
            found = await host.ask(["sh", "-c", 'PATH=$PATH:/usr/sbin command -v "$0" >/dev/null', program])
            if found.status:
                raise HostLacks(f"there is no program {program} on host {host.name}", next_step="install it")

    def _client_programs(self) -> Sequence[str]:
        clients = [CLIENTS[str(name)] for name in self._workload.factors["client"]]
        return tuple(dict.fromkeys((ours.PROGRAM, *(client.program for client in clients))))

    def _server_programs(self) -> Sequence[str]:
        sites = [SOFTWARE[str(name)].recipe(Site("", 0, 0)) for name in self._workload.factors["server"]]
        return (ours.PROGRAM, "openssl", *(recipe.program for recipe in sites))

    def heaviest(self) -> Sequence[Condition]:
        """Every arm in the cell with the most requests at once."""
        workload = self._workload
        cell = max(workload.cells, key=lambda one: one.get("concurrency", 1) * one.get("parallelism", 1))
        return [Condition(arm, workload.values_of(arm, cell), "range", 0, 0) for arm in workload.arms]

    def check(self, condition: Condition, kept: Kept) -> Iterator[tuple[str, str, str]]:
        """Transfers of another client than was asked for, or whose bytes are not the run's work."""
        for document in kept.documents.values():
            if document["client"] != condition.factors["client"]:
                words = f"is {document['client']}, and the run's client is {condition.factors['client']}"
                yield "transfer.json", "client", words
            told = megabits(sum(run["bytes"] for run in document["runs"]))
            quantity = kept.run["work"]["quantity"]
            if not math.isclose(told, quantity, rel_tol=1e-9):
                yield (
                    "transfer.json",
                    "runs",
                    f"fetched {told:g} Mb, and the work of run.json is {quantity:g} Mb",
                )

    def compare(self, own: Kept, control: Kept) -> Mapping[str, Any]:
        """Programs of others neither store nor check as null does: its energy is no part of theirs."""
        is_ours = all(CLIENTS[one["client"]].invocation is None for one in own.documents.values())
        reason = None if is_ours else _OTHER_PROGRAM
        return {"run_id": control.run["run_id"], "comparable": is_ours, "reason": reason, "warnings": []}

    # -- running -----------------------------------------------------------------------------------

    def recall(self, condition: Condition, run: Mapping[str, Any]) -> None:
        """How often an earlier session repeated the set under this condition: that stays."""
        self._repeats[_key(condition)] = int(run["work"]["repeat"])

    async def open(self, condition: Condition, place: Place, duration_s: float) -> TransferSession:
        """Bring server and client to where only the first request is missing.

        A set that the path cannot carry in less than the least length of a run is fetched once. Of another
        one a first transfer, which is not measured, tells how often a run repeats it; that stays.
        """
        events: list[Event] = []
        server = await self._served(condition, place, events)
        key = _key(condition)
        if key not in self._repeats:
            self._repeats[key] = await self._repeat(condition, place, server, duration_s, events)
        return await self._session(condition, place, server, self._repeats[key], events)

    async def close(self) -> None:
        """End the servers."""
        running, self._servers = self._servers, {}
        for server in running.values():
            await server.stop()

    async def _served(self, condition: Condition, place: Place, events: list[Event]) -> WebServer:
        """The web server of a condition, started where it is not up, or serves something else."""
        order = self._order(condition, place)
        known = self._servers.pop(order.software, None)
        if known is not None:
            if known.order == order and not known.ended.done():
                self._servers[order.software] = known
                return known
            if known.ended.done():
                events.append(Event("server_restarted", "the web server had ended", SERVER_FAILED))
            await known.stop()
        await self._stop_others(order)
        (host,) = place.hosts("server", 1)
        found = self._servers[order.software] = await WebServer.started(host, order)
        return found

    async def _stop_others(self, order: Order) -> None:
        """End servers whose congestion control is another: the route to the client can pin one at a time."""
        for name, server in list(self._servers.items()):
            if server.order.congestion_control != order.congestion_control:
                await self._servers.pop(name).stop()

    def _order(self, condition: Condition, place: Place) -> Order:
        (host,), (client,) = place.hosts("server", 1), place.hosts("client", 1)
        software = SOFTWARE[str(condition.factors["server"])]
        address, to = (place.test_addresses[one.name] for one in (host, client))
        knobs = self._settings.knobs(condition, figures_of(self._topology, condition))
        return Order(
            software=str(condition.factors["server"]),
            site=Site(address, software.http_port, software.https_port),
            fill=ours.fill(knobs, located(host, ours.PROGRAM)),
            client=to if to != address else "",
            congestion_control=congestion_control(condition),
        )

    async def _repeat(
        self, condition: Condition, place: Place, server: WebServer, duration_s: float, events: list[Event]
    ) -> int:
        rate_mbps = figures_of(self._topology, condition).rate_mbps
        is_null = condition.factors["client"] == ours.NULL  # which no path holds up
        if (
            not is_null
            and rate_mbps is not None
            and megabits(sum(server.files.values())) / rate_mbps >= duration_s
        ):
            return 1
        session = await self._session(condition, place, server, 1, [])
        try:
            await session.go()
            (run,) = await session.runs()
        finally:
            await session.end()
        once_s = max(1e-3, (run["end_ns"] - run["start_ns"]) / 1e9)
        repeat: int = max(1, math.ceil(duration_s / once_s))
        if is_null:
            repeat = min(repeat, _MOST_REPEATS)
        if repeat > _MOST_REPEATS:
            what = f"a transfer took {once_s:.3g} s, and {repeat} of them make {duration_s:g} s"
            raise RunFailed(f"{what}: {_MOST_REPEATS} are the most; take more files", code=FAILED)
        events.append(Event("warmed_up", f"a transfer took {once_s:.3g} s: {repeat} back to back"))
        return repeat

    async def _session(
        self, condition: Condition, place: Place, server: WebServer, repeat: int, events: Sequence[Event]
    ) -> TransferSession:
        (host,) = place.hosts("client", 1)
        client, tls = CLIENTS[str(condition.factors["client"])], bool(condition.factors["tls"])
        task = Task(
            url=server.order.site.url(tls=tls),
            files=server.files,
            http=client.version_for(str(condition.factors["http"])),
            tls=tls,
        )
        name, energy = str(condition.factors["client"]), place.live_energy(host.name)
        objective = Objective.of(name, self._settings.objective, energy)
        made, version = await self._ready(condition, place, server, task, repeat=repeat, objective=objective)
        return TransferSession(
            made,
            _about(condition, host, server, task),
            objective=objective,
            bytes_expected=task.bytes,
            timeout_s=self._settings.timeout_s,
            versions={server.order.software: server.version, client.program: version},
            events=events,
        )

    async def _ready(
        self,
        condition: Condition,
        place: Place,
        server: WebServer,
        task: Task,
        *,
        repeat: int,
        objective: Objective | None,
    ) -> tuple[Download, str]:
        """The client, ready and silent, and its version."""
        (host,) = place.hosts("client", 1)
        name = str(condition.factors["client"])
        invocation = CLIENTS[name].invocation
        program = located(host, ours.PROGRAM)
        knobs = self._settings.knobs(condition, figures_of(self._topology, condition))
        if invocation is None:
            argv = ours.argv(name, task, knobs, program)
            argv += objective.arguments() if objective else []
            energy = objective.energy if objective else None
            own = await OwnDownload.ready(host, argv, server, repeat=repeat, energy=energy)
            return own, await self._own_version()
        request = {
            "fill": ours.fill(knobs, program),
            "version_argv": [CLIENTS[name].program, "--version"],
            "interface": place.interfaces.get(host.name),
            "timeout_s": self._settings.timeout_s,
            "quiet_s": self._workload.timing.tail_max_s or self._workload.timing.tail_s,
        }
        peer = await PeerDownload.ready(host, invocation(task), request, server, repeat=repeat)
        return peer, peer.version

    async def _own_version(self) -> str:
        """Of netjoule-transfer here, asked once."""
        self._version = self._version or await programs.version_of(ours.PROGRAM)
        return self._version


def _about(condition: Condition, host: Host, server: WebServer, task: Task) -> dict[str, Any]:
    """transfer.json without its transfers: who fetched what, from whom and how."""
    return {
        "schema_version": 1,
        "kind": "transfer_runs",
        "host": host.name,
        "client": str(condition.factors["client"]),
        "http_version": task.http,
        "tls": task.tls,
        "dataset": {
            "name": set_and_files(str(condition.factors["dataset"]))[0],
            "files_n": len(task.files),
            "bytes": task.bytes,
        },
        "server": {
            "software": server.order.software,
            "version": server.version,
            "congestion_control": server.order.congestion_control if server.order.client else None,
        },
    }


def _key(condition: Condition) -> str:
    return json.dumps([condition.arm, *sorted(condition.factors.items())])
