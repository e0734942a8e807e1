# SPDX-License-Identifier: Apache-2.0
"""iperf3 as a generator of the bench, whatever its version."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_bench.generators.flow import Flow, Outcome
from netjoule_bench.sandbox.processes import Ended, Running
from netjoule_bench.sandbox.veth import RECEIVER_ADDRESS, RECEIVER_NETNS, SENDER_NETNS

RECEIVE_BUFFER_BYTES = 32 << 20  # as protocols/sockets asks for
_USUAL_BUFFER_BYTES = 212_992  # net.core.rmem_default; what a socket has anyway


@dataclass(frozen=True)
class Iperf3:
    """An iperf3: how it is called and which it is."""

    command: tuple[str, ...]
    version: str

    @classmethod
    def find(cls) -> Iperf3:
        """The iperf3 on PATH.

        Raises:
            FileNotFoundError: when there is none.
        """
        if shutil.which("iperf3") is None:
            raise FileNotFoundError("no iperf3 on PATH: apt-get install iperf3")
        return cls.of(("iperf3",))

    @classmethod
    def of(cls, command: tuple[str, ...]) -> Iperf3:
        """The iperf3 that ``command`` runs.

        Raises:
            OSError, subprocess.SubprocessError: when it does not run.
        """
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        return cls(command, answer.split()[1])

    @property
    def name(self) -> str:
        """Name with version."""
        return f"iperf3 {self.version}"

    def run(self, flow: Flow, *options: str) -> Outcome:
        """One UDP flow; the server ends after it."""
        rate = "0" if flow.rate_mbps is None else f"{flow.rate_mbps * 1e6:.0f}"
        arguments = ["-u", "-b", rate, "-l", str(flow.payload_bytes), "-t", f"{flow.seconds:g}", *options]
        sending, receiving = self._both(arguments)
        return outcome(json.loads(sending.text), flow, (sending.cpu_s, receiving.cpu_s))

    def run_with_room(self, flow: Flow) -> Outcome:
        """The same with the receive buffer that netjoule-traffic has, where the kernel grants it."""
        return self.run(flow, *room(_greatest_buffer()))

    def tcp_goodput_mbps(self, message_bytes: int, seconds: float) -> float:
        """Goodput of one TCP stream as its receiver counts it."""
        sending, _ = self._both(["-l", str(message_bytes), "-t", f"{seconds:g}"])
        return float(json.loads(sending.text)["end"]["sum_received"]["bits_per_second"]) * 1e-6

    def _both(self, arguments: list[str]) -> tuple[Ended, Ended]:
        serve = [*self.command, "-s", "-1", "-B", RECEIVER_ADDRESS, "--forceflush"]
        send = [*self.command, "-c", RECEIVER_ADDRESS, "--json", *arguments]
        with Running(RECEIVER_NETNS, serve) as server:
            server.wait_for_line("listening")
            with Running(SENDER_NETNS, send) as client:
                sending = client.finish()
            return sending, server.finish()


def room(greatest_buffer_bytes: int) -> list[str]:
    """iperf3's option for netjoule-traffic's receive buffer or the greatest granted: more is an error."""
    granted = min(RECEIVE_BUFFER_BYTES, greatest_buffer_bytes)
    return ["-w", f"{granted}"] if granted > _USUAL_BUFFER_BYTES else []


def _greatest_buffer() -> int:
    try:
        limits = [Path(f"/proc/sys/net/core/{name}") for name in ("rmem_max", "wmem_max")]
        return min(int(limit.read_text("ascii")) for limit in limits)
    except OSError:  # older kernels show them in the first network namespace only
        return 0


def outcome(report: Mapping[str, Any], flow: Flow, cpu_s: tuple[float, float]) -> Outcome:
    """The figures of a client's JSON report (3.12 to 3.21)."""
    end = report["end"]
    # Since 3.13 the two ends stand apart; before, the sum has the sender's packets and the receiver's losses.
    sent = int(end.get("sum_sent", end["sum"]).get("packets", end["sum"]["packets"]))
    lost = int(end.get("sum_received", end["sum"]).get("lost_packets", end["sum"]["lost_packets"]))
    return flow.outcome((sent, sent - lost), float(end["sum"]["seconds"]), cpu_s)
