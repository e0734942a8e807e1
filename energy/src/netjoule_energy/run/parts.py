# SPDX-License-Identifier: Apache-2.0
"""The parts of a run's work: their intervals as one series, whose work a node counts, fairness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netjoule_contracts.types.result import Fairness, ResultPart
from netjoule_energy.power.windows import EDGE_TOLERANCE_S, FloatArray, Intervals, Window


@dataclass(frozen=True, slots=True)
class PartInput:
    """One part of the work: its entry in run.json, and when its work was done."""

    entry: Mapping[str, Any]
    intervals: Intervals

    @property
    def node(self) -> str:
        """Host whose power it moved, besides that of hosts that serve all."""
        return str(self.entry["node"])


def joined(parts: Sequence[Intervals]) -> Intervals:
    """Return the intervals of several parts as those of one, cut at every edge of any.

    Work counts as spread evenly over its interval. A piece of time is kept where every part has an
    interval; one without any did nothing at all and is none of them.
    """
    if len(parts) == 1:
        return parts[0]  # nothing to join: not a digit changes
    known = [_snapped(one) for one in parts if one.start_s.size]
    if not known:
        return Intervals.empty()
    edges = np.unique(np.concatenate([part for one in known for part in (one.start_s, one.end_s)]))
    starts, ends = edges[:-1], edges[1:]
    rates = [_rate_at(one, (starts + ends) / 2) for one in known]
    everywhere = np.logical_and.reduce([np.isfinite(rate) for rate in rates])
    sizes = np.sum(rates, axis=0) * (ends - starts)
    return Intervals(starts[everywhere], ends[everywhere], sizes[everywhere])


def work_within(intervals: Intervals, window: Window) -> float:
    """Return the work in a window, that of a cut interval by the share of it that lies inside."""
    overlap = np.minimum(intervals.end_s, window.end_s) - np.maximum(intervals.start_s, window.start_s)
    share = np.clip(overlap, 0.0, None) / (intervals.end_s - intervals.start_s)
    return float(np.sum(share * intervals.work))


def u_of(parts: Iterable[PartInput]) -> float:
    """Return the standard uncertainty of the work that parts have in a window; they err independently."""
    return math.sqrt(sum(float(part.entry["u"]) ** 2 for part in parts))


def parts_of_node(parts: Sequence[PartInput], node: str) -> list[PartInput]:
    """Return the parts whose work a node's power moved: its own, or all of a host without any."""
    own = [part for part in parts if part.node == node]
    return own or list(parts)


def clients_of(topology: Mapping[str, Any]) -> frozenset[str]:
    """Return the hosts that are clients and nothing else: only work of their own parts is theirs."""
    hosts = topology.get("hosts") or {}
    roles = {str(name): set(host.get("roles") or ()) for name, host in hosts.items()}
    carry_all = {"server", "access_point"}
    return frozenset(name for name, of in roles.items() if "client" in of and not of & carry_all)


def idle_clients(clients: Iterable[str], parts: Iterable[PartInput]) -> frozenset[str]:
    """Return the clients that have no part in a run: no work is theirs, whatever their power did."""
    return frozenset(clients) - {part.node for part in parts}


def shares(parts: Sequence[PartInput], window: Window, *, counted: bool) -> tuple[ResultPart, ...]:
    """Return what each part did in the window; counted: work is (of a control run none is)."""
    found = []
    for part in parts:
        rate = work_within(part.intervals, window) / window.length_s if counted else None
        asked = part.entry["asked_per_s"]
        found.append(
            ResultPart(
                part=str(part.entry["part"]),
                node=part.node,
                work_per_s=rate,
                met_ratio=None if rate is None or asked is None else rate / float(asked),
                measures=dict(part.entry["measures"]),
            )
        )
    return tuple(found)


def fairness(of: Sequence[ResultPart]) -> Fairness:
    """Return Jain's index of work done and of demand met."""
    return Fairness(
        jain_work=jain_index([share.work_per_s for share in of]),
        jain_met=jain_index([share.met_ratio for share in of]),
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


def _snapped(one: Intervals) -> Intervals:
    """Neighbours that touch but for the rounding of their times share their edge."""
    start_s = one.start_s.copy()
    touching = np.abs(start_s[1:] - one.end_s[:-1]) <= EDGE_TOLERANCE_S
    start_s[1:][touching] = one.end_s[:-1][touching]
    return Intervals(start_s, one.end_s, one.work)


def _rate_at(one: Intervals, at_s: FloatArray) -> FloatArray:
    """Work per second at each time; NaN outside all intervals."""
    place = np.searchsorted(one.start_s, at_s, side="right") - 1
    inside = (place >= 0) & (at_s < one.end_s[place])
    rate = one.work[place] / (one.end_s[place] - one.start_s[place])
    return np.where(inside, rate, np.nan)
