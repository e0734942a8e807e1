# SPDX-License-Identifier: Apache-2.0
"""The load ``flow`` on a simulated testbed: netjoule-simulate has both ends of the flows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from netjoule.core.errors import UsageError
from netjoule.loads.flow import routers, transports
from netjoule.loads.flow.flows import flows_of
from netjoule.loads.flow.generators import FlowSpec, foreign
from netjoule.loads.flow.load import FlowLoad
from netjoule.loads.flow.session import FlowSession, of_routers
from netjoule.loads.flow.settings import NULL, FlowSettings, Pace
from netjoule.topology.paths import parameters, path_access, path_elements
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition, Place
from netjoule.workload.workload import Timing, Workload

PROGRAM = "netjoule-simulate"
_CONTROLS = {"reno": "newreno", "cubic": "cubic"}
"""Congestion controls by the kernel's names, and as the program has them."""
_TRANSPORTS = ("tcp", "dccp")
_OPTIONS = {"tcp": {"congestion_control"}, "dccp": {"ccid", "carrier"}}
_CARRIER = "udp"
"""What DCCP goes in, as it does by default elsewhere (RFC 6773)."""
_HEADER_BYTES = {4: 40, 6: 60}  # of IP and TCP without options: RFC 791, 8200, 9293
_MTU_BYTES = 1500
_INTERVAL_S = 1.0
_ROUNDING = 1e-6
_OF_RUNS = frozenset({"interval_s", "start_within_s"})
"""Settings that are not those of TCP's ends."""


class SimulatedFlowLoad(FlowLoad):
    """Flows of a simulated campaign (`workload.load.Load`)."""

    programs: Sequence[str] = ()

    def __init__(self, workload: Workload, topology: Topology) -> None:
        """Nothing runs yet."""
        super().__init__(workload, topology)
        self._timing = workload.timing

    def require_fit(self) -> None:
        """Refuse flows that the program does not have. Raises UsageError, naming the field."""
        settings = self._settings
        where = f"workload {settings.name}, field "
        faults = (*_unfit(settings, self._workload), *self._uneven(), *self._slow(), *self._unshared())
        for field, what, step in faults:
            raise UsageError(what, where=where + field, next_step=step)

    def _uneven(self) -> Iterator[tuple[str, str, str]]:
        """Windows that begin or end inside a step: field, what, next step."""
        interval_s = float(self._settings.simulated.get("interval_s", _INTERVAL_S))
        for name in ("warm_up_s", "measure_s"):
            steps = getattr(self._timing, name) / interval_s
            if abs(steps - round(steps)) > _ROUNDING:
                yield (
                    "flow.simulated.interval_s",
                    f"{name} is no whole number of steps of {interval_s:g} s",
                    "take an interval that both windows are multiples of",
                )

    def _slow(self) -> Iterator[tuple[str, str, str]]:
        """What is offered, where that is less than a path takes: field, what, next step."""
        factors = self._workload.factors
        for value, varying in product(factors.get("path", (None,)), factors.get("varying", (None,))):
            takes_mbps = min(map(_greatest_mbps, self._elements(value, varying)))
            for offered_mbps in self._settings.offered_rate_mbps:
                if offered_mbps < takes_mbps:
                    yield (
                        "factors.offered_rate_mbps",
                        f"a simulated flow always has something to send, and {offered_mbps:g} Mb/s are less"
                        f" than the {takes_mbps:g} Mb/s that the path takes",
                        f"offer at least {takes_mbps:g}",
                    )

    def _unshared(self) -> Iterator[tuple[str, str, str]]:
        """Paths with an access for another number of flows than there are: field, what, next step."""
        document, server = self._topology.document, self._topology.host_with("server")
        for value in self._workload.factors.get("path", (None,)):
            access = len(path_access(document, server, value))
            for flows in self._settings.parallel if access else ():
                if flows != access:
                    yield (
                        "factors.parallel",
                        f"the path has an access for each of {access} flows, and there are {flows}",
                        f"write parallel: {access}, or name a path without access",
                    )

    def _elements(self, path: Any, varying: Any) -> list[dict[str, Any]]:
        """Elements of a path, with the varying rate that the factor asks for in the place of their own."""
        document = self._topology.document
        elements = path_elements(document, self._topology.host_with("server"), path)
        if varying is None:
            return elements
        asked = {"varying": parameters(document, "varying", varying)}
        return [one | (asked if "varying" in one else {}) for one in elements]

    def require(self) -> None:
        """No kernel has to do anything."""

    def require_programs(self) -> None:
        """The testbed starts the only one."""

    async def open(self, condition: Condition, place: Place, duration_s: float) -> FlowSession:
        """The flows of a run; nothing has to get ready."""
        of = self._settings
        flows = flows_of(of, condition, self._topology.hosts_with("client"), duration_s)
        server = self._topology.host_with("server")
        seed = condition.schedule_seed
        return SimulatedFlows(flows, of.simulated, seed, place, self._timing, server=server)


