# SPDX-License-Identifier: Apache-2.0
"""Whether a run of flows and the null run of its mini-block did the same work: `control` of run.json. Pure.

The null run's senders build and time every message and drop it; what they draw is the generator's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netjoule_contracts.flow_work import FlowPart, achieved_ratio, counts_of, wake_ups_per_message

LEAST_ACHIEVED_RATIO = 0.99
GREATEST_BUSY_CORES = 0.9
GREATEST_WAKE_UPS_FACTOR = 1.5
"""Wake-ups per message of a run and of its null run that lie further apart are warned of."""
SPINNING_MODES = ("spin", "busy", "busy-wait")
"""Pacers that never sleep. `hybrid` is none: it sleeps first, and its short spin is the same in null."""

_REFUSALS = ("floor_achieved_low", "floor_spinning", "floor_core_busy")
"""Codes that leave a floor empty, in the order in which `floor_reason` asks for them."""


def control_of(own: Sequence[FlowPart], of_null: Sequence[FlowPart], null_run_id: str) -> dict[str, Any]:
    """Return `control` of run.json.

    own, of_null: the flows of the run, and of the null run of its mini-block.
    """
    reason = floor_reason_of_all(own, of_null)
    return {
        "run_id": null_run_id,
        "comparable": reason is None,
        "reason": reason,
        "warnings": _wake_ups_warning(own, of_null, null_run_id),
    }


def _wake_ups_warning(
    own: Sequence[FlowPart], of_null: Sequence[FlowPart], null_run_id: str
) -> list[dict[str, str]]:
    """Warn where null's senders woke up far more or less often: what that draws is in E_A above the floor.

    The floor stays: it is what the generator drew. Of a sender that does not tell nothing is said.
    """
    ours, theirs = (wake_ups_per_message(counts_of(flows)) for flows in (own, of_null))
    if ours is None or theirs is None or max(ours, theirs) <= GREATEST_WAKE_UPS_FACTOR * min(ours, theirs):
        return []
    found = f"{ours:.3g} wake-ups per message, {theirs:.3g} in {null_run_id}"
    return [{"code": "floor_wake_ups_differ", "detail": found}]


def floor_reason_of_all(flows: Sequence[FlowPart], null_flows: Sequence[FlowPart]) -> str | None:
    """Return the code that any flow with its counterpart in null gives, or None; of several codes the first.

    A null run has as many flows as the runs of its mini-block, in the same order. Senders on one host share
    its cores: together they are held to the limit of one.
    """
    if len(flows) != len(null_flows):
        return "null_run_invalid"
    found = {floor_reason(*own, *null) for own, null in zip(flows, null_flows, strict=True)}
    if any(_fill_a_core(parts) for parts in (flows, null_flows)):
        found.add("floor_core_busy")
    return next((code for code in _REFUSALS if code in found), None)


def _fill_a_core(parts: Sequence[FlowPart]) -> bool:
    """Whether the senders on any host are too busy together.

    A host is told by its boot: two machines may bear one name. Without, by its name, or else by its client's.
    """
    busy: dict[str, float] = {}
    for run, flow in parts:
        sender = flow.get("sender") or {}
        host = str(sender.get("boot_id") or sender.get("host") or run.get("client") or "")
        busy[host] = busy.get(host, 0.0) + (busy_cores(flow) or 0.0)
    return any(cores > GREATEST_BUSY_CORES for cores in busy.values())


def floor_reason(
    run: Mapping[str, Any], flow: Mapping[str, Any], null_run: Mapping[str, Any], null_flow: Mapping[str, Any]
) -> str | None:
    """Return the code that leaves the floor empty, or None.

    The floor compares two senders at the same work, so both must have reached 99 % of their schedule,
    at least in the measure window. A pacer that spins fills its core whatever there is to send, and so does
    a sender that cannot keep up: the work of sending then takes the place of waiting and does not show as
    power.
    """
    if not (_kept_pace(run, flow) and _kept_pace(null_run, null_flow)):
        return "floor_achieved_low"
    if any(pacing_mode(*docs) in SPINNING_MODES for docs in ((run, flow), (null_run, null_flow))):
        return "floor_spinning"
    if any((busy_cores(doc) or 0.0) > GREATEST_BUSY_CORES for doc in (flow, null_flow)):
        return "floor_core_busy"
    return None


def pacing_mode(run: Mapping[str, Any], flow: Mapping[str, Any]) -> str | None:
    """Return how a run was paced: as the sender reports it, else as it was asked."""
    for document in (flow, run):
        mode = (document.get("pacing") or {}).get("mode")
        if mode is not None:
            return str(mode)
    return None


def _kept_pace(run: Mapping[str, Any], flow: Mapping[str, Any]) -> bool:
    """Whether the sender sent 99 % of its schedule: in all, or in the window that the power is of.

    Congestion control begins slowly, so a short flow may miss its schedule in its warm-up alone.
    """
    ratio = achieved_ratio(flow)
    if ratio is None:
        return False
    return ratio >= LEAST_ACHIEVED_RATIO or (_ratio_in_window(run, flow) or 0.0) >= LEAST_ACHIEVED_RATIO


def _ratio_in_window(run: Mapping[str, Any], flow: Mapping[str, Any]) -> float | None:
    """Return messages sent over messages asked in the sender's whole intervals inside the measure window.

    One message more is allowed for, which may lie on the window's edge. None when the report lacks it, or
    when a profile asked for other messages than those of a constant rate.
    """
    window = (run.get("windows") or {}).get("measure")
    t_first_s = run.get("t_first_packet_s")
    first_ns = (flow.get("sender") or {}).get("first_packet_ns")
    if window is None or t_first_s is None or first_ns is None or flow.get("profile"):
        return None
    zero_ns = first_ns - t_first_s * 1e9
    inside = [
        interval
        for interval in flow.get("intervals") or []
        if interval["end"] == "sender"
        and interval["start_ns"] >= zero_ns + window["t_start_s"] * 1e9
        and interval["end_ns"] <= zero_ns + window["t_end_s"] * 1e9
    ]
    span_s = sum(interval["end_ns"] - interval["start_ns"] for interval in inside) * 1e-9
    asked = run["offered_rate_mbps"] * 1e6 * span_s / (8 * run["payload_bytes"])
    return (sum(interval["messages"] for interval in inside) + 1) / asked if asked else None


def busy_cores(flow: Mapping[str, Any]) -> float | None:
    """Return the sender's CPU seconds over its running time; None when the report lacks either."""
    sender = flow.get("sender") or {}
    cpu_s, start_ns, end_ns = sender.get("cpu_s"), sender.get("start_ns"), sender.get("end_ns")
    if cpu_s is None or start_ns is None or end_ns is None or end_ns <= start_ns:
        return None
    return float(cpu_s) / (float(end_ns - start_ns) * 1e-9)
