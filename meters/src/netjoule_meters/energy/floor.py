# SPDX-License-Identifier: Apache-2.0
"""When the generator floor of a mini-block may be used, and when it is left empty."""

from __future__ import annotations

from typing import Any

from netjoule_meters.energy.throughput import achieved_ratio

LEAST_ACHIEVED_RATIO = 0.99
GREATEST_BUSY_CORES = 0.9
SPINNING_MODES = ("spin", "busy", "busy-wait")


def floor_reason(
    run: dict[str, Any], flow: dict[str, Any], null_run: dict[str, Any], null_flow: dict[str, Any]
) -> str | None:
    """Return the code that leaves the floor empty, or None.

    The floor compares two senders at the same work, so both must have reached 99 % of their schedule
    without a spinning pacer and without filling a core.
    """
    ratios = (achieved_ratio(flow), achieved_ratio(null_flow))
    if any(ratio is None or ratio < LEAST_ACHIEVED_RATIO for ratio in ratios):
        return "floor_achieved_low"
    if any((doc.get("pacing") or {}).get("mode") in SPINNING_MODES for doc in (run, null_run)):
        return "floor_spinning"
    if any((busy_cores(doc) or 0.0) > GREATEST_BUSY_CORES for doc in (flow, null_flow)):
        return "floor_core_busy"
    return None


def busy_cores(flow: dict[str, Any]) -> float | None:
    """Return the sender's CPU seconds over its running time; None when the report lacks either."""
    sender = flow.get("sender") or {}
    cpu_s, start_ns, end_ns = sender.get("cpu_s"), sender.get("start_ns"), sender.get("end_ns")
    if cpu_s is None or start_ns is None or end_ns is None or end_ns <= start_ns:
        return None
    return float(cpu_s) / (float(end_ns - start_ns) * 1e-9)
