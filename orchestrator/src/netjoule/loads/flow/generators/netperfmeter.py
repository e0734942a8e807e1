# SPDX-License-Identifier: Apache-2.0
"""Drives NetPerfMeter and maps its scalar and vector files: UDP, TCP and, where the kernel has it, DCCP.

What differs from netjoule-traffic, and how it is handled:

- It cannot hold: while idle there is its passive side but no flow.
- Its passive side opens an SCTP socket whatever the control channel uses, so the kernel needs SCTP. For
  DCCP it listens on IPv6's wildcard address, so the kernel needs dccp_ipv6 for flows over IPv4 too.
- The receiving end's vector file has one line per message, in microseconds of the wall clock; the first
  messages, before its statistics began, and the last ones are known only as a count. The sending end
  counts once a second: there are no intervals of the sender.
- Control connection and the download of the passive side's files use the test addresses, so they cross
  the radio; the download comes after the flow, in its tail.
- Whole seconds only: it sends up to a second longer than asked.
- CPU shares in its files are of the whole host, not of the process: CPU time stays empty.
- It tells its version nowhere.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts.host import how_it_ended
from netjoule.loads.flow.generators.base import Endpoints, FlowSpec
from netjoule.loads.flow.generators.messages import Arrival, Clocks, Sent, flow_report
from netjoule.loads.flow.generators.one_shot import OneShot, OneShotFlow, listening

_FLAG = {"udp": "-udp", "tcp": "-tcp", "dccp-kernel": "-dccp"}
_PORT_OFFSET = 3  # beside netjoule-traffic, whose server may run for the null floor; its control is one above
_IPPROTO_SCTP = 132
_SCALAR = re.compile(r'scalar\s+"netPerfMeter\.(?:active|passive)\.flow\[0\]"\s+"([^"]+)"\s+(\S+)')


class Netperfmeter(OneShot):
    """One passive side per flow, and an active side that brings all files to the client."""

    name = client = "netperfmeter"
    programs = ("netperfmeter",)

    def require(self) -> None:
        """Raises HostLacks without the program, or without SCTP in the kernel."""
        super().require()
        try:
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, _IPPROTO_SCTP).close()
        except OSError:
            raise HostLacks(
                "netperfmeter's passive side needs SCTP, which this kernel lacks",
                next_step="try 'modprobe sctp', or use generator netjoule-traffic",
            ) from None

    async def open(self, spec: FlowSpec, ends: Endpoints) -> OneShotFlow:
        """Start the passive side, whose output nobody reads, and wait until it listens."""
        port = ends.server_port + _PORT_OFFSET
        argv = ["sh", "-c", 'exec "$0" "$@" >/dev/null', self.program(), str(port), "-control-over-tcp"]
        passive = await listening(ends.server, argv, port + 1, name="netperfmeter (passive)")
        return OneShotFlow(self, spec, ends, passive)

    def arguments(self, spec: FlowSpec, ends: Endpoints, folder: Path) -> list[str]:
        """Of the active side."""
        address = ends.server_test_address
        target = f"[{address}]" if ":" in address else address
        rate = f"const{spec.offered_rate_mbps * 1e6 / 8 / spec.payload_bytes:.6f}:const{spec.payload_bytes}"
        silent = "const0:const0"
        flow = f"{silent}:{rate}" if spec.direction == "down" else f"{rate}:{silent}"
        if spec.transport == "tcp":
            flow += ":nodelay=on"
        if "ccid" in spec.options:
            flow += f":ccid={spec.options['ccid']}"
        argv = [f"{target}:{ends.server_port + _PORT_OFFSET}", "-control-over-tcp"]
        argv += [f"-vector={folder}/flow.vec", f"-scalar={folder}/flow.sca", f"-config={folder}/flow.config"]
        return [*argv, f"-runtime={whole_seconds(spec)}", _FLAG[spec.transport], flow]

    async def report_of(self, flow: OneShotFlow, said: str) -> dict[str, Any]:
        """The report of a flow by the files of both sides. Raises RunFailed when there are none."""
        if flow.status != 0:
            words = _refusal(said) or flow.process.said() or "without an error message"
            raise RunFailed(f"netperfmeter {how_it_ended(flow.status)}: {words}", code="generator_failed")
        clocks = Clocks.between(flow.before, flow.after)
        files = await asyncio.to_thread(_files, flow.folder)
        return await asyncio.to_thread(as_report, flow.spec, files, clocks, **flow.places)


def whole_seconds(spec: FlowSpec) -> int:
    """How long it is told to send."""
    return math.ceil(spec.duration_s)


def read_scalars(text: str) -> dict[str, float]:
    """Scalars of the one flow by name."""
    return {name: float(value) for name, value in _SCALAR.findall(text)}


def read_vector(text: str) -> Iterator[tuple[int, int, int, float, float]]:
    """Lines of a receiver's vector: wall ns, number, packets so far, delay and jitter in ms."""
    for line in text.splitlines()[1:]:
        cells = line.split()
        yield int(cells[1]) * 1000, int(cells[3]), int(cells[5]), float(cells[10]), float(cells[12])


