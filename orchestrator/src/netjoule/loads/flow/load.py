# SPDX-License-Identifier: Apache-2.0
"""The load ``flow`` as execution uses it: its generators, their servers, the flows of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from netjoule.hosts.host import Server
from netjoule.loads.flow import builds, limits, profile_rate, profiles
from netjoule.loads.flow.builds import Build
from netjoule.loads.flow.flows import flows_of, heaviest
from netjoule.loads.flow.generators import FlowSpec, Generator, generator
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.host_support import CARRIERS, TRANSPORTS
from netjoule.loads.flow.report_defects import ReportDefects
from netjoule.loads.flow.run_document import flow_parts
from netjoule.loads.flow.session import FlowSession, of_routers, open_flows
from netjoule.loads.flow.settings import FlowSettings, complete
from netjoule.loads.flow.verdict import kept_by_none
from netjoule.topology.topology import IMPORTED, Topology
from netjoule.workload.load import Condition, Event, Kept, Load, Place, Sending, Unreachable
from netjoule.workload.workload import Workload
from netjoule_contracts.flow_control import control_of

SERVER_PORT = 5301
_PROGRAM = builds.PROGRAM
_INSTALLED = Build()


class FlowLoad(Load):
    """Flows of one campaign (`workload.load.Load`)."""

    name = "flow"
    complete = staticmethod(complete)
    build_settings = staticmethod(builds.settings_of)

    def __init__(
        self,
        workload: Workload,
        topology: Topology,
        make_generator: Callable[[str, Build], Generator] = generator,
    ) -> None:
        """Nothing runs yet; `make_generator`: the generator of a name, in a build."""
        self._workload, self._topology = workload, topology
        self._settings = FlowSettings.of(workload)
        self._make_generator = make_generator
        self._generators: dict[tuple[str, str], tuple[Generator, str]] = {}
        self._servers: dict[tuple[str, str], Server] = {}
        self._defects = ReportDefects(self._settings, imported=topology.kind == IMPORTED)

    @property
    def hosts(self) -> Mapping[str, int]:
        """Clients that take part, and their server."""
        return {"client": self._settings.clients, "server": 1}

    @property
    def programs(self) -> Sequence[str]:
        """netjoule-traffic, where a flow or a sync pulse is its."""
        used = {self._settings.generator_of(transport) for transport in self._settings.transports}
        return [_PROGRAM] if _PROGRAM in used or self._settings.sync_pulse is not None else []

    # -- what it needs ---------------------------------------------------------------------------

    def require_fit(self) -> None:
        """Refuse sizes, rates, clients and addresses that do not fit path and profile.

        Raises:
            UsageError: naming the field.
            HostLacks: when the program that knows profiles is missing.
        """
        limits.require_fit(self._settings, self._topology)
        limits.require_whole_path(self._workload, self._topology)
        profile_rate.require(self._settings)

    def require(self) -> None:
        """Refuse transports that the kernel here lacks. Raises HostLacks."""
        CARRIERS.require(self._settings, self._topology)
        TRANSPORTS.require(self._settings, self._topology)

    def require_programs(self) -> None:
        """Find every generator. Raises HostLacks for the first that is missing."""
        for name in dict.fromkeys(self._settings.generator_of(t) for t in self._settings.transports):
            for build in self._settings.builds:
                self._make_generator(name, build).require()

    async def require_on(self, host: Any) -> None:
        """Refuse transports and builds that a lab's host lacks or cannot run. Raises HostLacks."""
        for build in self._settings.builds:
            await build.require_on(host)
        await CARRIERS.require_on(host, self._settings)
        await TRANSPORTS.require_on(host, self._settings)

    def left_open(self) -> Mapping[str, Sequence[str]]:
        """Transports that only the hosts of a lab can tell of."""
        return {
            "carriers": CARRIERS.left_open(self._settings, self._topology),
            "transports": TRANSPORTS.left_open(self._settings, self._topology),
        }

    # -- what is known before and after ----------------------------------------------------------

    def summary(self) -> Mapping[str, str]:
        """Ways of pacing, a profile, and what runs at once, where there is more than one or any."""
        settings = self._settings
        found = {}
        if len(settings.paces) > 1:
            found["pacing"] = "; ".join(map(str, settings.paces))
        if settings.profile:
            found["profile"] = profiles.words(settings.profile)
        if settings.flows > 1:
            found["flows"] = _at_once(settings)
        return found

    def sends(self) -> Sequence[Sending]:
        """Size and rate of every cell."""
        return [Sending(cell, *_size_and_rate(self._workload, cell)) for cell in self._workload.cells]

    def heaviest(self) -> Sequence[Condition]:
        """Greatest rate with the greatest and the smallest messages."""
        return heaviest(self._settings)

    def check(self, condition: Condition, kept: Kept) -> Iterator[tuple[str, str, str]]:
        """What of its reports is not as asked, as intervals.csv has it, or as in the runs before."""
        flows = flows_of(self._settings, condition, self._topology.hosts_with("client"))
        return self._defects.of_run(condition, flows, kept)

    def compare(self, own: Kept, control: Kept) -> Mapping[str, Any]:
        """Whether the senders of both kept pace, slept between messages and left a core free."""
        return control_of(flow_parts(own), flow_parts(control), str(control.run["run_id"]))

    def unreachable(self, runs: Sequence[Sequence[Mapping[str, Any]]]) -> Unreachable | None:
        """The first pacing limit that no run's certificates kept."""
        certificates = [[report.get("pacing_certificate") or {} for report in run] for run in runs]
        found = kept_by_none(
            [[said for one in run for said in one.get("failed", [])] for run in certificates]
        )
        if found is None:
            return None
        return Unreachable(
            limit=f"pacing limit {found[0]}",
            figures=found[1],
            where="flow.pacing_limits",
            next_step="change the limit to what this host can keep ('netjoule selftest' tells it), the pacing"
            " or its window",
            code="pacing_uncertified",
        )

    # -- running ---------------------------------------------------------------------------------

    async def open(self, condition: Condition, place: Place, duration_s: float) -> FlowSession:
        """Start the senders of a run up to the point where only `go` is missing.

        Raises:
            RunFailed: when one does not get ready.
        """
        flows = flows_of(self._settings, condition, self._topology.hosts_with("client"), duration_s)
        name = self._settings.generator_of(flows[0].transport)
        return await self._open(name, self._settings.build_of(condition.factors), flows, place)

    async def open_burst(self, number: int, duration_s: float, place: Place) -> FlowSession:
        """Datagrams, which end when they are told to, from every client at once."""
        asked = self._settings.sync_pulse or {}
        clients = self._topology.hosts_with("client")[: self._settings.clients]
        flows = [
            FlowSpec(
                flow=flow,
                client=client,
                run_id="pulse",
                transport="udp",
                payload_bytes=int(asked["payload_bytes"]),
                offered_rate_mbps=float(asked["offered_rate_mbps"]),
                duration_s=duration_s,
                direction="up",
                ip_version=self._settings.ip_version,
                seed=number,
            )
            for flow, client in enumerate(clients, 1)
        ]
        return await self._open(_PROGRAM, self._settings.build_of({}), flows, place)

    async def close(self) -> None:
        """End the generators' servers."""
        running, self._servers = self._servers, {}
        for server in running.values():
            await server.stop()

    async def _open(
        self, generator_name: str, build: Build, flows: Sequence[FlowSpec], place: Place
    ) -> FlowSession:
        maker, version = await self._generator(generator_name, build)
        ends = self._ends(place, build)
        events = []
        if await self._serve(maker, build, ends[0]):
            events.append(Event("server_restarted", "the server had ended", "generator_failed"))
        names = self._topology.hosts_with("client")
        of_clients = dict(zip(names, ends, strict=False))
        ready = await open_flows(maker, flows, of_clients)
        hosts = {name: one.client.name for name, one in of_clients.items()}
        called = build.called if generator_name == _PROGRAM else generator_name
        tell = partial(of_routers, place, self._workload.timing)
        session = FlowSession(ready, hosts, {called: version}, events, tell)
        holds = "holds its sockets" if session.holds else "has no process while idle"
        events.append(Event("sender_ready", f"the sender {holds}"))
        return session

    async def _serve(self, maker: Generator, build: Build, ends: Endpoints) -> bool:
        """Start the server of a generator's build, unless it runs; True when it had died before."""
        known = self._servers.get((maker.name, build.name))
        if known is not None and not known.ended.done():
            return False
        if known is not None and not known.ended.cancelled():
            known.ended.exception()  # a lost host's: seen
        server = await maker.serve(ends)
        if server is not None:
            self._servers[(maker.name, build.name)] = server
        return known is not None

    async def _generator(self, name: str, build: Build) -> tuple[Generator, str]:
        key = (name, build.name)
        if key not in self._generators:
            made = self._make_generator(name, build)
            self._generators[key] = (made, await made.version())
        return self._generators[key]

    def _ends(self, place: Place, build: Build = _INSTALLED) -> list[Endpoints]:
        """Both ends of the flows of each client; every build has a server of its own."""
        settings, topology = self._settings, self._topology
        family = "ipv6" if settings.ip_version == 6 else "ipv4"
        (server,) = place.hosts("server", 1)
        return [
            Endpoints(
                client=client,
                server=server,
                server_test_address=topology.test_address(topology.host_with("server"), family),
                server_control_address=place.control_addresses[server.name],
                server_port=SERVER_PORT + build.place,
                traffic_secret=topology.traffic_secret,
                flows=settings.flows,
                server_sends_profile=settings.server_sends_profile,
            )
            for client in place.hosts("client", settings.clients)
        ]


def _size_and_rate(workload: Workload, cell: Mapping[str, Any]) -> tuple[int, float]:
    """Bytes of a message and Mb/s of a flow in a cell; of the first arm where either is the arm."""
    values = workload.values_of(workload.compared[0], cell)
    return int(values["payload_bytes"]), float(values["offered_rate_mbps"])


def _at_once(settings: FlowSettings) -> str:
    """What runs at once, e.g. "2 of the run's transport beside tcp, up and down: 6 in a run"."""
    parts = [f"{max(settings.parallel)} of the run's transport"]
    if settings.beside:
        parts.append("beside " + ", ".join(other.transport for other in settings.beside))
    text = " ".join(parts)
    text += ", up and down" if "both" in settings.directions else ""
    text += f", at {settings.clients} clients" if settings.clients > 1 else ""
    return f"{text}: {settings.flows} in a run"
