# SPDX-License-Identifier: Apache-2.0
"""The two generators of the bench under one form: a flow goes in, counts and CPU seconds come out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veth import RECEIVER_ADDRESS, RECEIVER_NETNS, SENDER_NETNS, VETH, Route, inside

SATURATING_MBPS = 2000.0  # more 64-byte datagrams than any socket takes one by one


@dataclass(frozen=True)
class Flow:
    """A UDP flow of constant rate; ``rate_mbps`` None means as fast as it goes."""

    payload_bytes: int
    rate_mbps: float | None
    seconds: float

    @property
    def messages(self) -> float:
        """Messages that the asked rate makes in the asked time."""
        return (self.rate_mbps or 0.0) * 1e6 * self.seconds / (8 * self.payload_bytes)


@dataclass(frozen=True)
class Outcome:
    """What one flow did: message counts of both ends and CPU seconds of both processes."""

    scheduled: int
    sent: int
    received: int
    seconds: float
    sender_cpu_s: float
    receiver_cpu_s: float

    @property
    def sent_pps(self) -> float:
        """Messages sent per second."""
        return self.sent / self.seconds

    @property
    def received_pps(self) -> float:
        """Messages received per second, each once."""
        return self.received / self.seconds

    @property
    def sender_cpu_s_per_million(self) -> float:
        """CPU seconds of the sending process per million messages sent."""
        return 1e6 * self.sender_cpu_s / self.sent

    @property
    def receiver_cpu_s_per_million(self) -> float:
        """CPU seconds of the receiving process per million messages received."""
        return 1e6 * self.receiver_cpu_s / max(self.received, 1)


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
        binary = Path(os.environ.get("NETJOULE_BIN_DIR", repo / "target/release")) / "netjoule-traffic"
        if not binary.exists():
            raise FileNotFoundError(f"no {binary}: cargo build --release")
        return cls(binary)

    def run(self, flow: Flow, *options: str) -> Outcome:
        """One flow over UDP; a server of its own, so that its CPU is this flow's."""
        report, sender_cpu_s, receiver_cpu_s = self._flow(VETH, "udp", flow, options)
        sender, receiver = report["sender"], report["receiver"]
        return Outcome(
            scheduled=sender["messages_scheduled"],
            sent=sender["messages_sent"],
            received=receiver["messages_received_unique"],
            seconds=flow.seconds,
            sender_cpu_s=sender_cpu_s,
            receiver_cpu_s=receiver_cpu_s,
        )

    def report(self, route: Route, transport: str, flow: Flow, *options: str) -> dict[str, Any]:
        """The report of one flow; its ``cpu_s`` are of the flow alone, without start-up."""
        return self._flow(route, transport, flow, options)[0]

    def _flow(
        self, route: Route, transport: str, flow: Flow, options: tuple[str, ...]
    ) -> tuple[dict[str, Any], float, float]:
        serve = [str(self.binary), "serve", "--bind", route.receiver_address, "--json", "--max-rate", "100G"]
        server = _start(route.receiver_netns, serve)
        _wait_for_line(server, "listening")
        rate = SATURATING_MBPS if flow.rate_mbps is None else flow.rate_mbps
        send = [str(self.binary), "send", "--transport", transport, "--to", route.receiver_address]
        send += ["-b", f"{rate * 1e6:.0f}", "-l", str(flow.payload_bytes), "-t", f"{flow.seconds:g}"]
        send += ["-i", "1", "--json", *options]
        client = _start(route.sender_netns, send)
        lines, sender_cpu_s = _finish(client)
        server.send_signal(signal.SIGTERM)
        _, receiver_cpu_s = _finish(server, tolerate=True)
        report: dict[str, Any] = json.loads(lines.strip().splitlines()[-1])
        return report, sender_cpu_s, receiver_cpu_s


@dataclass(frozen=True)
class Iperf3:
    """iperf3 as installed."""

    version: str

    @classmethod
    def find(cls) -> Iperf3:
        """The iperf3 on PATH.

        Raises:
            FileNotFoundError: when there is none.
        """
        if shutil.which("iperf3") is None:
            raise FileNotFoundError("no iperf3 on PATH: apt-get install iperf3")
        answer = subprocess.run(["iperf3", "--version"], capture_output=True, text=True, check=True).stdout
        return cls(answer.split()[1])

    def run(self, flow: Flow) -> Outcome:
        """One UDP flow; the server ends after it."""
        server = _start(RECEIVER_NETNS, ["iperf3", "-s", "-1", "-B", RECEIVER_ADDRESS, "--forceflush"])
        _wait_for_line(server, "listening")
        rate = "0" if flow.rate_mbps is None else f"{flow.rate_mbps * 1e6:.0f}"
        send = ["iperf3", "-c", RECEIVER_ADDRESS, "-u", "-b", rate, "-l", str(flow.payload_bytes)]
        client = _start(SENDER_NETNS, [*send, "-t", f"{flow.seconds:g}", "--json"])
        text, sender_cpu_s = _finish(client)
        _, receiver_cpu_s = _finish(server)
        end = json.loads(text)["end"]["sum"]
        sent = int(end["packets"])
        return Outcome(
            scheduled=round(flow.messages),
            sent=sent,
            received=sent - int(end["lost_packets"]),
            seconds=flow.seconds,
            sender_cpu_s=sender_cpu_s,
            receiver_cpu_s=receiver_cpu_s,
        )


def _start(netns: str, command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(inside(netns, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _wait_for_line(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise RuntimeError(f"{process.args} ended before it was listening")


def _finish(process: subprocess.Popen[str], *, tolerate: bool = False) -> tuple[str, float]:
    """Wait for the end; its output and its CPU seconds.

    wait4's user plus system time is the scheduler's exact run time of the whole thread group (only the
    split of the two is tick-based). ``ip netns exec`` replaces itself, so it is the generator's own.
    """
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 and not tolerate:
        raise RuntimeError(f"{process.args} ended with {process.returncode}: {text[-300:]}")
    return text, usage.ru_utime + usage.ru_stime
