# SPDX-License-Identifier: Apache-2.0
"""Which coded reasons a flow report gives by itself, before any power is looked at. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule.core.reason import Reason
from netjoule.loads.flow import transports
from netjoule_contracts.flow_control import LEAST_ACHIEVED_RATIO
from netjoule_contracts.flow_work import books

SHORT_SLACK_S = 0.2  # two report intervals


def judge_flow(report: Mapping[str, Any], t_measure_end_ns: int) -> list[Reason]:
    """Reasons that the bookkeeping, the ends and the pacing certificate of a flow give.

    Args:
        report: the flow report.
        t_measure_end_ns: end of the measure window on the sender's CLOCK_MONOTONIC.
    """
    sender = report["sender"]
    reasons = []
    defects = books(report)
    if defects or not report["reconciles"]:
        reasons.append(Reason("bookkeeping_mismatch", "; ".join(defects) or _books(report)))
    scheduled, sent = sender["messages_scheduled"], sender["messages_sent"]
    held_back = False
    if scheduled and sent / scheduled < LEAST_ACHIEVED_RATIO:
        held_back = _was_held_back(report, sent / scheduled)
        words = f"{sent} of {scheduled} scheduled messages were sent"
        lagged = Reason("generator_lagged", words)
        reasons.append(Reason("transport_held_back", words) if held_back else lagged)
    # Congestion control may let nothing through for seconds, and a profile may be silent as long: then the
    # flow's end counts, not its last message.
    last_ns = sender["end_ns"] if held_back or report.get("profile") else sender["last_packet_ns"]
    # A slow schedule sends its last message up to one message period before its end.
    period_s = 8e-6 * report["payload_bytes"] / report["offered_rate_mbps"]
    short_s = (t_measure_end_ns - last_ns) / 1e9 if last_ns is not None else 0.0
    if short_s > SHORT_SLACK_S + 2 * period_s:
        reasons.append(Reason("flow_short", f"the sender ended {short_s:.2f} s before the window's end"))
    elif report["end_reason"] != "duration":
        reasons.append(Reason("flow_short", f"the flow ended as {report['end_reason']}"))
    certificate = report.get("pacing_certificate") or {}
    if certificate.get("passed") is False:
        reasons.append(Reason("pacing_uncertified", "; ".join(certificate["failed"])))
    return reasons


def kept_by_none(failed: Sequence[Iterable[str]]) -> tuple[str, tuple[str, ...]] | None:
    """The first pacing limit that no run kept, as ``max_error_p99_us 60``, with what each run says of it.

    Args:
        failed: of each run what its certificates say of the limits it did not keep (NAME LIMIT: FIGURE).

    Returns:
        None when every limit was kept by a run, or there is no run.
    """
    by_run: list[dict[str, str]] = []
    for run in failed:
        by_run.append({})
        for said in run:
            limit, _, figure = said.partition(": ")
            by_run[-1].setdefault(limit, figure)
    for limit in by_run[0] if by_run else ():
        if all(limit in run for run in by_run):
            return limit, tuple(run[limit].removeprefix("it is ") for run in by_run)
    return None


def _was_held_back(report: Mapping[str, Any], achieved_ratio: float) -> bool:
    """Whether what is missing is the transport's doing and not the sender's.

    With congestion control it always is; without it where the device took less than was offered, as the
    certificate counts.
    """
    certificate = report.get("pacing_certificate") or {}
    told = certificate.get("held_back_not_sent_ratio", 0.0)
    kept = achieved_ratio + told >= LEAST_ACHIEVED_RATIO
    return kept or report["transport"] in transports.which("congestion_controlled")


def _books(report: Mapping[str, Any]) -> str:
    sender, receiver = report["sender"], report["receiver"] or {}
    return (
        f"scheduled {sender['messages_scheduled']}, sent {sender['messages_sent']}, "
        f"not sent {sender['messages_not_sent']}, received {receiver.get('messages_received_unique')}, "
        f"lost {receiver.get('messages_lost')}"
    )
