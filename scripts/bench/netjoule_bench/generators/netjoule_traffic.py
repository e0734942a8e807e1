# SPDX-License-Identifier: Apache-2.0
"""netjoule-traffic as a generator of the bench."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_bench.generators.flow import Departures, Flow, Outcome
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import VETH, Route

SATURATING_MBPS = 10_000.0  # 64-byte datagrams: more than any socket takes


# Root may have a receive buffer beyond the host's limit (SO_RCVBUFFORCE, socket(7)). iperf3 asks for none, so
# none has.
AS_ANYBODY = ["setpriv", "--bounding-set", "-net_admin"]


@dataclass(frozen=True)
class NetjouleTraffic:
    """netjoule-traffic as built in this checkout."""

    binary: Path

    @classmethod
    def find(cls, repo: Path) -> NetjouleTraffic:
        """The release build.

        Raises:
            FileNotFoundError: with the command that builds it.
        """
        return cls(built(repo, "netjoule-traffic"))

    def run(self, flow: Flow, *options: str, transport: str = "udp") -> Outcome:
        """One flow over the pair; a server of its own, so that its CPU is this flow's."""
        report, sender_cpu_s, receiver_cpu_s = self._flow(VETH, transport, flow, options)
        return outcome(report, flow, sender_cpu_s, receiver_cpu_s)

    def report(self, route: Route, transport: str, flow: Flow, *options: str) -> dict[str, Any]:
        """The report of one flow; its ``cpu_s`` are of the flow alone, without start-up."""
        return self._flow(route, transport, flow, options)[0]

    def _flow(
        self, route: Route, transport: str, flow: Flow, options: tuple[str, ...]
    ) -> tuple[dict[str, Any], float, float]:
        rate = SATURATING_MBPS if flow.rate_mbps is None else flow.rate_mbps
        send = [str(self.binary), "send", "--transport", transport]
        send += ["-b", f"{rate * 1e6:.0f}", "-l", str(flow.payload_bytes), "-t", f"{flow.seconds:g}"]
        send += ["-i", "1", "--json", *options]
        if transport == "null":
            with Running(route.sender_netns, send) as client:
                ended = client.finish()
            return _report(ended.text), ended.cpu_s, 0.0
        serve = [*AS_ANYBODY, str(self.binary), "serve", "--bind", route.receiver_address, "--json"]
        # A port of its own: flows may run side by side.
        with Running(route.receiver_netns, [*serve, "--port", "0", "--max-rate", "100G"]) as server:
            port = _port(server.wait_for_line("listening"))
            with Running(route.sender_netns, [*send, "--to", f"{route.receiver_address}:{port}"]) as client:
                sending = client.finish()
            server.tell(signal.SIGTERM)
            receiving = server.finish(tolerate=True)
        return _report(sending.text), sending.cpu_s, receiving.cpu_s


def built(repo: Path, name: str) -> Path:
    """A program of the release build.

    Raises:
        FileNotFoundError: with the command that builds it.
    """
    binary = Path(os.environ.get("NETJOULE_BIN_DIR", repo / "target/release")) / name
    if not binary.exists():
        raise FileNotFoundError(f"no {binary}: cargo build --release")
    return binary


def outcome(report: Mapping[str, Any], flow: Flow, sender_cpu_s: float, receiver_cpu_s: float) -> Outcome:
    """The figures of a flow report; without a receiver (null) what was sent counts as received."""
    sender, receiver = report["sender"], report["receiver"]
    received = receiver["messages_received_unique"] if receiver else sender["messages_sent"]
    return Outcome(
        scheduled=sender["messages_scheduled"],
        sent=sender["messages_sent"],
        received=received,
        seconds=_span_s(receiver or sender) or flow.seconds,
        sender_cpu_s=sender_cpu_s,
        receiver_cpu_s=receiver_cpu_s,
        departures=departures(report),
    )


def departures(report: Mapping[str, Any]) -> Departures:
    """What the flow's pacing certificate says; nothing for a report without one."""
    certificate = report.get("pacing_certificate") or {}
    errors = certificate.get("error_us") or {}
    return Departures(errors.get("p50"), errors.get("p99"), certificate.get("within_50us_ratio"))


def _span_s(end: Mapping[str, Any]) -> float:
    first_ns, last_ns = end["first_packet_ns"], end["last_packet_ns"]
    return 1e-9 * (last_ns - first_ns) if first_ns is not None and last_ns is not None else 0.0


def _report(text: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return report


def _port(line: str) -> int:
    """The control port that the server says it listens on."""
    return int(str(json.loads(line)["control"]).rpartition(":")[2])
