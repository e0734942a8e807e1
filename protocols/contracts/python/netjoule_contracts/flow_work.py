# SPDX-License-Identifier: Apache-2.0
"""What flow reports tell in the words that energy reads: work, measures, whether the books balance. Pure.

The one place where the messages of a flow are reconciled. Used by the load `flow` when a run ends, and where
runs of the first version are lifted to the newest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNIT = "Mb"

Document = Mapping[str, Any]
FlowPart = tuple[Document, Document]
"""A flow by itself: what was asked of it, with its run's windows where they are known, and its report,
empty when it is missing."""
Sizes = Mapping[str, Sequence[float]]
"""Payload bytes that arrived in each interval of a receiver, by part."""


def megabits(size_bytes: float) -> float:
    """Return the work that so many bytes of payload are."""
    return 8 * size_bytes / 1e6


def bytes_of(work: float) -> float:
    """Return how many bytes of payload a work is."""
    return 1e6 * work / 8


def part_name(asked: Document) -> str:
    """Name of a flow's part of the work: its number, from 1."""
    return str(asked.get("flow", 1))


def node_of(asked: Document) -> str:
    """Host whose power a flow moves, besides that of hosts that carry all: its client."""
    return str(asked.get("client") or (asked.get("hosts") or {}).get("client") or "")


def work_of(flows: Sequence[FlowPart], sizes: Sizes, *, received: bool) -> dict[str, Any]:
    """Return `work` of run.json, in Mb of payload, first copies.

    received: whether the run has receivers; a control run has none, and no work is counted.
    """
    several = len(flows) > 1
    parts = [_part(*flow, sizes, several=several, received=received) for flow in flows]
    return {
        "quantity": sum(part["quantity"] for part in parts) if received else None,
        "unit": UNIT,
        "u": math.sqrt(sum(part["u"] ** 2 for part in parts)),
        "reconciles": not any(books(report) for _, report in flows),
        "parts": parts,
    }


def _part(
    asked: Document, report: Document, sizes: Sizes, *, several: bool, received: bool
) -> dict[str, Any]:
    arrived, start_s = sizes.get(part_name(asked), ()), asked.get("t_first_packet_s")
    return {
        "part": part_name(asked),
        "node": node_of(asked),
        **({} if start_s is None else {"t_start_s": start_s}),
        "quantity": megabits(sum(arrived)) if received else None,
        "u": _u_of_edges(asked, arrived, several=several),
        "asked_per_s": asked["offered_rate_mbps"],
        "measures": measures_of(report),
    }


def _u_of_edges(asked: Document, arrived: Sequence[float], *, several: bool) -> float:
    """Standard uncertainty in Mb of what arrived between two edges of a window.

    An edge counts a message too much or too little, by half of one; where flows are joined it also cuts an
    interval, in which payload may lie anywhere.
    """
    of_edge = float(asked["payload_bytes"]) + (max(arrived) / 2 if several and len(arrived) else 0.0)
    return megabits(of_edge) / math.sqrt(6)


def clock_limit_s(reports: Iterable[Document]) -> float:
    """Return the greatest residual of any flow's clock offset, s."""
    offsets = [report.get("clock_offset") or {} for report in reports]
    return max((abs(float(offset.get("residual_ns") or 0)) for offset in offsets), default=0.0) * 1e-9


def books(report: Document) -> list[str]:
    """Return each broken identity of a flow report in words; empty when the counts reconcile.

    scheduled = sent + not_sent; sent = received_unique + lost. A count that a generator cannot give
    (null) leaves its identity unchecked.
    """
    sender, receiver = report.get("sender") or {}, report.get("receiver") or {}
    scheduled, sent = sender.get("messages_scheduled"), sender.get("messages_sent")
    not_sent = sender.get("messages_not_sent")
    received, lost = receiver.get("messages_received_unique"), receiver.get("messages_lost")
    identities = (
        ("scheduled", scheduled, ("sent", sent), ("not_sent", not_sent)),
        ("sent", sent, ("received_unique", received), ("lost", lost)),
    )
    defects = []
    for name, whole, (left_name, left), (right_name, right) in identities:
        if whole is None or left is None or right is None or whole == left + right:
            continue
        defects.append(f"{name} {whole} is not {left_name} {left} + {right_name} {right}")
    return defects


def measures_of(report: Document) -> dict[str, float | None]:
    """Return the measures of one flow, or of several as `summed`."""
    return {
        "loss_ratio": loss_ratio(report),
        "achieved_ratio": achieved_ratio(report),
        "wake_ups_per_message": wake_ups_per_message(report),
        "naps_per_message": _per_message(report, "naps"),
    }


def measures_of_all(flows: Sequence[FlowPart]) -> dict[str, float | None]:
    """Return the measures of a run."""
    return measures_of(counts_of(flows))


def counts_of(flows: Sequence[FlowPart]) -> Document:
    """Return the report of a run's only flow, or the counts of several as those of one."""
    return flows[0][1] if len(flows) == 1 else summed(report for _, report in flows)


def achieved_ratio(report: Document) -> float | None:
    """Return messages sent over messages scheduled; None when either is unknown or nothing was scheduled."""
    sender = report.get("sender") or {}
    sent, scheduled = sender.get("messages_sent"), sender.get("messages_scheduled")
    if sent is None or not scheduled:
        return None
    return float(sent) / float(scheduled)


def loss_ratio(report: Document) -> float | None:
    """Return lost over sent messages as the receiver reports it; None without a receiver."""
    ratio = (report.get("receiver") or {}).get("loss_ratio")
    return None if ratio is None else float(ratio)


def wake_ups_per_message(report: Document) -> float | None:
    """Return the sender's wake-ups over messages scheduled; None when the report lacks either."""
    return _per_message(report, "wake_ups")


def _per_message(report: Document, what: str) -> float | None:
    count = (report.get("pacing") or {}).get(what)
    scheduled = (report.get("sender") or {}).get("messages_scheduled")
    if count is None or not scheduled:
        return None
    return float(count) / float(scheduled)


def summed(flows: Iterable[Document]) -> dict[str, Any]:
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


def _sums(reports: Sequence[Document], part: str, names: Sequence[str]) -> dict[str, Any]:
    sums = {}
    for name in names:
        counts = [(report.get(part) or {}).get(name) for report in reports]
        if counts and all(count is not None for count in counts):
            sums[name] = sum(count for count in counts if count is not None)
    return sums