class SimulatedFlows(FlowSession):
    """The flows of one run, which are asked for in one document (`workload.load.LoadSession`)."""

    holds = True

    def __init__(
        self,
        flows: Sequence[FlowSpec],
        settings: Mapping[str, Any],
        seed: int,
        place: Place,
        timing: Timing,
        *,
        server: str,
    ) -> None:
        """Nothing has been asked yet.

        Args:
            flows: of the run.
            settings: of the workload for the ends of flows.
            seed: of the chance in the path: the same for every arm of a mini-block.
            place: of the testbed.
            timing: of the workload.
            server: to which the path leads.
        """
        told = replace(place, routers=lambda _start_s, _end_s: self._routers)
        hosts = {flow.client: flow.client for flow in flows}
        super().__init__((), hosts, {}, (), partial(of_routers, told, timing))
        self._specs, self._seed, self._place = flows, seed, place
        self._interval_s = float(settings.get("interval_s", _INTERVAL_S))
        self._within_s = float(settings.get("start_within_s", 0.0))
        self._ends = {name: value for name, value in settings.items() if name not in _OF_RUNS}
        self._server = server
        self._routers: list[dict[str, Any]] = []

    async def go(self) -> None:
        """Time begins when the program is asked."""

    async def end(self) -> None:
        """There is nothing to close."""

    def _work_fields(self, *of_flows: Any) -> dict[str, Any]:
        """Without measures of a schedule: it has none to fall behind, and what TCP loses it sends again."""
        fields = super()._work_fields(*of_flows)
        return fields | {"measures": dict.fromkeys(fields["measures"])}

    async def _reports(self) -> list[tuple[FlowSpec, dict[str, Any]]]:
        assert self._place.simulate is not None
        told = await self._place.simulate(
            {
                "seed": self._seed,
                "duration_s": self._specs[0].duration_s,
                "interval_s": self._interval_s,
                "flows": [self._asked(flow) for flow in self._specs],
            }
        )
        self._routers = routers.rows_of(told, self._server)
        return [(flow, _report(flow, told, index)) for index, flow in enumerate(self._specs)]

    def _asked(self, flow: FlowSpec) -> dict[str, Any]:
        chance = random.Random(flow.schedule_seed)  # noqa: S311 - an experiment, not a secret
        begins = {"start_s": chance.uniform(0.0, self._within_s)}
        if flow.transport == "dccp":
            sizes = {"payload_bytes": flow.payload_bytes, "ip_version": flow.ip_version}
            return {"transport": "dccp", "ccid": flow.options["ccid"], **sizes, **begins}
        header = _HEADER_BYTES[flow.ip_version]
        control = _CONTROLS[str(flow.options.get("congestion_control", "reno"))]
        sizes = {"packet_bytes": flow.payload_bytes + header, "ack_bytes": header}
        return {"congestion_control": control, **sizes, **self._ends, **begins}


def _greatest_mbps(element: Mapping[str, Any]) -> float:
    """The highest rate of an element; infinite where it has none."""
    varying = element.get("varying", {}).get("max_rate_mbps", math.inf)
    return float(element.get("rate_mbps") or varying)


def _unfit(settings: FlowSettings, workload: Workload) -> Sequence[tuple[str, str, str]]:
    """What of a workload the program does not have: field, what, next step."""
    found = []
    leave_out, only = "leave it out", "on a simulated testbed a flow is"
    if NULL in settings.transports:
        what = "a simulated sender draws nothing, so it has no floor"
        found.append(("control", what, "write control: false"))
    sent = {name: settings.variant_of(name).transport for name in settings.all_transports()}
    others = sorted({*sent.values()} - {*_TRANSPORTS, NULL})
    if others:
        one = " or ".join(_TRANSPORTS)
        found.append(("factors.transport", f"{only} {one}, not {', '.join(others)}", f"name {one}"))
    if settings.directions != ("up",):
        found.append(("factors.direction", f"{only} up, from the client to the server", leave_out))
    if settings.clients != 1 or settings.beside:
        field = "flow.beside" if settings.beside else "flow.clients"
        found.append((field, "a simulated testbed has one client with flows of one kind", leave_out))
    if settings.profile is not None or settings.sync_pulse is not None:
        field = "factors.profile" if settings.profile is not None else "flow.sync_pulse"
        what = "a simulated flow has no schedule: it always has something to send"
        found.append((field, what, leave_out))
    if settings.paces != (Pace(),):
        found.append(
            ("factors.pacing", "a simulated flow has no pacer", "leave pacing, window_us and gso out")
        )
    for name, transport in sent.items():
        if transport in _TRANSPORTS:
            found.extend(_unfit_transport(settings, workload, name, transport))
    ends = sorted(set(settings.simulated) - _OF_RUNS)
    if ends and "tcp" not in sent.values():
        field = f"flow.simulated.{ends[0]}"
        found.append((field, "it is of the ends of tcp, and no flow here has them", leave_out))
    return found


