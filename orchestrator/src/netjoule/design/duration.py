# SPDX-License-Identifier: Apache-2.0
"""What a plan will take and what it can show, before anything runs. Pure arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import netjoule_contracts as contracts
from netjoule.design import run_table, timeline
from netjoule.design.instruments import pace_of
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.workload import Workload, moves_idle_power

# Start and end of a flow's processes beside its windows; measured on a 2-core host.
_OVERHEAD_S = 0.1
# End and start of an emulated testbed between two sessions; measured there, too.
_RESTART_S = 3.0
# Time step of a device model's samples (netjoule-device), over which modelled power is smeared.
_DEVICE_SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Forecast:
    """Size of a campaign.

    Attributes:
        runs: number of runs when none is invalid.
        sessions: how often a testbed starts.
        rigs: that run blocks side by side; 0 of a campaign without.
        run_s: length of a run, in seconds; at least, where it ends when its work does.
        duration_s: time of the whole, in seconds; as `run_s`.
        until_done: whether a run ends when its work does.
        least_p: smallest p-value the paired sign-flip test over blocks can give.
    """

    runs: int
    mini_blocks: int
    blocks: int
    arms: int
    sessions: int
    rigs: int
    run_s: float
    duration_s: float
    until_done: bool
    least_p: float


def forecast(workload: Workload, topology: Topology) -> Forecast:
    """Count, time and least attainable p of a workload on a testbed."""
    paces = [pace_of(meter) for meter in topology.meters]
    kind = contracts.loads()[workload.load]["window"]
    modelled = any(meter.emulated for meter in topology.meters)
    guard_s = timeline.guard_s(paces, _DEVICE_SAMPLE_S if modelled else 0.0)
    run_s = timeline.run_s(workload.timing, paces, guard_s, kind) + _OVERHEAD_S
    pulses_s = 2 * timeline.pulse_s(paces) if workload.sync_pulses else 0.0
    edges_s = workload.timing.idle_s + pulses_s
    rigs = len(topology.rigs) if "rigs" in topology.document else 0
    sessions = run_table.sessions(workload)
    if rigs:
        sessions = max(sessions, workload.blocks)
    # Of what one rig has to do: all, or its share of the blocks.
    share = math.ceil(workload.blocks / rigs) / workload.blocks if rigs else 1.0
    between_s = (sessions - 1 if not rigs else sessions) * _RESTART_S
    duration_s = share * (workload.runs * run_s + _own_idle_s(workload) + sessions * edges_s + between_s)
    if topology.kind == SIMULATED:  # in its own time; how long a program takes for that nobody knows before
        run_s = sum(getattr(workload.timing, name) for name in ("warm_up_s", "measure_s"))
        sessions, duration_s = 1, workload.runs * run_s
    return Forecast(
        runs=workload.runs,
        mini_blocks=workload.mini_blocks,
        blocks=workload.blocks,
        arms=len(workload.arms),
        sessions=sessions,
        rigs=rigs,
        run_s=run_s,
        duration_s=duration_s,
        until_done=kind == timeline.UNTIL_DONE,
        least_p=least_p(workload.blocks),
    )


def _own_idle_s(workload: Workload) -> float:
    """Idle windows that no two runs share, seconds: where what changes between them moves idle power."""
    moving = [name for name, values in workload.factors.items() if moves_idle_power(name) and values[1:]]
    changes = workload.runs if workload.arm in moving else workload.mini_blocks if moving else 0
    return changes * workload.timing.idle_s


def least_p(blocks: int) -> float:
    """Least p of a two-sided sign-flip test over ``blocks`` paired differences: 2 / 2^n, at most 1."""
    return min(1.0, 2.0 ** (1 - blocks))
