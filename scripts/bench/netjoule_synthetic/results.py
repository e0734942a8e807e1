# SPDX-License-Identifier: Apache-2.0
"""What result.json says of one run at one meter, in closed form: without the arithmetic that is under test.

Every window is made of whole readings, so a mean power is the plain mean of those in it. The rules are those
of docs/method/measurement-protocol.md; u is the design's, and what a Monte Carlo would find (u95) is 2 u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netjoule.design.run_table import PlanRow
from netjoule_contracts.types.result import Floor, Node
from netjoule_energy.run.result import empty_floor
from netjoule_synthetic.design import NULL, Meter
from netjoule_synthetic.truth import Counts, Layout

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

    def as_json(self, parts: Layout) -> dict[str, Any]:
        """The powers as result.json has them."""
        return {
            "p_a_w": self.active_w,
            "p_i_w": self.idle_w(parts),
            "p_i_before_w": self.before_w,
            "p_i_after_w": self.after_w,
            "delta_p_w": self.delta_w(parts),
        }


@dataclass(frozen=True, slots=True)
class Null:
    """The null run of a mini-block at one meter."""

    row: PlanRow
    counts: Counts
    power: Power


def node(
    meter: Meter,
    row: PlanRow,
    counts: Counts,
    power: Power,
    null: Null | None,
    *,
    parts: Layout,
    lengths_s: tuple[float, float],
    device: str | None,
) -> Node:
    """One entry of result.json's nodes.

    Args:
        meter: of the entry.
        row: the run.
        counts: its messages.
        power: its power at this meter.
        null: the null run of its mini-block and attempt, None without one.
        parts: of every run.
        lengths_s: of the measure window and of the tail.
        device: name of the device model, None where the campaign has no stream of one.
    """
    measure_s, tail_s = lengths_s
    goodput = counts.goodput_mbps(measure_s)
    delta = power.delta_w(parts)
    readings = round(measure_s / meter.update_interval_s)
    return Node(
        meter_id=meter.meter_id,
        node=meter.node,
        **_ALWAYS,
        device_model=device,
        device_form=device,
        **power.as_json(parts),
        u_delta_p_w=meter.u_delta_p_w,
        e_d_j=delta * measure_s,
        e_t_j=power.active_w * measure_s,
        **_ea(meter, row, delta, goodput),
        extrapolated_ratio=0.0 if device else None,
        readings=readings,
        effective_readings=float(readings),
        tail_energy_j=(power.tail_w - power.idle_w(parts)) * tail_s,
        lag_s=meter.lag_s,
        floor=_floor(meter, row, counts, null, parts, delta_w=delta, goodput_mbps=goodput),
    )


def _ea(meter: Meter, row: PlanRow, delta_w: float, goodput_mbps: float) -> dict[str, Any]:
    """E_A with what is said of it; without throughput, of null, there is none."""
    below = delta_w < _RESOLUTION_FACTOR * meter.u_delta_p_w
    found: dict[str, Any] = {
        "energy_per_work_j": None,
        "ea_reason": "null_has_no_throughput",
        "u95_energy_per_work_j": None,
        "upper_limit_energy_per_work_j": None,
        "u95_components": None,
        "below_resolution": below,
        "grade": None,
        "grade_limits": [],
    }
    if row.arm == NULL:
        return found
    u95_w = 2 * meter.u_delta_p_w
    return found | {
        "energy_per_work_j": None if delta_w < 0 else delta_w / goodput_mbps,
        "ea_reason": "below_resolution" if delta_w < 0 else None,
        "u95_energy_per_work_j": u95_w / goodput_mbps,
        "upper_limit_energy_per_work_j": (max(delta_w, 0.0) + u95_w) / goodput_mbps if below else None,
        "grade": "below_resolution" if below else "C",
        "grade_limits": ["accuracy_unknown"],
    }


def _floor(
    meter: Meter,
    row: PlanRow,
    counts: Counts,
    null: Null | None,
    parts: Layout,
    *,
    delta_w: float,
    goodput_mbps: float,
) -> Floor:
    if row.arm == NULL:
        return empty_floor(row.run_id, "null_has_no_throughput")
    if null is None:
        return empty_floor(None, "no_null_run")
    if null.row.status == "invalid":
        return empty_floor(null.row.run_id, "null_run_invalid")
    if counts.achieved_ratio < _LEAST_ACHIEVED_RATIO:
        return empty_floor(null.row.run_id, "floor_achieved_low")
    floor_w = null.power.delta_w(parts)
    return Floor(
        run_id=null.row.run_id,
        p_null_w=null.power.active_w,
        floor_w=floor_w,
        u95_floor_w=2 * meter.u_delta_p_w,
        energy_per_work_above_floor_j=(delta_w - floor_w) / goodput_mbps,
        u95_energy_per_work_above_floor_j=2 * meter.u_delta_p_w / goodput_mbps,
        reason=None,
    )
