# SPDX-License-Identifier: Apache-2.0
"""Drives iperf3 (UDP and TCP) and maps its JSON to the flow report.

What differs from netjoule-traffic, and how it is handled:

- iperf3 cannot hold: while idle there is its listening server but no client process. Events say so.
- It tells no time on the monotonic clock. The flow's start is bracketed by the client's start and end;
  the middle is taken and half the bracket is the residual in `clock_offset`.
- It has no schedule: messages_scheduled is what rate, size and time ask for, at least what was sent.
- Its control connection uses the test addresses, so a few control packets cross the radio.
- Whole seconds only: it sends up to 1.5 s longer than asked, so that the measure window lies inside.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netjoule.core import programs
from netjoule.core.clock import Clock, SystemClock, boot_id
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.core.jsontree import Node, Unreadable
from netjoule.hosts.host import Process
from netjoule.loads.flow.generators import foreign
from netjoule.loads.flow.generators.base import INTERVAL_S, Endpoints, FlowSpec
from netjoule.loads.flow.generators.iperf3_report import IperfTest
from netjoule.loads.flow.generators.waiting import listening

REPORT_GRACE_S = 20.0
_TRANSPORT_FLAG = {"udp": "--udp", "tcp": "--no-delay", "dccp-kernel": "--dccp"}
START_MARGIN_S = 0.5  # most that the bracket may shift the flow


class Iperf3:
    """The second generator: a one-off server and a client per flow."""

    name = "iperf3"

    def __init__(self, clock: Clock | None = None) -> None:
        """`clock` brackets the flow's start."""
        self.clock = clock or SystemClock()
        self.known_version = "unknown"

    def program(self) -> str:
        """Path of the program. Raises HostLacks without it."""
        return programs.find("iperf3")

    def require(self) -> None:
        """Raises HostLacks without the program."""
        self.program()

    async def version(self) -> str:
        """Its version, as it says it."""
        child = await asyncio.create_subprocess_exec(
            self.program(), "--version", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await child.communicate()
        words = out.decode(errors="replace").split()
        if len(words) < 2:
            raise HostLacks(f"{self.name} does not tell its version", next_step="install it again")
        self.known_version = words[1]
        return self.known_version

    async def serve(self, ends: Endpoints) -> None:
        """Nothing to start: each flow brings its own one-off server."""
        return

    async def open(self, spec: FlowSpec, ends: Endpoints) -> _IperfFlow:
        """Start the flow's server and wait until it listens.

        Raises RunFailed (generator_failed) when it does not.
        """
        argv = [self.program(), "--server", "--one-off", "--json", "--interval", f"{INTERVAL_S:g}"]
        argv += ["--bind", ends.server_test_address, "--port", str(ends.server_port)]
        server = await ends.server.start(argv, name=f"{self.name} server")
        try:
            await listening(ends.server, ends.server_port, what=f"{self.name} server")
        except BaseException:
            await server.stop()
            raise
        return _IperfFlow(self, spec, ends, server)


class _IperfFlow:
    holds = False

    def __init__(self, made_by: Iperf3, spec: FlowSpec, ends: Endpoints, server: Process) -> None:
        self._made_by = made_by
        self._spec = spec
        self._ends = ends
        self._server: Process | None = server
        self._client: Process | None = None
        self._started_ns = 0

    async def go(self) -> None:
        argv = [self._made_by.program(), *client_arguments(self._spec, self._ends)]
        self._started_ns = self._made_by.clock.monotonic_ns()
        self._client = await self._ends.client.start(argv, name=f"{self._made_by.name} client")

    async def report(self) -> dict[str, Any]:
        assert self._client is not None
        try:
            async with asyncio.timeout(_whole_seconds(self._spec) + REPORT_GRACE_S):
                text = b"".join([line async for line in _lines(self._client)])
                ended_ns = self._made_by.clock.monotonic_ns()
                await self._client.wait()
        except TimeoutError:
            raise RunFailed(
                f"{self._made_by.name} client did not end in time", code="generator_failed"
            ) from None
        document = _parse(text, self._client.said(), self._made_by.name)
        hosts = {"client": self._ends.client.name, "server": self._ends.server.name}
        bracket = Bracket(self._started_ns, ended_ns, boot_id())
        generator = {"name": self._made_by.name, "version": self._made_by.known_version}
        return flow_report(self._spec, document, bracket, hosts=hosts, generator=generator)

    async def end(self) -> None:
        processes, self._client, self._server = (self._client, self._server), None, None
        for process in processes:
            if process is not None:
                await process.stop(grace_s=1.0)


@dataclass(frozen=True)
class Bracket:
    """Between which readings of CLOCK_MONOTONIC (ns) the client ran, and on which boot."""

    started_ns: int
    ended_ns: int
    boot_id: str

    def first_packet_ns(self, duration_s: float) -> int:
        """Middle of the times at which a flow of this length can have begun."""
        return self.started_ns + self.residual_ns(duration_s)

    def residual_ns(self, duration_s: float) -> int:
        """Greatest error of `first_packet_ns`."""
        return max(0, self.ended_ns - self.started_ns - round(duration_s * 1e9)) // 2


def client_arguments(spec: FlowSpec, ends: Endpoints) -> list[str]:
    """Arguments of the iperf3 client for one flow."""
    argv = ["--client", ends.server_test_address, "--port", str(ends.server_port)]
    argv += ["--json", "--get-server-output", "--interval", f"{INTERVAL_S:g}"]
    argv += ["--length", str(spec.payload_bytes), "--bitrate", str(round(spec.offered_rate_mbps * 1e6))]
    argv += ["--time", str(_whole_seconds(spec)), "--connect-timeout", "5000"]
    argv.append(_TRANSPORT_FLAG[spec.transport])
    if spec.direction == "down":
        argv.append("--reverse")
    return argv


def flow_report(
    spec: FlowSpec,
    document: Mapping[str, Any],
    bracket: Bracket,
    *,
    hosts: Mapping[str, str],
    generator: Mapping[str, str],
) -> dict[str, Any]:
    """The flow report of one iperf3 test; pure.

    Args:
        spec: what was asked.
        document: the client's JSON, with the server's in `server_output_json`.
        bracket: when the client ran.
        hosts: names of client and server.
        generator: its name and version.

    Raises:
        RunFailed (generator_failed): when a part that the report needs is missing.
    """
    if "server_output_json" not in document:
        raise RunFailed(f"{generator['name']}'s JSON lacks 'server_output_json'", code="generator_failed")
    up = spec.direction != "down"
    try:
        test = IperfTest(Node(document), Node(document["server_output_json"], "server_output_json"))
        totals = test.counted_totals(up=up)
        asked = math.floor(spec.offered_rate_mbps * 1e6 * totals.seconds / 8 / spec.payload_bytes)
        first_ns = bracket.first_packet_ns(totals.seconds)
        ends = test.both_ends(
            totals, up=up, asked_messages=asked, hosts=hosts, boot_id=bracket.boot_id, first_ns=first_ns
        )
        described = foreign.described(
            spec,
            generator=generator,
            flow_id=Node(document).at("start", "cookie").text(),
            duration_s=float(_whole_seconds(spec)),
            nodelay=True if spec.transport == "tcp" else None,
            mtu_bytes=test.path_mtu(up=up),
        )
    except Unreadable as error:
        raise RunFailed(f"{generator['name']}'s JSON: {error}", code="generator_failed") from error
    residual_ns = bracket.residual_ns(totals.seconds)
    return (
        described
        | {
            "interval_s": INTERVAL_S,
            "clock_offset": {"offset_ns": 0, "residual_ns": residual_ns, "method": "same_boot"},
            "reconciles": ends["sender"]["messages_sent"] >= ends["receiver"]["messages_received_unique"],
        }
        | ends
    )


def _whole_seconds(spec: FlowSpec) -> int:
    return math.ceil(spec.duration_s + START_MARGIN_S)


def _parse(text: bytes, said: str, name: str) -> dict[str, Any]:
    """The client's JSON. Raises RunFailed with its own words when the test failed."""
    try:
        document = json.loads(text)
    except ValueError:
        raise RunFailed(
            f"{name} client wrote no JSON: {said or 'nothing at all'}", code="generator_failed"
        ) from None
    if "error" in document:
        raise RunFailed(f"{name} client: {document['error']}", code="generator_failed")
    return dict(document)


async def _lines(process: Process) -> Any:
    while line := await process.next_line():
        yield line
