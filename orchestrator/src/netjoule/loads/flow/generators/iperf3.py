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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.core import programs
from netjoule.core.clock import Clock, SystemClock, boot_id
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts.host import Process
from netjoule.loads.flow.generators import foreign
from netjoule.loads.flow.generators.base import INTERVAL_S, Endpoints, FlowSpec
from netjoule.loads.flow.generators.waiting import listening

__all__ = ["Bracket", "Iperf3", "client_arguments", "flow_report", "losses_that_stayed"]

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
    try:
        return _Mapping(spec, document, bracket, hosts, generator).report()
    except (KeyError, IndexError, TypeError) as error:
        raise RunFailed(f"{generator['name']}'s JSON lacks {error}", code="generator_failed") from error


def losses_that_stayed(told: Sequence[int | None]) -> list[int | None]:
    """Messages lost per interval, those that came after all taken from the intervals that had missed them.

    Args:
        told: iperf3's lost_packets of each interval; below 0 where more came late than went missing
            (iperf_udp.c, iperf_udp_recv). None where nothing is told.

    Returns:
        as many counts, none below 0, with the same sum where that is not below 0.
    """
    stayed = list(told)
    for index, lost in enumerate(stayed):
        late = 0 if lost is None else max(0, -lost)
        stayed[index] = None if lost is None else max(0, lost)
        for earlier in range(index - 1, -1, -1):
            taken = min(late, stayed[earlier] or 0)
            if taken:
                stayed[earlier] = (stayed[earlier] or 0) - taken
            late -= taken
            if not late:
                break
    return stayed


