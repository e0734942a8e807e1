# SPDX-License-Identifier: Apache-2.0
"""Drives D-ITG (ITGSend, ITGRecv, ITGDec) and maps its logs: UDP, TCP and, where the kernel has it, DCCP.

What differs from netjoule-traffic, and how it is handled:

- ITGSend cannot hold: while idle there is ITGRecv, which lives for the session, but no sender.
- Both ends log each message; ITGDec turns the logs into text. Their times are of day, UTC, without a
  date: the day is the one that brings them next to the flow's start as the orchestrator saw it.
- It sends from the client to the server only, its rate is in messages a second, and it lets no one
  choose DCCP's CCID: the hosts' sysctl net.dccp.default does.
- Its own header takes 20 bytes of every message. It does not tell CPU time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from netjoule.core import programs
from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, Server
from netjoule.loads.flow.generators.base import Endpoints, FlowSpec
from netjoule.loads.flow.generators.messages import Arrival, Clocks, Sent, flow_report, joint_jitter_ms
from netjoule.loads.flow.generators.one_shot import OneShot, OneShotFlow, listening

_DAY_NS = 86_400 * 10**9
_PROTOCOL = {"udp": "UDP", "tcp": "TCP", "dccp-kernel": "DCCP"}
# Beside the port of netjoule-traffic, whose server may run for the null floor.
_SIGNAL_PORT_OFFSET, _DATA_PORT_OFFSET = 1, 2
_LINE = re.compile(
    r"Flow>\s*\d+\s+Seq>\s*(\d+)\s.*txTime>(\d+):(\d+):([\d.]+)\s+rxTime>(\d+):(\d+):([\d.]+)\s+Size>\s*(\d+)"
)


class Ditg(OneShot):
    """One ITGRecv for the session, one ITGSend per flow."""

    name = "ditg"
    programs = ("ITGSend", "ITGRecv", "ITGDec")
    client = "ITGSend"
    version_word, version_told = "-h", r"version (\S+)"

    async def serve(self, ends: Endpoints) -> Server:
        """Start ITGRecv; it answers all flows of a session."""
        port = ends.server_port + _SIGNAL_PORT_OFFSET
        argv = [programs.find("ITGRecv"), "-Sp", str(port)]
        return Server(await listening(ends.server, argv, port, name="ITGRecv"))

    def arguments(self, spec: FlowSpec, ends: Endpoints, folder: Path) -> list[str]:
        """Of ITGSend; its signalling stays on the control network."""
        messages_per_s = spec.offered_rate_mbps * 1e6 / 8 / spec.payload_bytes
        argv = ["-a", ends.server_test_address, "-rp", str(ends.server_port + _DATA_PORT_OFFSET)]
        argv += ["-Sda", ends.server_control_address, "-Sdp", str(ends.server_port + _SIGNAL_PORT_OFFSET)]
        argv += ["-T", _PROTOCOL[spec.transport]]
        if spec.transport == "tcp":
            argv.append("-D")
        argv += ["-C", f"{messages_per_s:.6f}", "-c", str(spec.payload_bytes)]
        argv += ["-t", str(round(spec.duration_s * 1e3))]
        return [*argv, "-l", str(folder / "sender.log"), "-x", str(folder / "receiver.log")]

    async def report_of(self, flow: OneShotFlow, said: str) -> dict[str, Any]:
        """The report of a flow by the logs of both ends. Raises RunFailed when there are none."""
        if flow.status != 0:
            raise RunFailed(f"ITGSend: {_last_words(flow.process.said(), said)}", code="generator_failed")
        clocks = Clocks.between(flow.before, flow.after)
        sent = await _log(flow.ends.client, flow.folder, "sender")
        got = await _log(flow.ends.server, flow.folder, "receiver")
        near: dict[str, Any] = {"near_ns": flow.before[0], "version": self.known_version}
        return await asyncio.to_thread(as_report, flow.spec, sent, got, clocks, **near, **flow.places)


async def _log(host: Host, folder: Path, end: str) -> str:
    """One end's log as text."""
    text = folder / f"{end}.txt"
    argv = [programs.find("ITGDec"), str(folder / f"{end}.log"), "-l", str(text)]
    decoder = await host.start(argv, name="ITGDec")
    code = await decoder.finish(grace_s=60.0)
    if code != 0 or not text.exists():
        raise RunFailed(f"ITGDec cannot read the log of the {end}", code="generator_failed")
    return await asyncio.to_thread(text.read_text, encoding="ascii", errors="replace")


class Record(NamedTuple):
    """A line of a decoded log; times in ns of the day, UTC. The sender's log has its own time twice."""

    number: int
    left_ns: int
    arrived_ns: int


def records(text: str) -> Iterator[Record]:
    """Lines of a log as ITGDec writes it; other lines are skipped."""
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            number, *stamps, _size = found.groups()
            yield Record(int(number), _of_day_ns(*stamps[:3]), _of_day_ns(*stamps[3:]))


def as_report(
    spec: FlowSpec,
    sender_log: str,
    receiver_log: str,
    clocks: Clocks,
    *,
    near_ns: int,
    version: str,
    hosts: dict[str, str],
    boot_id: str,
) -> dict[str, Any]:
    """The flow report of one flow; pure.

    Args:
        spec: what was asked.
        sender_log: decoded log of ITGSend.
        receiver_log: decoded log of ITGRecv.
        clocks: wall clock against CLOCK_MONOTONIC.
        near_ns: wall clock when ITGSend was started, ns since 1970.
        version: of D-ITG.
        hosts: names of client and server.
        boot_id: of the host that both run on.

    Raises:
        RunFailed (generator_failed): when nothing was sent.
    """

    def monotonic_ns(of_day_ns: int) -> int:
        return dated_ns(of_day_ns, near_ns) + clocks.offset_ns

    left = sorted(monotonic_ns(record.left_ns) for record in records(sender_log))
    if not left:
        raise RunFailed("the log of ITGSend has no message", code="generator_failed")
    came = [
        Arrival(monotonic_ns(r.arrived_ns), r.number, (dated_ns(r.arrived_ns, r.left_ns) - r.left_ns) * 1e-6)
        for r in records(receiver_log)
    ]
    came.sort(key=lambda arrival: arrival.time_ns)
    return flow_report(
        spec,
        Sent(len(left), left[0], left[-1], left),
        came,
        generator={"name": Ditg.name, "version": version},
        hosts=hosts,
        boot_id=boot_id,
        residual_ns=clocks.residual_ns,
        duration_s=spec.duration_s,
        jitter_ms=joint_jitter_ms([a.delay_ms for a in came if a.delay_ms is not None]),
    )


def _of_day_ns(hours: str, minutes: str, seconds: str) -> int:
    whole, _, fraction = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 10**9 + int(fraction.ljust(9, "0")[:9])


def dated_ns(of_day_ns: int, near_ns: int) -> int:
    """The time nearest to `near_ns` that has this time of day (UTC)."""
    days = round((near_ns - of_day_ns) / _DAY_NS)
    return days * _DAY_NS + of_day_ns


def _last_words(*said: str) -> str:
    """What a program said last, in one line."""
    lines = [line.strip() for text in said for line in text.splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else " / ".join(lines[-2:]) or "ended without an error message"
