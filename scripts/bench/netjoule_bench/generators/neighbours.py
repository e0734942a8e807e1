# SPDX-License-Identifier: Apache-2.0
"""D-ITG and NetPerfMeter as generators of the bench: UDP flows, figures from their own logs."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netjoule_bench.generators.flow import Flow, Outcome
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import RECEIVER_ADDRESS, RECEIVER_NETNS, SENDER_NETNS, inside

UNPACED_PPS = 2_000_000.0  # more messages than either sends
_IPPROTO_SCTP = 132
_PORT = 9000
_DITG_FIGURE = re.compile(r"^(Total packets|Total time|Packets dropped)\s*=\s*([\d.]+)", re.MULTILINE)
_SCALAR = re.compile(r'scalar\s+"netPerfMeter\.\w+\.flow\[0\]"\s+"([^"]+)"\s+(\S+)')


@dataclass(frozen=True)
class Neighbour:
    """Another generator: its name, its runs, and the smallest message it can send."""

    name: str
    run: Callable[[Flow], Outcome]
    least_payload_bytes: int


def installed() -> tuple[list[Neighbour], dict[str, str]]:
    """Those that this host can run, and why not the others."""
    found: list[Neighbour] = []
    missing: dict[str, str] = {}
    if all(shutil.which(name) for name in ("ITGSend", "ITGRecv", "ITGDec")):
        found.append(Neighbour("D-ITG", ditg, 20))
    else:
        missing["D-ITG"] = "it is not installed (apt-get install d-itg)"
    if not shutil.which("netperfmeter"):
        missing["NetPerfMeter"] = "it is not installed (apt-get install netperfmeter)"
    elif not _has_sctp():
        missing["NetPerfMeter"] = "its passive side needs SCTP, which this kernel lacks"
    else:
        found.append(Neighbour("NetPerfMeter", netperfmeter, 48))
    return found, missing


def _has_sctp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, _IPPROTO_SCTP).close()
    except OSError:
        return False
    return True


def ditg(flow: Flow) -> Outcome:
    """One flow of ITGSend to an ITGRecv of its own."""
    pps = UNPACED_PPS if flow.rate_mbps is None else flow.messages / flow.seconds
    with tempfile.TemporaryDirectory() as folder, Running(RECEIVER_NETNS, ["ITGRecv"]) as receiver:
        receiver.wait_for_line("Press Ctrl-C")
        send = ["ITGSend", "-a", RECEIVER_ADDRESS, "-T", "UDP", "-C", f"{pps:.6f}"]
        send += ["-c", str(flow.payload_bytes), "-t", f"{1e3 * flow.seconds:.0f}"]
        send += ["-l", f"{folder}/sender.log", "-x", f"{folder}/receiver.log"]
        with Running(SENDER_NETNS, send) as sender:
            sending = sender.finish()
        receiver.tell(signal.SIGINT)
        receiving = receiver.finish(tolerate=True)
        logs = [_decoded(Path(folder) / f"{end}.log") for end in ("sender", "receiver")]
    return ditg_outcome(logs[0], logs[1], flow, (sending.cpu_s, receiving.cpu_s))


def _decoded(log: Path) -> str:
    with Running(SENDER_NETNS, ["ITGDec", str(log)]) as decoder:
        return decoder.finish().text


def ditg_outcome(sender_log: str, receiver_log: str, flow: Flow, cpu_s: tuple[float, float]) -> Outcome:
    """The figures of both logs as ITGDec sums them up; ``cpu_s`` of the sender and of the receiver."""
    sent, received = (dict(_DITG_FIGURE.findall(log)) for log in (sender_log, receiver_log))
    packets = int(sent["Total packets"]), int(received["Total packets"])
    return flow.outcome(packets, float(received["Total time"]), cpu_s)


def netperfmeter(flow: Flow) -> Outcome:
    """One flow of NetPerfMeter to a passive side of its own; rate 0 is its word for "as fast as it goes"."""
    rate = 0.0 if flow.rate_mbps is None else flow.messages / flow.seconds
    passive_side = ["netperfmeter", str(_PORT), "-control-over-tcp"]
    with tempfile.TemporaryDirectory() as folder, Running(RECEIVER_NETNS, passive_side) as passive:
        _await_listener(RECEIVER_NETNS, _PORT + 1)
        send = ["netperfmeter", f"{RECEIVER_ADDRESS}:{_PORT}", "-control-over-tcp", "-quiet"]
        send += [f"-scalar={folder}/flow.sca", f"-vector={folder}/flow.vec", f"-config={folder}/flow.config"]
        send += [f"-runtime={flow.seconds:g}", "-udp"]
        send += [f"const{rate:.6f}:const{flow.payload_bytes}:const0:const0"]
        with Running(SENDER_NETNS, send) as active:
            sending = active.finish()
        passive.tell(signal.SIGINT)
        receiving = passive.finish(tolerate=True)
        texts = [
            (Path(folder) / f"flow-{end}.sca").read_text("ascii", "replace") for end in ("active", "passive")
        ]
    return netperfmeter_outcome(texts[0], texts[1], flow, (sending.cpu_s, receiving.cpu_s))


def _await_listener(netns: str, port: int) -> None:
    """Until somebody listens on a TCP port: netperfmeter does not say when it does."""
    ask = inside(netns, ["ss", "-Hltn", "sport", "=", f":{port}"])
    for _ in range(100):
        if subprocess.run(ask, capture_output=True, check=True).stdout:
            return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on TCP port {port}")


def netperfmeter_outcome(active: str, passive: str, flow: Flow, cpu_s: tuple[float, float]) -> Outcome:
    """The figures of both scalar files; the time is the receiver's, as it sends longer than it is told."""
    sent, received = dict(_SCALAR.findall(active)), dict(_SCALAR.findall(passive))
    span_s = 1e-6 * (float(received["Last Reception"]) - float(received["First Reception"]))
    packets = round(float(sent["Transmitted Packets"])), round(float(received["Received Packets"]))
    return flow.outcome(packets, span_s, cpu_s)
