# SPDX-License-Identifier: Apache-2.0
"""A run's condition as flows have it, and the conditions that load their hosts most. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from netjoule.design import run_table
from netjoule.loads.flow.settings import NULL, FlowSettings, Pace
from netjoule.workload.load import Condition


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
    congestion_control: str | None
    seed: int
    schedule_seed: int

    @classmethod
    def of(cls, condition: Condition) -> FlowCondition:
        """The same, typed."""
        factors = condition.factors
        return cls(
            run_id=condition.run_id,
            transport=NULL if condition.control else str(factors["transport"]),
            payload_bytes=int(factors["payload_bytes"]),
            offered_rate_mbps=float(factors["offered_rate_mbps"]),
            direction=str(factors["direction"]),
            parallel=int(factors["parallel"]),
            pace=Pace.of(factors),
            congestion_control=factors.get("congestion_control"),  # type: ignore[arg-type]
            seed=condition.seed,
            schedule_seed=condition.schedule_seed,
        )


def heaviest(settings: FlowSettings) -> tuple[Condition, ...]:
    """Greatest rate with the greatest and with the smallest messages, each once."""
    pace = Pace()
    return tuple(
        Condition(
            arm=settings.transports[0],
            factors={
                "transport": settings.transports[0],
                "payload_bytes": payload_bytes,
                "offered_rate_mbps": max(settings.offered_rate_mbps),
                "direction": "both" if len(settings.directions) > 1 else settings.directions[0],
                "parallel": max(settings.parallel),
                "pacing": pace.mode,
                "window_us": pace.window_us,
                "gso": pace.gso,
            },
            run_id="ranging",
            seed=0,
            schedule_seed=run_table.schedule_seed(0, 1),
        )
        for payload_bytes in dict.fromkeys((max(settings.payload_bytes), min(settings.payload_bytes)))
    )
