# SPDX-License-Identifier: Apache-2.0
"""A run's condition as flows have it, and the conditions that load their hosts most. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from netjoule.design import run_table
from netjoule.workload.load import Condition
from netjoule.workload.workload import Pace, Workload

__all__ = ["FlowCondition", "heaviest"]

_NULL = "null"


@dataclass(frozen=True, slots=True)
class FlowCondition:
    """The factors of a run by name; `pace`: pacing, window and trains in one."""

    run_id: str
    transport: str
    payload_bytes: int
    offered_rate_mbps: float
    direction: str
    parallel: int
    pace: Pace
    seed: int
    schedule_seed: int

    @classmethod
    def of(cls, condition: Condition) -> FlowCondition:
        """The same, typed."""
        factors = condition.factors
        return cls(
            run_id=condition.run_id,
            transport=condition.arm,
            payload_bytes=int(factors["payload_bytes"]),
            offered_rate_mbps=float(factors["offered_rate_mbps"]),
            direction=str(factors["direction"]),
            parallel=int(factors["parallel"]),
            pace=Pace(str(factors["pacing"]), int(factors["window_us"]), bool(factors["gso"])),
            seed=condition.seed,
            schedule_seed=condition.schedule_seed,
        )


def heaviest(workload: Workload) -> tuple[Condition, ...]:
    """Greatest rate with the greatest and with the smallest messages, each once."""
    pace = Pace()
    return tuple(
        Condition(
            arm=next((t for t in workload.transports if t != _NULL), "udp"),
            factors={
                "payload_bytes": payload_bytes,
                "offered_rate_mbps": max(workload.offered_rate_mbps),
                "direction": workload.direction,
                "parallel": workload.parallel,
                "pacing": pace.mode,
                "window_us": pace.window_us,
                "gso": pace.gso,
            },
            run_id="ranging",
            seed=0,
            schedule_seed=run_table.schedule_seed(0, 1),
        )
        for payload_bytes in dict.fromkeys((max(workload.payload_bytes), min(workload.payload_bytes)))
    )
