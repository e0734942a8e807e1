# SPDX-License-Identifier: Apache-2.0
"""DCCP on the user-space stack over UDP against our plain UDP: same namespaces and offloads, interleaved."""

from __future__ import annotations

import statistics
from collections.abc import Callable
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
SATURATION = Flow(payload_bytes=1440, rate_mbps=60_000, seconds=0)
LEAST_SHARE = 0.7
MOST_GSO_LOSS = 0.01
LEAST_GSO_MBPS = 2000.0
OFFERED_GSO_MBPS = 3000.0
MOST_CPU_RATIO = 1.5
MOST_CORE_SHARE = 0.01
ROUND_TRIP_MS = 10.0

Report = dict[str, Any]
Columns = dict[str, Callable[[list[Report]], str]]


def sections(repo: Path, ours: NetjouleTraffic, seconds: float, repeats: int) -> list[Section]:
    """Saturated and lossless goodput; CPU per packet with and without delay; CPU of a thin flow."""
    saturated = [saturation(ours, seconds, repeats, gso=gso) for gso in (False, True)]
    clean = lossless(ours, seconds, repeats)
    near = cpu_per_packet(ours, VETH, seconds, repeats, round_trip_ms=None)
    with delayed.path(repo, ROUND_TRIP_MS) as route:
        far = cpu_per_packet(ours, route, seconds, repeats, round_trip_ms=ROUND_TRIP_MS)
        thin = thin_flow(ours, route, seconds, repeats)
    return [*saturated, clean, far, near, thin]


def saturation(ours: NetjouleTraffic, seconds: float, repeats: int, *, gso: bool) -> Section:
    """Greatest goodput at 1440 bytes."""
    flow = Flow(SATURATION.payload_bytes, SATURATION.rate_mbps, seconds)
    taken = _interleaved(ours, VETH, flow, repeats, ("--gso",) if gso else ())
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
    against: Columns = {"against udp": lambda found: f"{_median(found, _goodput_mbps) / reference:.2f}"}
    return by_arm(
        f"Saturated goodput over veth, 1440 B, {'GSO and GRO' if gso else 'no offloads'}",
        taken,
        _GOODPUT | against | _LOSS | _CPU,
        arms="transport",
        note=f"DCCP over UDP (RFC 6773). {limit}.",
        passed=passed,
    )


def lossless(ours: NetjouleTraffic, seconds: float, repeats: int) -> Section:
    """Goodput and loss below saturation, with offloads."""
    flow = Flow(payload_bytes=1440, rate_mbps=OFFERED_GSO_MBPS, seconds=seconds)
    taken = _interleaved(ours, VETH, flow, repeats, ("--gso",))
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


def cpu_per_packet(
    ours: NetjouleTraffic, route: Route, seconds: float, repeats: int, *, round_trip_ms: float | None
) -> Section:
    """CPU per packet at 30 Mb/s of 1440 bytes, both ends."""
    flow = Flow(payload_bytes=1440, rate_mbps=30, seconds=seconds)
    taken = _interleaved(ours, route, flow, repeats, ())

    def against_udp(reports: list[Report], cost: Callable[[Report], float]) -> float:
        return _median(reports, cost) / _median(taken["udp"], cost)

    where = "RTT below 1 ms" if round_trip_ms is None else f"RTT {round_trip_ms:g} ms"
    limited = round_trip_ms is not None
    return by_arm(
        f"CPU per packet at 30 Mb/s, 1440 B, {where}",
        taken,
        {
            "sender us/packet": lambda reports: f"{_median(reports, _sender_us):.2f}",
            "receiver us/packet": lambda reports: f"{_median(reports, _receiver_us):.2f}",
            "sender against udp": lambda reports: f"{against_udp(reports, _sender_us):.2f}",
            "receiver against udp": lambda reports: f"{against_udp(reports, _receiver_us):.2f}",
            "goodput Mb/s": lambda reports: f"{_median(reports, _goodput_mbps):.2f}",
        },
        arms="transport",
        note="CPU of the flow alone (CLOCK_PROCESS_CPUTIME_ID, the figure of /proc/PID/schedstat). "
        + (f"Limit: sender at most {MOST_CPU_RATIO:g} times UDP's." if limited else "No limit at this RTT."),
        passed=all(against_udp(reports, _sender_us) <= MOST_CPU_RATIO for reports in taken.values())
        if limited
        else None,
    )


def thin_flow(ours: NetjouleTraffic, route: Route, seconds: float, repeats: int) -> Section:
    """CPU share of the sender at 65 kb/s of 300-byte packets."""
    flow = Flow(payload_bytes=300, rate_mbps=0.065, seconds=seconds)
    taken = _interleaved(ours, route, flow, repeats, ())
    return by_arm(
        f"Sender's CPU at 65 kb/s of 300-byte packets, RTT {ROUND_TRIP_MS:g} ms",
        taken,
        {"share of a core %": lambda reports: f"{100 * _median(reports, _core_share):.3f}"},
        arms="transport",
        note=f"Limit: below {100 * MOST_CORE_SHARE:g} % of a core.",
        passed=all(_median(reports, _core_share) < MOST_CORE_SHARE for reports in taken.values()),
    )


def _interleaved(
    ours: NetjouleTraffic, route: Route, flow: Flow, repeats: int, options: tuple[str, ...]
) -> dict[str, list[Report]]:
    def arm(transport: str, *own: str) -> Callable[[], Report]:
        return lambda: ours.report(route, transport, flow, *own, *options)

    return interleaved({name: arm(*words) for name, words in ARMS.items()}, repeats)


def _goodput_mbps(report: Report) -> float:
    return float(report["receiver"]["goodput_mbps"])


def _loss(report: Report) -> float:
    return float(report["receiver"]["loss_ratio"] or 0.0)


def _sender_us(report: Report) -> float:
    return 1e6 * float(report["sender"]["cpu_s"]) / max(1, int(report["sender"]["messages_sent"]))


def _receiver_us(report: Report) -> float:
    return (
        1e6 * float(report["receiver"]["cpu_s"]) / max(1, int(report["receiver"]["messages_received_unique"]))
    )


def _core_share(report: Report) -> float:
    return float(report["sender"]["cpu_s"] / report["duration_s"])


def _median(reports: list[Report], value: Any) -> float:
    return statistics.median(float(value(report)) for report in reports)


_GOODPUT: Columns = {"goodput Mb/s": lambda reports: f"{_median(reports, _goodput_mbps):,.0f}"}
_LOSS: Columns = {"loss %": lambda reports: f"{100 * _median(reports, _loss):.3f}"}
_CPU: Columns = {
    "sender CPU us/packet": lambda reports: f"{_median(reports, _sender_us):.2f}",
    "receiver CPU us/packet": lambda reports: f"{_median(reports, _receiver_us):.2f}",
}
