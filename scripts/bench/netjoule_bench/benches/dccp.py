# SPDX-License-Identifier: Apache-2.0
"""DCCP on the user-space stack over UDP against our plain UDP: same namespaces and offloads, interleaved."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from netjoule_bench.benches import delayed
from netjoule_bench.generators.flow import Flow
from netjoule_bench.generators.netjoule_traffic import NetjouleTraffic
from netjoule_bench.repeats import interleaved
from netjoule_bench.sandbox.veth import VETH, Route
from netjoule_bench.tables import Section, by_arm

ARMS: dict[str, tuple[str, ...]] = {
    "udp": ("udp",),
    "dccp, CCID 2": ("dccp", "--ccid", "2"),
    "dccp, CCID 3": ("dccp", "--ccid", "3"),
}
SATURATING_MBPS = 60_000
LEAST_SHARE = 0.7
MOST_GSO_LOSS = 0.01
LEAST_GSO_MBPS = 2000.0
OFFERED_GSO_MBPS = 3000.0
MOST_CPU_RATIO = 1.5
MOST_CORE_SHARE = 0.01
ROUND_TRIP_MS = 10.0

Report = dict[str, Any]
Taken = dict[str, list[Report]]
Take = Callable[..., Taken]
"""Rounds of all arms, of a flow with further options."""
Columns = dict[str, Callable[[list[Report]], str]]


def sections(repo: Path, ours: NetjouleTraffic, seconds: float, repeats: int) -> list[Section]:
    """Saturated and lossless goodput; CPU per packet with and without delay; CPU of a thin flow."""

    def over(route: Route) -> Take:
        def take(payload_bytes: int, rate_mbps: float, *options: str) -> Taken:
            flow = Flow(payload_bytes, rate_mbps, seconds)
            arms = {
                name: partial(ours.report, route, transport, flow, *own, *options)
                for name, (transport, *own) in ARMS.items()
            }
            return interleaved(arms, repeats)

        return take

    take = over(VETH)
    near = [saturation(take, gso=False), saturation(take, gso=True), lossless(take)]
    with delayed.path(repo, ROUND_TRIP_MS) as route:
        far = [cpu_per_packet(over(route), round_trip_ms=ROUND_TRIP_MS), thin_flow(over(route))]
    return [*near, far[0], cpu_per_packet(take, round_trip_ms=None), far[1]]


def saturation(take: Take, *, gso: bool) -> Section:
    """Greatest goodput at 1440 bytes."""
    taken = take(1440, SATURATING_MBPS, *(["--gso"] if gso else []))
    reference = _median(taken["udp"], _goodput_mbps)
    best_mbps = max(_median(reports, _goodput_mbps) for arm, reports in taken.items() if arm != "udp")
    limit = f"Limit: the better DCCP at least {LEAST_SHARE:g} of UDP"
    passed = best_mbps >= LEAST_SHARE * reference
    if gso:
        limit += (
            f" and {LEAST_GSO_MBPS:,.0f} Mb/s; CCID 3 at least {LEAST_SHARE:g} of UDP with at most "
            f"{100 * MOST_GSO_LOSS:g} % loss"
        )
        tfrc = taken["dccp, CCID 3"]
        keeps_up = _median(tfrc, _goodput_mbps) >= LEAST_SHARE * reference
        passed = passed and best_mbps >= LEAST_GSO_MBPS and keeps_up and _median(tfrc, _loss) <= MOST_GSO_LOSS
    return by_arm(
        f"Saturated goodput over veth, 1440 B, {'GSO and GRO' if gso else 'no offloads'}",
        taken,
        _GOODPUT | _against_udp(taken, {"against udp": _goodput_mbps}) | _LOSS | _CPU,
        arms="transport",
        note=f"DCCP over UDP (RFC 6773). {limit}.",
        passed=passed,
    )


def lossless(take: Take) -> Section:
    """Goodput and loss below saturation, with offloads."""
    taken = take(1440, OFFERED_GSO_MBPS, "--gso")
    return by_arm(
        f"Goodput over veth at {OFFERED_GSO_MBPS:,.0f} Mb/s offered, 1440 B, GSO and GRO",
        taken,
        _GOODPUT | _LOSS | _CPU,
        arms="transport",
        note=f"Limit: one DCCP at least {LEAST_GSO_MBPS:,.0f} Mb/s with no loss.",
        passed=any(
            _median(reports, _goodput_mbps) >= LEAST_GSO_MBPS and _median(reports, _loss) == 0
            for arm, reports in taken.items()
            if arm != "udp"
        ),
    )


def cpu_per_packet(take: Take, *, round_trip_ms: float | None) -> Section:
    """CPU per packet at 30 Mb/s of 1440 bytes, both ends."""
    taken = take(1440, 30)
    most_us = MOST_CPU_RATIO * _median(taken["udp"], _sender_us)
    where = "RTT below 1 ms" if round_trip_ms is None else f"RTT {round_trip_ms:g} ms"
    limited = round_trip_ms is not None
    return by_arm(
        f"CPU per packet at 30 Mb/s, 1440 B, {where}",
        taken,
        _column("sender us/packet", _sender_us, ".2f")
        | _column("receiver us/packet", _receiver_us, ".2f")
        | _against_udp(taken, {"sender against udp": _sender_us, "receiver against udp": _receiver_us})
        | _column("goodput Mb/s", _goodput_mbps, ".2f"),
        arms="transport",
        note="CPU of the flow alone (CLOCK_PROCESS_CPUTIME_ID, the figure of /proc/PID/schedstat). "
        + (f"Limit: sender at most {MOST_CPU_RATIO:g} times UDP's." if limited else "No limit at this RTT."),
        passed=all(_median(reports, _sender_us) <= most_us for reports in taken.values())
        if limited
        else None,
    )


def thin_flow(take: Take) -> Section:
    """CPU share of the sender at 65 kb/s of 300-byte packets."""
    taken = take(300, 0.065)
    return by_arm(
        f"Sender's CPU at 65 kb/s of 300-byte packets, RTT {ROUND_TRIP_MS:g} ms",
        taken,
        _column("share of a core %", lambda report: 100 * _core_share(report), ".3f"),
        arms="transport",
        note=f"Limit: below {100 * MOST_CORE_SHARE:g} % of a core.",
        passed=all(_median(reports, _core_share) < MOST_CORE_SHARE for reports in taken.values()),
    )


def _goodput_mbps(report: Report) -> float:
    return float(report["receiver"]["goodput_mbps"])


def _loss(report: Report) -> float:
    return float(report["receiver"]["loss_ratio"] or 0.0)


def _sender_us(report: Report) -> float:
    return 1e6 * float(report["sender"]["cpu_s"]) / max(1, int(report["sender"]["messages_sent"]))


def _receiver_us(report: Report) -> float:
    receiver = report["receiver"]
    return 1e6 * float(receiver["cpu_s"]) / max(1, int(receiver["messages_received_unique"]))


def _core_share(report: Report) -> float:
    return float(report["sender"]["cpu_s"] / report["duration_s"])


def _median(reports: list[Report], value: Any) -> float:
    return statistics.median(float(value(report)) for report in reports)


def _column(head: str, value: Callable[[Report], float], form: str) -> Columns:
    return {head: lambda reports: format(_median(reports, value), form)}


def _against_udp(taken: Taken, values: Mapping[str, Callable[[Report], float]]) -> Columns:
    def show(value: Callable[[Report], float]) -> Callable[[list[Report]], str]:
        return lambda reports: f"{_median(reports, value) / _median(taken['udp'], value):.2f}"

    return {head: show(value) for head, value in values.items()}


_GOODPUT = _column("goodput Mb/s", _goodput_mbps, ",.0f")
_LOSS = _column("loss %", lambda report: 100 * _loss(report), ".3f")
_CPU = _column("sender CPU us/packet", _sender_us, ".2f")
_CPU |= _column("receiver CPU us/packet", _receiver_us, ".2f")