def as_report(
    spec: FlowSpec,
    files: Mapping[str, str],
    clocks: Clocks,
    *,
    hosts: dict[str, str],
    boot_id: str,
    receiver_offset_ns: int = 0,
    duration_s: float | None = None,
) -> dict[str, Any]:
    """The flow report of one flow; pure.

    Args:
        spec: what was asked.
        files: texts of active.sca, passive.sca, active.vec and passive.vec (the flow's vectors).
        clocks: wall clock against CLOCK_MONOTONIC.
        hosts: names of client and server.
        boot_id: of the host that both run on.
        receiver_offset_ns: what brings the receiver's wall clock to the sender's.
        duration_s: how long it sent; without it the whole seconds that it was told to.

    Raises:
        RunFailed (generator_failed): when a file or a figure that the report needs is missing.
    """
    sender, receiver = ("passive", "active") if spec.direction == "down" else ("active", "passive")
    try:
        sent = read_scalars(files[f"{sender}.sca"])
        got = read_scalars(files[f"{receiver}.sca"])
        arrivals, jitter_ms = _arrivals(files[f"{receiver}.vec"], got, clocks.offset_ns + receiver_offset_ns)
        first_ns, last_ns = (
            round(sent[f"{which} Transmission"]) * 1000 + clocks.offset_ns for which in ("First", "Last")
        )
        messages = round(sent["Transmitted Packets"])
    except (KeyError, IndexError, ValueError) as error:
        raise RunFailed(f"netperfmeter's files lack {error}", code="generator_failed") from error
    return flow_report(
        spec,
        Sent(messages, first_ns, last_ns),
        arrivals,
        generator={"name": Netperfmeter.name, "version": "unknown"},
        hosts=hosts,
        boot_id=boot_id,
        residual_ns=clocks.residual_ns,
        duration_s=float(whole_seconds(spec)) if duration_s is None else duration_s,
        jitter_ms=jitter_ms,
    )


def _arrivals(vector: str, got: Mapping[str, float], offset_ns: int) -> tuple[list[Arrival], float | None]:
    """Arrivals of a flow; messages before the first line are spread evenly, later ones stand at the end."""
    lines = list(read_vector(vector))
    total = round(got["Received Packets"])
    first_ns, last_ns = (round(got[f"{which} Reception"]) * 1000 + offset_ns for which in ("First", "Last"))
    before = lines[0][2] - 1 if lines else total
    after = total - lines[-1][2] if lines else 0
    step_ns = (lines[0][0] + offset_ns - first_ns) / before if lines and before else 0.0
    arrivals = [Arrival(first_ns + round(k * step_ns)) for k in range(before)]
    arrivals += [Arrival(wall_ns + offset_ns, number, delay) for wall_ns, number, _, delay, _ in lines]
    arrivals += [Arrival(last_ns)] * max(0, after)
    return arrivals, lines[-1][4] if lines else None


def _files(folder: Path) -> dict[str, str]:
    names = {f"{end}.sca": f"flow-{end}.sca" for end in ("active", "passive")}
    names |= {f"{end}.vec": f"flow-{end}-00000000-0000.vec" for end in ("active", "passive")}
    return {
        name: (folder / file).read_text(encoding="ascii", errors="replace")
        for name, file in names.items()
        if (folder / file).exists()
    }


def _refusal(said: str) -> str:
    """The part of its output that says what went wrong; empty when none does."""
    errors = [line.strip() for line in said.splitlines() if "ERROR" in line]
    return errors[-1] if errors else ""
