# SPDX-License-Identifier: Apache-2.0
"""``netjoule selftest``: can the hosts keep the schedules that a workload asks for?

`netjoule-traffic selftest` answers for one flow on one host. Here it is asked for every way of pacing and
every message size of a workload, each at its least and at its greatest offered load, or for its profile,
where a campaign will send: on a lab's client and server, else on this host. Where a run has several flows,
it is asked for as many at the same time as that host has of them: they share its cores.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import programs
from netjoule.core.errors import HostLacks, InvalidData, RunFailed, UsageError
from netjoule.core.tables import Column, Table
from netjoule.hosts.host import Host, LocalHost
from netjoule.loads.flow import profiles
from netjoule.loads.flow.generators.netjoule_traffic import NetjouleTraffic, limit_arguments
from netjoule.loads.flow.settings import FlowSettings, Pace
from netjoule.testbeds.base import all_or_none
from netjoule.topology import topology
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload

Tell = Callable[[str], None]

_PROGRAM = "netjoule-traffic"
_FLOWS = 2  # null and loopback UDP
_GRACE_S = 30.0  # start, drain and reports of both flows
_NOT_CERTIFIED = 4
_ERRORS = {2: UsageError, 3: HostLacks}


@dataclass(frozen=True, slots=True)
class Case:
    """One schedule to keep."""

    payload_bytes: int
    offered_rate_mbps: float
    pace: Pace
    profile: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        if self.profile is not None:
            return f"profile {profiles.words(self.profile)}, {self.pace}"
        return f"{self.payload_bytes} B at {self.offered_rate_mbps:g} Mb/s, {self.pace}"


def cases(settings: FlowSettings) -> list[Case]:
    """The schedules that show most of a workload: the load with the most wake-ups, and the longest sleeps."""
    rates = sorted({min(settings.offered_rate_mbps), max(settings.offered_rate_mbps)})
    return [
        Case(payload, rate, pace, settings.profile)
        for pace in settings.paces
        for payload in settings.payload_bytes
        for rate in rates
    ]


def at_once(settings: FlowSettings, case: Case, times: int) -> list[Case]:
    """The schedules that a host keeps at the same time in a run whose own flows have one of them.

    Args:
        settings: of a workload, which says how many its transport has, and what runs beside them.
        case: schedule of each of these.
        times: how many times the host has the flows of one client in one direction.
    """
    beside = [
        replace(
            case,
            payload_bytes=other.payload_bytes or case.payload_bytes,
            offered_rate_mbps=other.offered_rate_mbps or case.offered_rate_mbps,
        )
        for other in settings.beside
    ]
    return ([case] * max(settings.parallel) + beside) * times


def arguments(case: Case, limits: Mapping[str, float], time_s: float, schedule_seed: int = 1) -> list[str]:
    """Arguments of netjoule-traffic; without limits it holds a host to its own."""
    argv = ["selftest"]
    if case.profile is None:
        argv += ["-b", str(round(case.offered_rate_mbps * 1e6)), "-l", str(case.payload_bytes)]
    else:
        argv += ["--profile", "-", "--schedule-seed", str(schedule_seed)]
    argv += ["-t", f"{time_s:.6f}", "--pacing", case.pace.mode, "--window-us", str(case.pace.window_us)]
    if case.pace.gso:
        argv.append("--gso")
    return [*argv, *limit_arguments(limits), "--json"]


def certify(workload: Workload, of: Topology, time_s: float, tell: Tell) -> list[dict[str, Any]]:
    """Certify every host that will send or receive flows.

    Args:
        workload: what is going to be asked; of flows.
        of: the testbed.
        time_s: length of each flow, seconds.
        tell: takes one line per schedule as it begins.

    Returns:
        one document of contract ``selftest`` per host, schedule and flow that keeps it.

    Raises:
        NetjouleError: when a host cannot be asked, or lacks what a schedule needs.
    """
    settings = FlowSettings.of(workload)
    if of.kind == topology.EMULATED:
        argv = [programs.find(_PROGRAM)]
        # Both ends of all flows are here.
        ways = 2 if "both" in settings.directions else 1
        times = settings.clients * ways
        return asyncio.run(certify_host(LocalHost("this host"), argv, settings, time_s, tell, times=times))
    return asyncio.run(_certify_lab(settings, of, time_s, tell))


async def _certify_lab(
    settings: FlowSettings, of: Topology, time_s: float, tell: Tell
) -> list[dict[str, Any]]:
    """All ends of a lab, one after the other; each is kept from campaigns meanwhile."""
    from netjoule.hosts.ssh import SshHost
    from netjoule.testbeds.lab import binaries, host_locks
    from netjoule.testbeds.lab.reservation import Reservation

    version = await NetjouleTraffic().version()
    owner = host_locks.command_owner("netjoule selftest", of)
    found = []
    with Reservation(of, tell).held(owner.work):
        for name in of.ends(settings.clients):
            host = SshHost(of.host(name).ssh, owner, lambda _remark: None)
            await host.connect()
            try:
                await binaries.provide(host, version)
                times = settings.clients if name == of.host_with("server") else 1
                found += await certify_host(host, [_PROGRAM], settings, time_s, tell, times=times)
            finally:
                await host.close()
    return found


async def certify_host(
    host: Host, program: Sequence[str], settings: FlowSettings, time_s: float, tell: Tell, *, times: int = 1
) -> list[dict[str, Any]]:
    """Certify one host, which has the flows of one client in one direction `times` times; see `certify`."""
    found = []
    for case in cases(settings):
        together = at_once(settings, case, times)
        several = f", among {len(together)} flows at once" if len(together) > 1 else ""
        tell(f"{host.name}: {case}{several}")
        argvs = [
            [*program, *arguments(one, settings.pacing_limits, time_s, seed)]
            for seed, one in enumerate(together, start=1)
        ]
        documents = await all_or_none([_asked(host, argv, time_s, case.profile) for argv in argvs])
        found += [{**one, "flows_at_once": len(together)} if several else one for one in documents]
    return found


async def _asked(
    host: Host, argv: Sequence[str], time_s: float, profile: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What one selftest finds."""
    process = await host.start(argv, name=f"{_PROGRAM} selftest")
    try:
        if profile is not None:
            await process.write_line(json.dumps(profile))
        async with asyncio.timeout(_FLOWS * time_s + _GRACE_S):
            line = await process.next_line()
            status = await process.finish(_GRACE_S)
    except BaseException as error:
        await process.stop()
        if isinstance(error, TimeoutError):
            raise RunFailed(f"{_PROGRAM} selftest did not end in time", where=f"host {host.name}") from error
        raise
    if status not in (0, _NOT_CERTIFIED):
        raise _ERRORS.get(status, RunFailed)(_sentence(line, process.said()), where=f"host {host.name}")
    try:
        document = json.loads(line)
        contracts.validate("selftest", document)
    except ValueError as error:
        raise RunFailed(f"{_PROGRAM} selftest gave no result: {error}", where=f"host {host.name}") from error
    return {**document, "host": host.name} if host.name != "this host" else dict(document)


