# SPDX-License-Identifier: Apache-2.0
"""Goodput of a window, and whether the message counts of a flow add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netjoule_energy.windows import MeasuredSpan

MEGABITS_PER_BYTE = 8e-6


def goodput_mbps(span: MeasuredSpan) -> float | None:
    """Return T_A in Mb/s (10^6 bit) of payload; None when the span has no receiver intervals."""
    if span.size_bytes is None:
        return None
    return MEGABITS_PER_BYTE * span.size_bytes / span.window.length_s


def bookkeeping_defects(flow: dict[str, Any]) -> list[str]:
    """Return each broken identity of a flow report in words; empty when the counts reconcile.

    scheduled = sent + not_sent; sent = received_unique + lost. A count that a generator cannot give
    (null) leaves its identity unchecked.
    """
    sender, receiver = flow.get("sender") or {}, flow.get("receiver") or {}
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


def achieved_ratio(flow: dict[str, Any]) -> float | None:
    """Return messages sent over messages scheduled; None when either is unknown or nothing was scheduled."""
    sender = flow.get("sender") or {}
    sent, scheduled = sender.get("messages_sent"), sender.get("messages_scheduled")
    if sent is None or not scheduled:
        return None
    return float(sent) / float(scheduled)


def loss_ratio(flow: dict[str, Any]) -> float | None:
    """Return lost over sent messages as the receiver reports it; None without a receiver."""
    receiver = flow.get("receiver") or {}
    ratio = receiver.get("loss_ratio")
    return None if ratio is None else float(ratio)
