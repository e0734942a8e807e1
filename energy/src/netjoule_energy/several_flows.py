# SPDX-License-Identifier: Apache-2.0
"""Runs with several flows: their intervals as one series, whose payload a node counts, fairness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netjoule_energy.result import Fairness, FlowShare
from netjoule_energy.throughput import MEGABITS_PER_BYTE, achieved_ratio, loss_ratio
from netjoule_energy.wake_ups import naps_per_message, wake_ups_per_message
from netjoule_energy.windows import EDGE_TOLERANCE_S, FloatArray, Intervals, Window


@dataclass(frozen=True, slots=True)
class FlowInput:
    """One flow of several: its entry in run.json, its report ({} when missing), its receiver intervals."""

    asked: dict[str, Any]
    report: dict[str, Any]
    intervals: Intervals

    @property
    def client(self) -> str:
        """Host of its client."""
        return str(self.asked["client"])

    def edge_bytes(self) -> float:
        """What an edge of a window may count too much or too little of it, bytes.

        One message, and half of an interval that the edge cuts: payload may lie anywhere in it.
        """
        sizes = self.intervals.size_bytes
        return float(self.asked["payload_bytes"]) + (float(sizes.max()) / 2 if sizes.size else 0.0)


def joined(flows: Sequence[Intervals]) -> Intervals:
    """Return the intervals of several receivers as those of one, cut at every edge of any.

    Payload counts as spread evenly over its interval. A piece of time is kept where every receiver has an
    interval; one without any got nothing at all and is none of them.
    """
    if len(flows) == 1:
        return flows[0]  # nothing to join: not a digit changes
    known = [_snapped(one) for one in flows if one.start_s.size]
    if not known:
        return Intervals(np.empty(0), np.empty(0), np.empty(0))
    edges = np.unique(np.concatenate([part for one in known for part in (one.start_s, one.end_s)]))
    starts, ends = edges[:-1], edges[1:]
    rates = [_rate_at(one, (starts + ends) / 2) for one in known]
    everywhere = np.logical_and.reduce([np.isfinite(rate) for rate in rates])
    sizes = np.sum(rates, axis=0) * (ends - starts)
    return Intervals(starts[everywhere], ends[everywhere], sizes[everywhere])


def size_within(intervals: Intervals, window: Window) -> float:
    """Return the payload bytes in a window, those of a cut interval by the share of it that lies inside."""
    overlap = np.minimum(intervals.end_s, window.end_s) - np.maximum(intervals.start_s, window.start_s)
    share = np.clip(overlap, 0.0, None) / (intervals.end_s - intervals.start_s)
    return float(np.sum(share * intervals.size_bytes))


def edge_bytes(flows: Iterable[FlowInput]) -> float:
    """Return what an edge of the window may miscount in all, bytes; flows do so independently."""
    return math.sqrt(sum(flow.edge_bytes() ** 2 for flow in flows))


def flows_of_node(flows: Sequence[FlowInput], node: str) -> list[FlowInput]:
    """Return the flows whose payload a node's power moved: a client's own, for any other host all."""
    own = [flow for flow in flows if flow.client == node]
    return own or list(flows)


def clients_of(topology: Mapping[str, Any]) -> frozenset[str]:
    """Return the hosts that are clients and nothing else: only payload of their own flows is theirs."""
    hosts = topology.get("hosts") or {}
    roles = {str(name): set(host.get("roles") or ()) for name, host in hosts.items()}
    carry_all = {"server", "access_point"}
    return frozenset(name for name, of in roles.items() if "client" in of and not of & carry_all)


def idle_clients(clients: Iterable[str], run: Mapping[str, Any]) -> frozenset[str]:
    """Return the clients that have no flow in a run: no payload is theirs, whatever their power did."""
    several = run.get("flows") or ()
    taking_part = {flow["client"] for flow in several} or {(run.get("hosts") or {}).get("client")}
    return frozenset(clients) - taking_part


def shares(flows: Sequence[FlowInput], window: Window, *, received: bool) -> tuple[FlowShare, ...]:
    """Return what each flow got in the window; received: the run has receivers (null has none)."""
    found = []
    for flow in flows:
        moved = size_within(flow.intervals, window)
        goodput = MEGABITS_PER_BYTE * moved / window.length_s if received else None
        offered = float(flow.asked["offered_rate_mbps"])
        found.append(
            FlowShare(
                flow=flow.asked["flow"],
                client=flow.client,
                transport=flow.asked["transport"],
                direction=flow.asked["direction"],
                payload_bytes=flow.asked["payload_bytes"],
                offered_rate_mbps=flow.asked["offered_rate_mbps"],
                goodput_mbps=goodput,
                demand_met_ratio=None if goodput is None else goodput / offered,
                loss_ratio=loss_ratio(flow.report),
                achieved_ratio=achieved_ratio(flow.report),
                wake_ups_per_message=wake_ups_per_message(flow.report),
                naps_per_message=naps_per_message(flow.report),
            )
        )
    return tuple(found)


def fairness(of: Sequence[FlowShare]) -> Fairness:
    """Return Jain's index of goodput and of demand met."""
    return Fairness(
        jain_goodput=jain_index([share.goodput_mbps for share in of]),
        jain_demand_met=jain_index([share.demand_met_ratio for share in of]),
    )