def _sentence(line: bytes, said: str) -> str:
    """Why a selftest found nothing."""
    try:
        return str(json.loads(line)["message"])
    except (ValueError, KeyError, TypeError):
        return said or f"{_PROGRAM} selftest ended without an error message"


def table(found: Sequence[dict[str, Any]]) -> Table:
    """One row per flow, for people."""
    words = {"host", "pacing", "flow"}
    keys = [
        Column(name, right=name not in words, key=True, text=name == "pacing")
        for name in ("host", "bytes", "Mb/s", "pacing", "flow")
    ]
    figures = ("p50 us", "p99 us", "max us", "<= 50 us", "in trains", "sent", "CPU")
    rows = []
    for document in found:
        pacing = document["pacing"]
        pace = Pace(pacing["mode"], pacing["window_us"], pacing["gso"])
        flows = document.get("flows_at_once", 1)
        head = [
            document["host"],
            str(document["payload_bytes"]),
            f"{document['offered_rate_mbps']:g}",
            str(pace) if flows == 1 else f"{pace}, 1 of {flows} at once",
        ]
        rows += [
            [*head, flow["transport"], *_figures(flow["pacing_certificate"])] for flow in document["flows"]
        ]
    verdict = Column("verdict", right=False, text=True)
    return Table([*keys, *map(Column, figures), verdict], rows, caption=_CAPTION)


_CAPTION = (
    "us: departure less deadline; null: into nothing, udp: over the loopback; sent: of the schedule; "
    "CPU: of a core."
)


def _figures(certificate: dict[str, Any]) -> list[str]:
    error = certificate["error_us"]
    shares = [certificate["within_50us_ratio"], certificate["back_to_back_ratio"]]
    shares += [certificate["achieved_ratio"], certificate["cpu_ratio"]]
    return [
        *(f"{error[name]:.1f}" if error else "-" for name in ("p50", "p99", "max")),
        *("-" if share is None else f"{100 * share:.3g} %" for share in shares),
        "ok" if certificate["passed"] else "; ".join(certificate["failed"]),
    ]


def require_passed(found: Sequence[dict[str, Any]]) -> None:
    """Raises InvalidData, naming the hosts, when a schedule was not kept."""
    failed = [document for document in found if not document["passed"]]
    if failed:
        hosts = ", ".join(dict.fromkeys(str(document["host"]) for document in failed))
        raise InvalidData(
            f"{len(failed)} of {len(found)} schedules were not kept",
            where=f"host {hosts}",
            next_step="free the host of other work, or choose another pacing or a longer window",
        )
