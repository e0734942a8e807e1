# SPDX-License-Identifier: Apache-2.0
"""Floor of one run at one meter, from the control run of its mini-block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from netjoule_contracts.types.result import Floor
from netjoule_energy.power.readings import WindowMean
from netjoule_energy.power.windows import EDGE_TOLERANCE_S
from netjoule_energy.run.node_power import MeterInput, NodePower
from netjoule_energy.run.result import empty_floor
from netjoule_energy.uncertainty.budget import SharedIdle, Throughput, floor_spread


@dataclass(frozen=True, slots=True)
class ControlPower:
    """The control run of a mini-block: its power by meter_id; whether it counts.

    work_per_s: of a window until done; its energy is then taken for the same work.
    """

    nodes: Mapping[str, NodePower]
    valid: bool
    work_per_s: float | None = None


def node_floor(
    control: Mapping[str, Any] | None,
    meter: MeterInput,
    power: NodePower,
    rate: Throughput | None,
    *,
    of_control: ControlPower | None,
    rng: np.random.Generator,
) -> Floor:
    """Return floor_w = P_null - P_I and energy per work above it, or the code that leaves both empty.

    Both powers are taken above the idle power of their own run, so that energy above the floor,
    (P_A - P_null) / work per second, does not hold what idle power moved by between the two runs.

    control: of run.json. power: of the run at this meter. rate: None leaves energy above the floor empty.
    """
    if control is None or of_control is None:
        return empty_floor(None, "no_null_run")
    run_id = str(control["run_id"])
    own = of_control.nodes.get(meter.meter_id)
    if not of_control.valid or own is None or own.budget is None:
        return empty_floor(run_id, "null_run_invalid")
    if not control["comparable"]:
        return empty_floor(run_id, str(control["reason"]))
    scale = 1.0
    if of_control.work_per_s and rate is not None:
        scale = rate.work_per_s / of_control.work_per_s
    floor_w = scale * own.budget.delta_w
    if power.budget is None:
        widths = floor_spread(own.budget, own.budget, meter.accuracy, None, scale=scale, rng=rng)
    else:
        shared = shared_idle(power, own)
        widths = floor_spread(
            power.budget, own.budget, meter.accuracy, rate, shared=shared, scale=scale, rng=rng
        )
    above = None
    if power.budget is not None and rate is not None:
        above = (power.budget.delta_w - floor_w) / rate.work_per_s
    return Floor(
        run_id=run_id,
        p_null_w=own.active.mean_w,
        floor_w=floor_w,
        u95_floor_w=widths.u95_floor_w,
        energy_per_work_above_floor_j=above,
        u95_energy_per_work_above_floor_j=None if above is None else widths.u95_ea_above_floor,
        reason=None,
    )


def shared_idle(run: NodePower, control: NodePower) -> SharedIdle:
    """Return which idle window of the run is also the control run's, as it is of neighbours."""
    if _same(run.before, control.after):
        return SharedIdle.BEFORE
    return SharedIdle.AFTER if _same(run.after, control.before) else SharedIdle.NONE


def _same(one: WindowMean | None, other: WindowMean | None) -> bool:
    if one is None or other is None:
        return False
    starts, ends = one.window.start_s - other.window.start_s, one.window.end_s - other.window.end_s
    return abs(starts) <= EDGE_TOLERANCE_S and abs(ends) <= EDGE_TOLERANCE_S
