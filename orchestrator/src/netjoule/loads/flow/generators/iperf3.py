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

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule.core.errors import HostLacks, RunFailed
from netjoule.core.jsontree import Node, Unreadable
from netjoule.loads.flow.generators import foreign
from netjoule.loads.flow.generators.base import INTERVAL_S, Endpoints, FlowSpec
from netjoule.loads.flow.generators.iperf3_report import IperfTest
from netjoule.loads.flow.generators.one_shot import OneShot, OneShotFlow, listening

_TRANSPORT_FLAG = {"udp": "--udp", "tcp": "--no-delay", "dccp-kernel": "--dccp"}
START_MARGIN_S = 0.5  # most that the bracket may shift the flow


class Iperf3(OneShot):
    """The second generator: a one-off server and a client per flow."""

    name = "iperf3"
    programs = ("iperf3",)
    client = "iperf3 client"
    version_word, version_told = "--version", r"^\S+\s+(\S+)"

    async def version(self) -> str:
        """Its version. Raises HostLacks when it does not say it."""
        if await super().version() == "unknown":
            raise HostLacks(f"{self.name} does not tell its version", next_step="install it again")
        return self.known_version

    async def open(self, spec: FlowSpec, ends: Endpoints) -> OneShotFlow:
        """Start the flow's server and wait until it listens.

        Raises RunFailed (generator_failed) when it does not.
        """
        argv = [self.program(), "--server", "--one-off", "--json", "--interval", f"{INTERVAL_S:g}"]
        argv += ["--bind", ends.server_test_address, "--port", str(ends.server_port)]
        server = await listening(ends.server, argv, ends.server_port, name=f"{self.name} server")
        return OneShotFlow(self, spec, ends, server)

    def arguments(self, spec: FlowSpec, ends: Endpoints, folder: Path) -> list[str]:
        """Of the client."""
        argv = ["--client", ends.server_test_address, "--port", str(ends.server_port)]
        argv += ["--json", "--get-server-output", "--interval", f"{INTERVAL_S:g}"]
        argv += ["--length", str(spec.payload_bytes), "--bitrate", str(round(spec.offered_rate_mbps * 1e6))]
        argv += ["--time", str(_whole_seconds(spec)), "--connect-timeout", "5000"]
        argv.append(_TRANSPORT_FLAG[spec.transport])
        if spec.direction == "down":
            argv.append("--reverse")
        return argv

    async def report_of(self, flow: OneShotFlow, said: str) -> dict[str, Any]:
        """The report of a flow. Raises RunFailed with iperf3's words when it failed."""
        document = _parse(said, flow.process.said(), self.name)
        places = flow.places
        bracket = Bracket(flow.before[1], flow.after[1], places["boot_id"])
        generator = {"name": self.name, "version": self.known_version}
        return flow_report(flow.spec, document, bracket, hosts=places["hosts"], generator=generator)


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


def _parse(text: str, said: str, name: str) -> dict[str, Any]:
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
