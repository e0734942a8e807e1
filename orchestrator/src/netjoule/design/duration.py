# SPDX-License-Identifier: Apache-2.0
"""What a plan will take and what it can show, before anything runs. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from netjoule.design.instruments import pace_of
from netjoule.design.timeline import guard_s, pulse_s
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload

# Start and end of a flow's processes beside its windows; measured on a 2-core host.
_OVERHEAD_S = 0.1
# Time step of a device model's samples (netjoule-device), over which modelled power is smeared.
_DEVICE_SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Forecast:
    """Size of a campaign.

    Attributes:
        runs: number of runs when none is invalid.
        duration_s: their time, in seconds.
        least_p: smallest p-value the paired sign-flip test over blocks can give.
    """

    runs: int
    mini_blocks: int
    blocks: int
    arms: int
    run_s: float
    duration_s: float
    least_p: float


def forecast(workload: Workload, topology: Topology) -> Forecast:
    """Count, time and least attainable p of a workload on a testbed."""
    run_s = workload.timing.run_s + 2 * _guard_s(topology) + _OVERHEAD_S
    pulses_s = 2 * pulse_s([pace_of(m) for m in topology.meters]) if workload.sync_pulses else 0.0
    return Forecast(
        runs=workload.runs,
        mini_blocks=workload.mini_blocks,
        blocks=workload.blocks,
        arms=len(workload.arms),
        run_s=run_s,
        duration_s=workload.runs * run_s + workload.timing.idle_s + pulses_s,
        least_p=least_p(workload.blocks),
    )


def _guard_s(topology: Topology) -> float:
    """What the runner adds before and after each flow, so that no reading straddles a window's edge."""
    paces = [pace_of(meter) for meter in topology.meters]
    modelled = any(m.emulated for m in topology.meters)
    return guard_s(paces, _DEVICE_SAMPLE_S if modelled else 0.0)


def least_p(blocks: int) -> float:
    """Least p of a two-sided sign-flip test over ``blocks`` paired differences: 2 / 2^n, at most 1."""
    return min(1.0, 2.0 ** (1 - blocks))
