# SPDX-License-Identifier: Apache-2.0
"""What run.json says of flows before they begin, and each flow as a generator is asked for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule.loads.flow.condition import FlowCondition
from netjoule.loads.flow.flows import RunFlow, flows_of
from netjoule.loads.flow.generators import FlowSpec
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload
from netjoule_contracts import flow_work
from netjoule_contracts.lift import runs as lift

__all__ = ["flow_spec", "run_fields", "work_fields"]


def run_fields(workload: Workload, topology: Topology, asked: FlowCondition) -> dict[str, Any]:
    """The fields of run.json that are the flows'."""
    flows = flows_of(workload, asked, topology.hosts_with("client"))
    several = {"flows": [flow.as_json() for flow in flows]} if len(flows) > 1 else {}
    return {
        "load": "flow",
        "kind": "control" if asked.transport == lift.NULL else "work",
        "arm": asked.transport,
        "factors": {name: getattr(asked, name) for name in lift.FACTORS},
        "transport": asked.transport,
        "transport_options": workload.options_of(asked.transport),
        "payload_bytes": asked.payload_bytes,
        "offered_rate_mbps": asked.offered_rate_mbps,
        "direction": asked.direction,
        **several,
        "generator": workload.generator_of(asked.transport),
        "ip_version": workload.ip_version,
        "pacing": asked.pace.as_json(),
    }


def work_fields(
    reports: Sequence[tuple[RunFlow, Mapping[str, Any]]], rows: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """What run.json says of the work of flows that have ended; `rows`: of intervals.csv."""
    flows = [(flow.as_json(), report) for flow, report in reports]
    received = not all(flow.transport == lift.NULL for flow, _ in reports)
    return {
        "work": flow_work.work_of(flows, lift.sizes_of(rows), received=received),
        "measures": flow_work.measures_of_all(flows),
    }


def flow_spec(workload: Workload, asked: FlowCondition, duration_s: float, flow: RunFlow) -> FlowSpec:
    """One flow of a run; `flow`: which."""
    return FlowSpec(
        run_id=asked.run_id,
        transport=flow.transport,
        payload_bytes=flow.payload_bytes,
        offered_rate_mbps=flow.offered_rate_mbps,
        duration_s=duration_s,
        direction=flow.direction,
        ip_version=workload.ip_version,
        seed=flow.seed(asked.seed),
        pacing=asked.pace.mode,
        window_us=asked.pace.window_us,
        gso=asked.pace.gso,
        pacing_limits=workload.pacing_limits,
        options=flow.options,
        profile=workload.profile,
        schedule_seed=flow.seed(asked.schedule_seed),
    )