def _unfit_transport(
    settings: FlowSettings, workload: Workload, name: str, transport: str
) -> Iterator[tuple[str, str, str]]:
    """What the program does not have of a transport that it has: field, what, next step."""
    options = settings.options_of(name)
    where = (
        f"flow.transport_options.{transport}" if name == transport else f"flow.variants.{name}.{transport}"
    )
    greatest = _greatest_payload(transport, settings.ip_version)
    if max(settings.payload_bytes) > greatest:
        what = f"a simulated message of {transport} is one packet, of {greatest} bytes at most"
        yield "factors.payload_bytes", what, f"use at most {greatest}"
    if unknown := sorted(set(options) - _OPTIONS[transport]):
        yield f"{where}.{unknown[0]}", f"a simulated {transport} has no such option", "leave it out"
    if options.get("carrier", _CARRIER) != _CARRIER:
        yield f"{where}.carrier", f"a simulated {transport} goes in {_CARRIER}", f"write carrier: {_CARRIER}"
    if transport == "tcp":
        chosen = workload.factors.get("congestion_control", (options.get("congestion_control", "reno"),))
        if unknown := sorted(set(map(str, chosen)) - set(_CONTROLS)):
            what = f"a simulated tcp has no congestion control {unknown[0]}"
            yield "factors.congestion_control", what, f"name {' or '.join(_CONTROLS)}"


def _greatest_payload(transport: str, ip_version: int) -> int:
    """The greatest message that is one packet, bytes."""
    told = transports.greatest_message(transport, ip_version, _MTU_BYTES, {"carrier": _CARRIER})
    return _MTU_BYTES - _HEADER_BYTES[ip_version] if transport == "tcp" or told is None else told


def _report(flow: FlowSpec, told: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The flow report of one of the flows.

    What was sent was scheduled: it has no schedule. Of TCP what was acknowledged was sent, so that what is on
    its way at the end is not counted; of DCCP, which repeats nothing, that counts as lost.
    """
    totals, end_ns = told["flows"][index], told["end_ns"]
    duration_s, size = end_ns / 1e9, flow.payload_bytes
    received, is_tcp = totals["acked_packets"], flow.transport == "tcp"
    sent = received if is_tcp else totals["sent_packets"]
    both = {"boot_id": "simulated", **foreign.UNKNOWN_CPU}
    counted: dict[str, Any] = {"timeouts": totals["timeouts"], "recoveries": totals["recoveries"]}
    if is_tcp:
        counted["packets_retransmitted"] = totals["resent_packets"]
        counted["congestion_control"] = str(flow.options.get("congestion_control", "reno"))
    described = foreign.described(
        flow,
        generator={"name": PROGRAM, "version": told["version"]},
        flow_id=f"{flow.run_id}-{flow.flow}",
        duration_s=duration_s,
        nodelay=None,
        mtu_bytes=_MTU_BYTES,
    )
    packets = {
        "frames_per_message": 1.0,
        "mean_ip_packet_bytes": float(size + _HEADER_BYTES[flow.ip_version]),
        "packetisation_source": "computed",
    }
    return (
        described
        | (packets if is_tcp else {})
        | {
            "interval_s": (told["steps"][0]["t_end_ns"] - told["start_ns"]) / 1e9,
            "clock_offset": {"offset_ns": 0, "residual_ns": 0, "method": "same_boot"},
            "sender": both
            | {
                "host": flow.client,
                "start_ns": 0,
                "first_packet_ns": 0,
                "last_packet_ns": end_ns,
                "end_ns": end_ns,
                "messages_scheduled": sent,
                "messages_sent": sent,
                "messages_not_sent": 0,
                "bytes_sent": sent * size,
                "goodput_mbps": 8e-6 * sent * size / duration_s,
                "transport_stats": counted,
            },
            "receiver": both
            | {
                "host": "server",
                "first_packet_ns": None,
                "last_packet_ns": None,
                "messages_received_unique": received,
                "messages_lost": sent - received,
                "messages_duplicate": 0,
                "messages_reordered": 0,
                "bytes_received_unique": received * size,
                "goodput_mbps": 8e-6 * received * size / duration_s,
                "loss_ratio": 1.0 - received / sent if sent else None,
                "jitter_ms": None,
                "one_way_delay_ms": None,
                "transport_stats": {},
            },
            "intervals": _intervals(told, index, size),
            "reconciles": True,
        }
    )


def _intervals(told: Mapping[str, Any], index: int, size: int) -> list[dict[str, Any]]:
    found, start_ns = [], told["start_ns"]
    for step in told["steps"]:
        messages, span_ns = step["acked_packets"][index], (start_ns, step["t_end_ns"])
        found.append(foreign.interval("receiver", span_ns, messages, messages * size))
        start_ns = step["t_end_ns"]
    return found
