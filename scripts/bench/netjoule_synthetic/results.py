# SPDX-License-Identifier: Apache-2.0
"""What result.json says of one run at one meter, in closed form: without the arithmetic that is under test.

Every window is made of whole readings, so a mean power is the plain mean of those in it. The rules are those
of docs/method/measurement-protocol.md; u is the design's, and what a Monte Carlo would find (u95) is 2 u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from netjoule.design.run_table import PlanRow
from netjoule_contracts.types.result import Floor, Node
from netjoule_energy.run.result import empty_floor
from netjoule_synthetic.design import NULL, Design, Meter
from netjoule_synthetic.truth import Counts, Layout, layout

_RESOLUTION_FACTOR = 3.0
_LEAST_ACHIEVED_RATIO = 0.99
_ALWAYS: dict[str, Any] = {
    "power_source": "modelled",
    "radio_source": "link-model",
    "hollow": False,
    "coverage": 1.0,
    "semantics": "interval_mean",
    "quantity": "active_power",
    "lag_source": "passport",
}


@dataclass(frozen=True, slots=True)
class Power:
    """Means of one meter's readings in the windows of one run, W."""

    active_w: float
    before_w: float
    after_w: float
    tail_w: float

    def idle_w(self, parts: Layout) -> float:
        """P_I: the line through the middles of both idle windows, at the middle of the measure window."""
        middle = parts.idle / 2 + parts.warm_up + parts.measure / 2
        return self.before_w + (self.after_w - self.before_w) * middle / parts.period

    def delta_w(self, parts: Layout) -> float:
        """P_A - P_I."""
        return self.active_w - self.idle_w(parts)


class Run(NamedTuple):
    """A run at one meter: its row of the plan, its messages, its power."""

    row: PlanRow
    counts: Counts
    power: Power


def node(design: Design, meter: Meter, own: Run, null: Run | None) -> Node:
    """One entry of result.json's nodes; ``null`` is the null run of the mini-block and attempt, if any."""
    parts, power = layout(design), own.power
    measure_s, delta_w = design.timing.measure_s, power.delta_w(parts)
    readings = round(measure_s / meter.update_interval_s)
    device = "linear" if design.device_stream else None
    return Node(
        meter_id=meter.meter_id,
        node=meter.node,
        **_ALWAYS,
        device_model=device,
        device_form=device,
        p_a_w=power.active_w,
        p_i_w=power.idle_w(parts),
        p_i_before_w=power.before_w,
        p_i_after_w=power.after_w,
        delta_p_w=delta_w,
        u_delta_p_w=meter.u_delta_p_w,
        e_d_j=delta_w * measure_s,
        e_t_j=power.active_w * measure_s,
        **_ea(meter, own.row, delta_w, own.counts.goodput_mbps(measure_s)),
        extrapolated_ratio=0.0 if device else None,
        readings=readings,
        effective_readings=float(readings),
        tail_energy_j=(power.tail_w - power.idle_w(parts)) * design.timing.tail_s,
        lag_s=meter.lag_s,
        floor=_floor(design, meter, own, null),
    )


def _ea(meter: Meter, row: PlanRow, delta_w: float, goodput_mbps: float) -> dict[str, Any]:
    """E_A with what is said of it; without throughput, of null, there is none."""
    below = delta_w < _RESOLUTION_FACTOR * meter.u_delta_p_w
    u95_w = 2 * meter.u_delta_p_w
    has_ea, is_positive = row.arm != NULL, delta_w >= 0
    reason = None if is_positive else "below_resolution"
    limited = has_ea and below
    return {
        "energy_per_work_j": delta_w / goodput_mbps if has_ea and is_positive else None,
        "ea_reason": reason if has_ea else "null_has_no_throughput",
        "u95_energy_per_work_j": u95_w / goodput_mbps if has_ea else None,
        "upper_limit_energy_per_work_j": (max(delta_w, 0.0) + u95_w) / goodput_mbps if limited else None,
        "u95_components": None,
        "below_resolution": below,
        "grade": ("below_resolution" if below else "C") if has_ea else None,
        "grade_limits": ["accuracy_unknown"] if has_ea else [],
    }


def _floor(design: Design, meter: Meter, own: Run, null: Run | None) -> Floor:
    if own.row.arm == NULL:
        return empty_floor(own.row.run_id, "null_has_no_throughput")
    if null is None:
        return empty_floor(None, "no_null_run")
    if null.row.status == "invalid":
        return empty_floor(null.row.run_id, "null_run_invalid")
    if own.counts.achieved_ratio < _LEAST_ACHIEVED_RATIO:
        return empty_floor(null.row.run_id, "floor_achieved_low")
    parts, goodput_mbps = layout(design), own.counts.goodput_mbps(design.timing.measure_s)
    floor_w = null.power.delta_w(parts)
    return Floor(
        run_id=null.row.run_id,
        p_null_w=null.power.active_w,
        floor_w=floor_w,
        u95_floor_w=2 * meter.u_delta_p_w,
        energy_per_work_above_floor_j=(own.power.delta_w(parts) - floor_w) / goodput_mbps,
        u95_energy_per_work_above_floor_j=2 * meter.u_delta_p_w / goodput_mbps,
        reason=None,
    )
