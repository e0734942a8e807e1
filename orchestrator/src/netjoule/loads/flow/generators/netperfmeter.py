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
import contextlib
import math
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.clock import Clock, SystemClock, boot_id, wall_and_monotonic_ns
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts.host import Process, how_it_ended
from netjoule.loads.flow.generators.base import Endpoints, FlowSpec
from netjoule.loads.flow.generators.messages import Arrival, Clocks, Sent, flow_report
from netjoule.loads.flow.generators.waiting import listening, to_the_end

GRACE_S = 30.0
_FLAG = {"udp": "-udp", "tcp": "-tcp", "dccp-kernel": "-dccp"}
_PORT_OFFSET = 3  # beside netjoule-traffic, whose server may run for the null floor; its control is one above
_IPPROTO_SCTP = 132
_SCALAR = re.compile(r'scalar\s+"netPerfMeter\.(?:active|passive)\.flow\[0\]"\s+"([^"]+)"\s+(\S+)')


class Netperfmeter:
    """One passive side per flow, and an active side that brings all files to the client."""

    name = "netperfmeter"

    def __init__(self, clock: Clock | None = None) -> None:
        """`clock` ties the files' times to CLOCK_MONOTONIC."""
        self._clock = clock or SystemClock()

    def require(self) -> None:
        """Raises HostLacks without the program, or without SCTP in the kernel."""
        programs.find(self.name)
        try:
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, _IPPROTO_SCTP).close()
        except OSError:
            raise HostLacks(
                "netperfmeter's passive side needs SCTP, which this kernel lacks",
                next_step="try 'modprobe sctp', or use generator netjoule-traffic",
            ) from None

    async def version(self) -> str:
        """It does not tell one."""
        self.require()
        return "unknown"

    async def serve(self, ends: Endpoints) -> None:
        """Nothing to start: each flow brings its own passive side."""
        return

    async def open(self, spec: FlowSpec, ends: Endpoints) -> _Flow:
        """Start the passive side and wait until it listens."""
        port = ends.server_port + _PORT_OFFSET
        argv = [programs.find(self.name), str(port), "-control-over-tcp"]
        passive = await ends.server.start(argv, name="netperfmeter (passive)")
        drain = asyncio.ensure_future(_drained(passive))
        try:
            await listening(ends.server, port + 1, what="netperfmeter")
        except BaseException as error:
            await _ended(drain)
            await passive.stop()
            if isinstance(error, RunFailed) and passive.said():
                raise RunFailed(f"{error.what}: {passive.said()}", code=error.code) from error
            raise
        return _Flow(self._clock, spec, ends, passive, drain)


class _Flow:
    holds = False

    def __init__(
        self,
        clock: Clock,
        spec: FlowSpec,
        ends: Endpoints,
        passive: Process,
        drain: asyncio.Future[None],
    ) -> None:
        self._clock = clock
        self._spec = spec
        self._ends = ends
        self._passive: Process | None = passive
        self._active: Process | None = None
        self._drain = drain
        self._folder = Path(tempfile.mkdtemp(prefix="netjoule-netperfmeter-"))
        self._before = (0, 0)

    async def go(self) -> None:
        argv = [programs.find(Netperfmeter.name), *flow_arguments(self._spec, self._ends, self._folder)]
        self._before = wall_and_monotonic_ns(self._clock)
        self._active = await self._ends.client.start(argv, name="netperfmeter")

    async def report(self) -> dict[str, Any]:
        assert self._active is not None
        said = await to_the_end(self._active, whole_seconds(self._spec) + GRACE_S)
        code = await self._active.wait()
        if code != 0:
            words = _refusal(said) or self._active.said() or "without an error message"
            raise RunFailed(f"netperfmeter {how_it_ended(code)}: {words}", code="generator_failed")
        clocks = Clocks.between(self._before, wall_and_monotonic_ns(self._clock))
        files = await asyncio.to_thread(_files, self._folder)
        return await asyncio.to_thread(
            as_report,
            self._spec,
            files,
            clocks,
            hosts={"client": self._ends.client.name, "server": self._ends.server.name},
            boot_id=boot_id(),
        )

    async def end(self) -> None:
        processes, self._active, self._passive = (self._active, self._passive), None, None
        await _ended(self._drain)
        for process in processes:
            if process is not None:
                await process.stop(grace_s=1.0)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


async def _drained(process: Process) -> None:
    """Read on, so that a full pipe does not stop it."""
    while await process.next_line():
        pass


async def _ended(drain: asyncio.Future[None]) -> None:
    """End a reader before its process is stopped, which reads the rest itself."""
    drain.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await drain


def whole_seconds(spec: FlowSpec) -> int:
    """How long it is told to send."""
    return math.ceil(spec.duration_s)


def flow_arguments(spec: FlowSpec, ends: Endpoints, folder: Path) -> list[str]:
    """Arguments of the active side for one flow."""
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
