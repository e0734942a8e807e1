# SPDX-License-Identifier: Apache-2.0
"""What one meter says about one run: energy, energy per work and its u95, grade, floor."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from netjoule_contracts.types.result import Node, Reason, U95Components
from netjoule_energy.power.extrapolation import extrapolated_ratio, is_hollow
from netjoule_energy.power.until_done import LEAST_UPDATES, updates_in
from netjoule_energy.run.node_floor import ControlPower, node_floor
from netjoule_energy.run.node_power import MeterInput, NodePower
from netjoule_energy.run.result import GREATEST_FLOOR_RATIO, TOOK_NO_PART, coded, empty_floor, floor_ratio
from netjoule_energy.run.run_input import RunInput
from netjoule_energy.uncertainty.budget import (
    RESOLUTION_FACTOR,
    Spread,
    Throughput,
    specification_u95,
    spread,
)
from netjoule_energy.uncertainty.grade import grade_of

RADIO_WITHOUT_AIR_TIME = "hwsim"
APPARENT_POWER = "apparent_power"
_ROUNDING_RATIO = 1e-12


def node_result(
    source: RunInput,
    meter: MeterInput,
    power: NodePower,
    rate: Throughput | None,
    *,
    of_control: ControlPower | None,
    rng: np.random.Generator,
) -> Node:
    """Return what one meter says of a run. rate: None leaves energy per work empty."""
    without_air_time = source.run["radio_source"] == RADIO_WITHOUT_AIR_TIME
    priced = None if without_air_time else rate
    found = Spread(0.0, None, None, None)
    if power.budget is not None:
        found = spread(power.budget, meter.accuracy, rate, rng)
    delta_w, length_s = power.delta_w, power.active.window.length_s
    known_u = None if power.budget is None else found.u_delta_w
    unseen = _unseen(power, found)
    below = unseen or _is_below(delta_w, known_u)
    reason = _ea_reason(source, power, rate, unseen) if meter.logged else "no_power_logged"
    per_work_j = (
        delta_w / priced.work_per_s if reason is None and delta_w is not None and priced is not None else None
    )
    told = priced is not None and not unseen
    u95 = found.u95_ea if told else None
    outside = None if meter.device is None else extrapolated_ratio(meter.device, power.active.window)
    grade = grade_of(
        0.0 if unseen and priced is not None else per_work_j,
        u95,
        accuracy_known=meter.accuracy.known,
        below_resolution=below,
        readings=_updates(meter, power),
        apparent_power=meter.quantity == APPARENT_POWER,
        accuracy_provisional=meter.accuracy.provisional,
    )
    floor = empty_floor(source.run["run_id"], "null_has_no_throughput")
    if not source.is_control:
        floor = node_floor(source.run["control"], meter, power, priced, of_control=of_control, rng=rng)
    words: dict[str, Any] = {  # those that the contracts have: of the passport, and of grades
        "power_source": meter.power_source,
        "semantics": meter.readings.semantics,
        "quantity": meter.quantity,
        "grade": grade.letter,
        "grade_limits": grade.limits,
    }
    return Node(
        **words,
        meter_id=meter.meter_id,
        node=meter.node,
        radio_source=source.run["radio_source"],
        device_model=meter.device_model,
        device_form=meter.device_form,
        p_a_w=power.active.mean_w,
        p_i_w=None if power.idle is None else power.idle.at_middle_w,
        p_i_before_w=None if power.before is None else power.before.mean_w,
        p_i_after_w=None if power.after is None else power.after.mean_w,
        delta_p_w=delta_w,
        u_delta_p_w=known_u,
        e_d_j=None if delta_w is None else delta_w * length_s,
        e_t_j=None if power.active.mean_w is None else power.active.mean_w * length_s,
        energy_per_work_j=per_work_j,
        ea_reason=reason,
        u95_energy_per_work_j=u95,
        upper_limit_energy_per_work_j=found.ea_upper if below and told else None,
        u95_components=U95Components(**found.u95_by_component) if told and found.u95_by_component else None,
        below_resolution=below,
        extrapolated_ratio=outside,
        hollow=is_hollow(outside),
        coverage=power.active.coverage,
        readings=power.active.readings,
        effective_readings=power.effective_readings,
        tail_energy_j=power.tail_energy_j,
        lag_s=meter.readings.lag_s,
        lag_source="passport" if meter.u_lag_s is None else "alignment",
        specification=_specification(meter, delta_w, priced),
        integrator=power.integrator,
        tail_s=UNSET if power.tail is None else power.tail.length_s,
        tail_cut=None if power.tail is None else power.tail.cut,
        floor=floor,
    )


def without_part(node: Node) -> Node:
    """Of a client without a part in the work: its power stays, and is the price of nothing.

    That its meter saw no difference is no shortcoming of the meter.
    """
    return replace(
        node,
        ea_reason=TOOK_NO_PART,
        below_resolution=False,
        grade=None,
        grade_limits=(),
        floor=empty_floor(node.floor.run_id, TOOK_NO_PART),
    )


def _is_below(delta_w: float | None, u_w: float | None) -> bool:
    if delta_w is None:
        return False
    return delta_w < 0 or (u_w is not None and delta_w < RESOLUTION_FACTOR * u_w)


def _unseen(power: NodePower, found: Spread) -> bool:
    """Whether the meter saw no difference and nothing says how great an unseen one may be.

    Readings that are equal in all windows, of a meter whose least step and accuracy are unknown: 0 J per work
    without an uncertainty would be the tightest of all results, and the least founded.
    """
    if power.delta_w is None or power.budget is None or power.active.mean_w is None:
        return False
    least_w = _ROUNDING_RATIO * abs(power.active.mean_w)
    return abs(power.delta_w) <= least_w and found.u_delta_w <= least_w


def _updates(meter: MeterInput, power: NodePower) -> int:
    """Readings that a grade goes by: of a window until done the updates that fit in it."""
    if power.tail is None:
        return power.active.readings
    return min(power.active.readings, updates_in(power.active.window, meter.readings.update_interval_s))


def _specification(
    meter: MeterInput, delta_w: float | None, rate: Throughput | None
) -> dict[str, float] | None:
    accuracy = meter.accuracy
    if not accuracy.known or not accuracy.terms or delta_w is None or rate is None:
        return None
    return specification_u95(accuracy.terms, delta_w, rate.work_per_s, zeroed=accuracy.zeroed)


def _ea_reason(source: RunInput, power: NodePower, rate: Throughput | None, unseen: bool) -> str | None:
    """Return the code that leaves energy per work empty, or None when there is one."""
    if source.is_control and not source.counted:
        return "null_has_no_throughput"
    if source.run["radio_source"] == RADIO_WITHOUT_AIR_TIME:
        return "radio_without_air_time"
    if rate is None:
        return "nothing_received"
    if power.idle is None:
        return "idle_missing"
    if power.delta_w is None:
        return "meter_gap"
    return "below_resolution" if power.delta_w < 0 or unseen else None


def node_reasons(node: Node) -> list[Reason]:
    """Return what is to be said of a meter's figures."""
    reasons = []
    if node.ea_reason == TOOK_NO_PART:
        reasons.append(coded(TOOK_NO_PART, f"meter {node.meter_id}: {node.node} has no part in this run"))
    if node.ea_reason == "radio_without_air_time":
        reasons.append(coded(node.ea_reason, f"radio_source is {node.radio_source}"))
    if node.below_resolution and node.ea_reason != "null_has_no_throughput":
        detail = f"meter {node.meter_id}: P_A - P_I is {node.delta_p_w:z.4f} W, u {node.u_delta_p_w:.4f} W"
        reasons.append(coded("below_resolution", detail))
    if node.quantity == APPARENT_POWER:
        detail = f"meter {node.meter_id}: current times a nominal voltage, not active power"
        reasons.append(coded("apparent_power", detail))
    if node.hollow and node.extrapolated_ratio is not None:
        detail = f"meter {node.meter_id}: {100 * node.extrapolated_ratio:.1f} % of the window is extrapolated"
        reasons.append(coded("extrapolated_model", detail))
    if node.tail_cut:
        detail = f"meter {node.meter_id}: the radio was not idle {node.tail_s:.3f} s after the work"
        reasons.append(coded("tail_cut", detail))
    return [*reasons, *_floor_warning(node)]


def short_work(meter: MeterInput, power: NodePower) -> list[Reason]:
    """Warn of a window until done that is too short for its meter."""
    updates = updates_in(power.active.window, meter.readings.update_interval_s) if meter.logged else 0
    if power.tail is None or updates >= LEAST_UPDATES:
        return []
    found = f"the work took {updates} of its updates, {LEAST_UPDATES} are wanted"
    return [coded("work_short", f"meter {meter.meter_id}: {found}")]


def _floor_warning(node: Node) -> list[Reason]:
    """Warn where much of it is what the control run takes too; below resolution there are no shares."""
    floor_w, delta_w = node.floor.floor_w, node.delta_p_w
    share = floor_ratio(floor_w, delta_w)
    if share is None or share <= GREATEST_FLOOR_RATIO or node.below_resolution:
        return []
    found = f"the floor of {floor_w:.4f} W is {100 * share:.0f} % of P_A - P_I, {delta_w:.4f} W"
    return [coded("floor_large", f"meter {node.meter_id}: {found}")]
