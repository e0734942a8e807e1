# SPDX-License-Identifier: Apache-2.0
"""A run's run.json before anything happened, and the flow that its plan row asks for. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from netjoule.design import run_table, timeline
from netjoule.design.run_table import PlanRow
from netjoule.loads.flow.flows import RunFlow, flows_of
from netjoule.loads.flow.generators import FlowSpec
from netjoule.store.campaign import SCHEMA_VERSION
from netjoule.store.session import rfc3339
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload

__all__ = ["flow_spec", "new_run_document"]

WINDOWS = ("idle_before", "warm_up", "measure", "tail", "idle_after")


def new_run_document(
    campaign: str, workload: Workload, topology: Topology, row: PlanRow, now: datetime
) -> dict[str, Any]:
    """run.json of a run that begins `now`: what is asked, all windows still unknown."""
    flows = flows_of(workload, row, topology.hosts_with("client"))
    several = {"flows": [flow.as_json() for flow in flows]} if len(flows) > 1 else {}
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
        **several,
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


def flow_spec(workload: Workload, row: PlanRow, guard_s: float, seed: int, *, flow: RunFlow) -> FlowSpec:
    """One flow of a run.

    Args:
        guard_s: keeps its end out of the measure window's last reading.
        seed: of the campaign.
        flow: which of the run's.
    """
    return FlowSpec(
        run_id=row.run_id,
        transport=flow.transport,
        payload_bytes=flow.payload_bytes,
        offered_rate_mbps=flow.offered_rate_mbps,
        duration_s=timeline.flow_duration_s(workload.timing, guard_s),
        direction=flow.direction,
        ip_version=workload.ip_version,
        seed=flow.seed(row.seed),
        pacing=row.pacing,
        window_us=row.window_us,
        gso=row.gso,
        pacing_limits=workload.pacing_limits,
        options=flow.options,
        profile=workload.profile,
        schedule_seed=flow.seed(run_table.schedule_seed(seed, row.mini_block)),
    )
