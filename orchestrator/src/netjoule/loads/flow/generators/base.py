# SPDX-License-Identifier: Apache-2.0
"""What the runner asks of a generator, and what every generator gives back: the flow report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from netjoule.hosts.host import Host, Server
from netjoule_contracts.flow_work import megabits

INTERVAL_S = 0.1


@dataclass(frozen=True)
class FlowSpec:
    """One flow of a run; the rate counts payload bits.

    With a profile its schedule comes of profile, schedule_seed and duration_s; payload_bytes is then its
    greatest message and offered_rate_mbps the mean that the workload names.

    Attributes:
        flow: its number in the run, from 1.
        client: the topology's name of its client.
    """

    run_id: str
    transport: str
    payload_bytes: int
    offered_rate_mbps: float
    duration_s: float
    direction: str
    ip_version: int
    seed: int
    pacing: str = "absolute"
    window_us: int = 0
    gso: bool = False
    pacing_limits: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Any] | None = None
    schedule_seed: int = 1
    flow: int = 1
    client: str = ""

    def as_json(self) -> dict[str, Any]:
        """As the work of a run has it."""
        names = ("flow", "client", "transport", "direction", "payload_bytes", "offered_rate_mbps")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """In words: ``flow 2 (tcp down of laptop)``."""
        return f"flow {self.flow} ({self.transport} {self.direction} of {self.client})"


@dataclass(frozen=True)
class Endpoints:
    """The two hosts of a flow and the server's addresses on the test and the control network.

    `traffic_secret` is the reference to what both ends of netjoule-traffic share; None without one. `flows`
    is how many flows the server must take at once; `server_sends_profile` says that it writes schedules out
    for some of them.
    """

    client: Host
    server: Host
    server_test_address: str
    server_control_address: str
    server_port: int
    traffic_secret: str | None = None
    flows: int = 1
    server_sends_profile: bool = False


class Flow(Protocol):
    """One sender, from its start to its end.

    A generator that can hold keeps its sockets open and silent between `ready` and `go`, and between the
    report and `end`; one that cannot has no process in these times and `holds` is False.
    """

    @property
    def holds(self) -> bool:
        """Whether idle before and after the flow has the sender's process and sockets."""

    async def go(self) -> None:
        """Start sending."""

    async def report(self) -> dict[str, Any]:
        """The flow report, once the flow has ended.

        Raises RunFailed with a reason code when the flow failed.
        """

    async def end(self) -> None:
        """Close the sockets and end the process; may be called at any time, and twice."""


class Generator(Protocol):
    """A program that makes flows."""

    @property
    def name(self) -> str:
        """What workloads call it."""

    def require(self) -> None:
        """Raises HostLacks, with what to install, when this host cannot run it."""

    async def version(self) -> str:
        """Its version, as it says it."""

    async def serve(self, ends: Endpoints) -> Server | None:
        """Start the long-lived receiving end; None when each flow brings its own."""

    async def open(self, spec: FlowSpec, ends: Endpoints) -> Flow:
        """Start a sender up to the point where only `go` is missing.

        Raises RunFailed (generator_failed) when it does not get ready.
        """


def client_offset_ns(report: Mapping[str, Any], end: str, at_ns: int | None = None) -> int:
    """Clock of one end of a flow minus its client's, nanoseconds.

    Args:
        report: the flow report; its `clock_offset` is the server's clock minus the client's.
        end: "sender" or "receiver".
        at_ns: when, on that end's clock; the server's may drift. Without it, at the offset's reference time.
    """
    if end != ("receiver" if report["direction"] == "up" else "sender"):
        return 0
    clock = report["clock_offset"]
    offset_ns, drift = int(clock["offset_ns"]), (clock.get("drift_ppm") or 0.0) * 1e-6
    if at_ns is not None and drift:
        since_ns = at_ns - offset_ns - clock["reference_ns"]
        offset_ns += round(since_ns * drift / (1.0 + drift))
    return offset_ns


def interval_rows(
    report: Mapping[str, Any], origin_ns: int, *, part: str = "1", node: str
) -> Iterator[dict[str, Any]]:
    """Rows of intervals.csv, in campaign time, from a flow report: what its receiver got, in Mb.

    Args:
        report: the flow report; its times are CLOCK_MONOTONIC of each end.
        origin_ns: CLOCK_MONOTONIC of its client at campaign time 0.
        part: number of the flow in its run.
        node: host of its client.
    """
    for interval in report["intervals"]:
        if interval["end"] != "receiver":
            continue
        row: dict[str, Any] = {"part": part, "node": node, "work": megabits(interval["bytes"])}
        for column, at_ns in (("t_start_s", interval["start_ns"]), ("t_end_s", interval["end_ns"])):
            zero_ns = origin_ns + client_offset_ns(report, "receiver", at_ns)
            row[column] = (at_ns - zero_ns) / 1e9
        yield row
