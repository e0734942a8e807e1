# SPDX-License-Identifier: Apache-2.0
"""DCCP on the user-space stack over UDP against our plain UDP: same namespaces and offloads, interleaved."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netjoule_bench import delayed
from netjoule_bench.flow import Flow
from netjoule_bench.netjoule_traffic import NetjouleTraffic
from netjoule_bench.repeats import interleaved
from netjoule_bench.tables import Section
from netjoule_bench.veth import VETH, Route

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
    options = ("--gso",) if gso else ()
    taken = _interleaved(ours, VETH, flow, repeats, options)
    reference = _median(taken["udp"], _goodput_mbps)
    rows, best_mbps = [], 0.0
    for arm, reports in taken.items():
        goodput, loss = _median(reports, _goodput_mbps), _median(reports, _loss)
        rows.append(
            [
                arm,
                f"{goodput:,.0f}",
                f"{goodput / reference:.2f}",
                f"{100 * loss:.3f}",
                f"{_median(reports, _sender_us):.2f}",
                f"{_median(reports, _receiver_us):.2f}",
            ]
        )
        if arm != "udp":
            best_mbps = max(best_mbps, goodput)
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
    return Section(
        title=f"Saturated goodput over veth, 1440 B, {'GSO and GRO' if gso else 'no offloads'}",
        columns=[
            "transport",
            "goodput Mb/s",
            "against udp",
            "loss %",
            "sender CPU us/packet",
            "receiver CPU us/packet",
        ],
        rows=rows,
        note=f"DCCP over UDP (RFC 6773). {limit}.",
        passed=passed,
    )


def lossless(ours: NetjouleTraffic, seconds: float, repeats: int) -> Section:
    """Goodput and loss below saturation, with offloads."""
    flow = Flow(payload_bytes=1440, rate_mbps=OFFERED_GSO_MBPS, seconds=seconds)
    taken = _interleaved(ours, VETH, flow, repeats, ("--gso",))
    rows, passed = [], False
    for arm, reports in taken.items():
        goodput, loss = _median(reports, _goodput_mbps), _median(reports, _loss)
        passed = passed or (arm != "udp" and goodput >= LEAST_GSO_MBPS and loss == 0)
        rows.append(
            [
                arm,
                f"{goodput:,.0f}",
                f"{100 * loss:.3f}",
                f"{_median(reports, _sender_us):.2f}",
                f"{_median(reports, _receiver_us):.2f}",
            ]
        )
    return Section(
        title=f"Goodput over veth at {OFFERED_GSO_MBPS:,.0f} Mb/s offered, 1440 B, GSO and GRO",
        columns=["transport", "goodput Mb/s", "loss %", "sender CPU us/packet", "receiver CPU us/packet"],
        rows=rows,
        note=f"Limit: one DCCP at least {LEAST_GSO_MBPS:,.0f} Mb/s with no loss.",
        passed=passed,
    )


def cpu_per_packet(
    ours: NetjouleTraffic, route: Route, seconds: float, repeats: int, *, round_trip_ms: float | None
) -> Section:
    """CPU per packet at 30 Mb/s of 1440 bytes, both ends."""
    flow = Flow(payload_bytes=1440, rate_mbps=30, seconds=seconds)
    taken = _interleaved(ours, route, flow, repeats, ())
    sender_us, receiver_us = _median(taken["udp"], _sender_us), _median(taken["udp"], _receiver_us)
    rows, ratios = [], []
    for arm, reports in taken.items():
        ratio = _median(reports, _sender_us) / sender_us
        ratios.append(ratio)
        rows.append(
            [
                arm,
                f"{_median(reports, _sender_us):.2f}",
                f"{_median(reports, _receiver_us):.2f}",
                f"{ratio:.2f}",
                f"{_median(reports, _receiver_us) / receiver_us:.2f}",
                f"{_median(reports, _goodput_mbps):.2f}",
            ]
        )
    where = "RTT below 1 ms" if round_trip_ms is None else f"RTT {round_trip_ms:g} ms"
    limited = round_trip_ms is not None
    return Section(
        title=f"CPU per packet at 30 Mb/s, 1440 B, {where}",
        columns=[
            "transport",
            "sender us/packet",
            "receiver us/packet",
            "sender against udp",
            "receiver against udp",
            "goodput Mb/s",
        ],
        rows=rows,
        note="CPU of the flow alone (CLOCK_PROCESS_CPUTIME_ID, the figure of /proc/PID/schedstat). "
        + (f"Limit: sender at most {MOST_CPU_RATIO:g} times UDP's." if limited else "No limit at this RTT."),
        passed=all(ratio <= MOST_CPU_RATIO for ratio in ratios) if limited else None,
    )


def thin_flow(ours: NetjouleTraffic, route: Route, seconds: float, repeats: int) -> Section:
    """CPU share of the sender at 65 kb/s of 300-byte packets."""
    flow = Flow(payload_bytes=300, rate_mbps=0.065, seconds=seconds)
    taken = _interleaved(ours, route, flow, repeats, ())
    shares = {
        arm: _median(reports, lambda r: r["sender"]["cpu_s"] / r["duration_s"])
        for arm, reports in taken.items()
    }
    return Section(
        title=f"Sender's CPU at 65 kb/s of 300-byte packets, RTT {ROUND_TRIP_MS:g} ms",
        columns=["transport", "share of a core %"],
        rows=[[arm, f"{100 * share:.3f}"] for arm, share in shares.items()],
        note=f"Limit: below {100 * MOST_CORE_SHARE:g} % of a core.",
        passed=all(share < MOST_CORE_SHARE for share in shares.values()),
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


def _median(reports: list[Report], value: Any) -> float:
    return statistics.median(float(value(report)) for report in reports)