class _Mapping:
    """One test's JSON seen as a flow; `sent` and `got` are the sending and the receiving end's side."""

    def __init__(
        self,
        spec: FlowSpec,
        document: Mapping[str, Any],
        bracket: Bracket,
        hosts: Mapping[str, str],
        generator: Mapping[str, str],
    ) -> None:
        self.spec = spec
        self.generator = dict(generator)
        self.bracket = bracket
        self.document = document
        server: Mapping[str, Any] = document["server_output_json"]
        down = spec.direction == "down"
        self.sent, self.got = (server, document) if down else (document, server)
        self.sender_host = hosts["server" if down else "client"]
        self.receiver_host = hosts["client" if down else "server"]
        self.seconds = float(document["end"]["sum_sent"]["seconds"])
        self.first_ns = bracket.first_packet_ns(self.seconds)

    def report(self) -> dict[str, Any]:
        spec = self.spec
        intervals = [*self._intervals("sender"), *self._intervals("receiver")]
        sender, receiver = self._sender(intervals), self._receiver(intervals)
        unaccounted = sender["messages_sent"] - receiver["messages_received_unique"]
        # What a stream had in flight when the test ended is no loss, and iperf3 counts none.
        if spec.transport != "tcp":
            receiver["messages_lost"] = lost = max(0, unaccounted)
            receiver["loss_ratio"] = lost / sender["messages_sent"] if sender["messages_sent"] else None
        described = foreign.described(
            spec,
            generator=self.generator,
            flow_id=str(self.document["start"]["cookie"]),
            duration_s=float(_whole_seconds(spec)),
            nodelay=True if spec.transport == "tcp" else None,
            mtu_bytes=self._pmtu(),
        )
        return described | {
            "interval_s": INTERVAL_S,
            "clock_offset": {
                "offset_ns": 0,
                "residual_ns": self.bracket.residual_ns(self.seconds),
                "method": "same_boot",
            },
            "sender": sender,
            "receiver": receiver,
            "intervals": intervals,
            "reconciles": unaccounted >= 0,
        }

    def _sender(self, intervals: list[dict[str, Any]]) -> dict[str, Any]:
        mine = [i for i in intervals if i["end"] == "sender"]
        messages, moved = (sum(i[what] for i in mine) for what in ("messages", "bytes"))
        asked = math.floor(self.spec.offered_rate_mbps * 1e6 * self.seconds / 8 / self.spec.payload_bytes)
        scheduled = max(messages, asked)
        end_ns = self.first_ns + round(self.seconds * 1e9)
        return {
            "host": self.sender_host,
            "boot_id": self.bracket.boot_id,
            "start_ns": self.first_ns,
            "first_packet_ns": self.first_ns,
            "last_packet_ns": end_ns,
            "end_ns": end_ns,
            "messages_scheduled": scheduled,
            "messages_sent": messages,
            "messages_not_sent": scheduled - messages,
            "bytes_sent": moved,
            "goodput_mbps": 8e-6 * moved / self.seconds,
            **self._cpu(self.sent),
            "transport_stats": self._sender_stats(),
        }

    def _receiver(self, intervals: list[dict[str, Any]]) -> dict[str, Any]:
        mine = [i for i in intervals if i["end"] == "receiver"]
        messages, moved = (sum(i[what] for i in mine) for what in ("messages", "bytes"))
        udp = self.spec.transport == "udp"
        return {
            "host": self.receiver_host,
            "boot_id": self.bracket.boot_id,
            "first_packet_ns": self.first_ns if messages else None,
            "last_packet_ns": max((i["end_ns"] for i in mine if i["messages"]), default=None),
            "messages_received_unique": messages,
            "messages_lost": None,
            "messages_duplicate": 0,
            "messages_reordered": int(self.got["end"]["streams"][0]["udp"]["out_of_order"]) if udp else 0,
            "bytes_received_unique": moved,
            "goodput_mbps": 8e-6 * moved / self.seconds,
            "loss_ratio": None,
            "jitter_ms": float(self.document["end"]["sum"]["jitter_ms"]) if udp else None,
            "one_way_delay_ms": None,
            **self._cpu(self.got),
            "transport_stats": {},
        }

    def _intervals(self, end: str) -> Iterator[dict[str, Any]]:
        """Contiguous intervals of one end; a message of a stream belongs to the one in which it was whole."""
        side = self.sent if end == "sender" else self.got
        receiver = end == "receiver"
        udp = self.spec.transport == "udp"
        total_bytes = 0
        total_messages = 0
        parts = [entry["sum"] for entry in side["intervals"]]
        losses = losses_that_stayed([int(p["lost_packets"]) if receiver and udp else None for p in parts])
        for one, lost in zip(parts, losses, strict=True):
            total_bytes += int(one["bytes"])
            messages = total_bytes // self.spec.payload_bytes - total_messages
            total_messages += messages
            yield {
                "end": end,
                "start_ns": self.first_ns + round(float(one["start"]) * 1e9),
                "end_ns": self.first_ns + round(float(one["end"]) * 1e9),
                "messages": messages,
                "bytes": int(one["bytes"]),
                "messages_lost": lost,
                "messages_duplicate": None,
                "messages_reordered": None,
                "jitter_ms": float(one["jitter_ms"]) if receiver and udp else None,
                "cpu_s": None,
            }

    def _cpu(self, side: Mapping[str, Any]) -> dict[str, float]:
        """iperf3 tells per cent of one core over the test."""
        use = side["end"]["cpu_utilization_percent"]
        parts = {"cpu_s": "host_total", "cpu_user_s": "host_user", "cpu_system_s": "host_system"}
        return {name: float(use[theirs]) / 100 * self.seconds for name, theirs in parts.items()}

    def _sender_stats(self) -> dict[str, Any]:
        if self.spec.transport != "tcp":
            return {}
        stream = self.sent["end"]["streams"][0]["sender"]
        names = ("retransmits", "max_snd_cwnd", "max_rtt", "min_rtt", "mean_rtt")
        return {name: stream[name] for name in names if name in stream}

    def _pmtu(self) -> int | None:
        streams = [s for i in self.sent["intervals"] for s in i["streams"]]
        return next((int(s["pmtu"]) for s in streams if s.get("pmtu")), None)


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