def jain_index(of: Sequence[float | None]) -> float | None:
    """Return (sum x)^2 / (n sum x^2) (Jain, Chiu, Hawe: DEC-TR-301, 1984); 1 is fair, 1/n one has everything.

    None for fewer than two shares, for one that is unknown or negative, and when there is nothing to share.
    """
    known = [share for share in of if share is not None and math.isfinite(share) and share >= 0]
    greatest = max(known, default=0.0)
    if len(known) < max(2, len(of)) or greatest <= 0:
        return None
    parts = [share / greatest for share in known]
    return min(1.0, sum(parts) ** 2 / (len(parts) * sum(part**2 for part in parts)))


def summed(flows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts of several reports as those of one, for the run's ratios and figures per message.

    A count that one of them lacks is missing; without any receiver there is none.
    """
    reports = list(flows)
    sender = _sums(reports, "sender", ("messages_scheduled", "messages_sent", "messages_not_sent"))
    receiver = _sums(reports, "receiver", ("messages_received_unique", "messages_lost"))
    sent, lost = sender.get("messages_sent"), receiver.get("messages_lost")
    if sent and lost is not None:
        receiver["loss_ratio"] = lost / sent
    pacing = _sums(reports, "pacing", ("wake_ups", "naps"))
    return {"sender": sender, "receiver": receiver or None, "pacing": pacing}


def _sums(reports: Sequence[dict[str, Any]], part: str, names: Sequence[str]) -> dict[str, Any]:
    sums = {}
    for name in names:
        counts = [(report.get(part) or {}).get(name) for report in reports]
        if counts and all(count is not None for count in counts):
            sums[name] = sum(count for count in counts if count is not None)
    return sums


def _snapped(one: Intervals) -> Intervals:
    """Neighbours that touch but for the rounding of their times share their edge."""
    start_s = one.start_s.copy()
    touching = np.abs(start_s[1:] - one.end_s[:-1]) <= EDGE_TOLERANCE_S
    start_s[1:][touching] = one.end_s[:-1][touching]
    return Intervals(start_s, one.end_s, one.size_bytes)


def _rate_at(one: Intervals, at_s: FloatArray) -> FloatArray:
    """Bytes per second at each time; NaN outside all intervals."""
    place = np.searchsorted(one.start_s, at_s, side="right") - 1
    inside = (place >= 0) & (at_s < one.end_s[place])
    rate = one.size_bytes[place] / (one.end_s[place] - one.start_s[place])
    return np.where(inside, rate, np.nan)
