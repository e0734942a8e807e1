# SPDX-License-Identifier: Apache-2.0
"""A run's run.json before anything happened, and the flow that its plan row asks for. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from netjoule import plan, timeline
from netjoule.generators import FlowSpec
from netjoule.plan import PlanRow
from netjoule.session import rfc3339
from netjoule.store import SCHEMA_VERSION
from netjoule.topology import Topology
from netjoule.workload import Workload

__all__ = ["flow_spec", "new_run_document"]

WINDOWS = ("idle_before", "warm_up", "measure", "tail", "idle_after")


def new_run_document(
    campaign: str, workload: Workload, topology: Topology, row: PlanRow, now: datetime
) -> dict[str, Any]:
    """run.json of a run that begins `now`: what is asked, all windows still unknown."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": row.run_id,
        "campaign": campaign,
        "block": row.block,
        "mini_block": row.mini_block,
        "attempt": row.attempt,
        "order": row.order,
        "transport": row.transport,
        "transport_options": workload.options_of(row.transport),
        "payload_bytes": row.payload_bytes,
        "offered_rate_mbps": row.offered_rate_mbps,
        "direction": row.direction,
        "generator": row.generator,
        "ip_version": workload.ip_version,
        "pacing": row.pace.as_json(),
        "seed": row.seed,
        "hosts": {"client": topology.host_with("client"), "server": topology.host_with("server")},
        "radio_source": topology.radio_source,
        "windows": dict.fromkeys(WINDOWS),
        "t_first_packet_s": None,
        "started_utc": rfc3339(now),
        "versions": {},
        "status": "done",
        "reasons": [],
    }


def flow_spec(workload: Workload, row: PlanRow, guard_s: float, seed: int) -> FlowSpec:
    """The flow of a run.

    Args:
        guard_s: keeps its end out of the measure window's last reading.
        seed: of the campaign.
    """
    return FlowSpec(
        run_id=row.run_id,
        transport=row.transport,
        payload_bytes=row.payload_bytes,
        offered_rate_mbps=row.offered_rate_mbps,
        duration_s=timeline.flow_duration_s(workload.timing, guard_s),
        direction=row.direction,
        ip_version=workload.ip_version,
        seed=row.seed,
        pacing=row.pacing,
        window_us=row.window_us,
        gso=row.gso,
        pacing_limits=workload.pacing_limits,
        options=workload.options_of(row.transport),
        profile=workload.profile,
        schedule_seed=plan.schedule_seed(seed, row.mini_block),
    )
