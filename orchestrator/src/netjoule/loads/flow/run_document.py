# SPDX-License-Identifier: Apache-2.0
"""What run.json says of flows before they begin, and each flow as a generator is asked for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule.loads.flow.condition import FlowCondition
from netjoule.loads.flow.flows import RunFlow, flows_of
from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition
from netjoule_contracts import flow_work
from netjoule_contracts.lift import runs as lift


def run_fields(settings: FlowSettings, topology: Topology, condition: Condition, arm: str) -> dict[str, Any]:
    """The fields of run.json that are the flows'; `arm`: the factor that is compared."""
    asked = FlowCondition.of(condition)
    flows = flows_of(settings, asked, topology.hosts_with("client"))
    several = {"flows": [flow.as_json() for flow in flows]} if len(flows) > 1 else {}
    return {
        "load": "flow",
        "kind": "control" if condition.control else "work",
        "arm": condition.arm,
        "factors": {name: value for name, value in condition.factors.items() if name != arm},
        "transport": asked.transport,
        "transport_options": flows[0].options,
        "payload_bytes": asked.payload_bytes,
        "offered_rate_mbps": asked.offered_rate_mbps,
        "direction": asked.direction,
        **several,
        "generator": settings.generator_of(asked.transport),
        "ip_version": settings.ip_version,
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


def flow_spec(settings: FlowSettings, asked: FlowCondition, duration_s: float, flow: RunFlow) -> FlowSpec:
    """One flow of a run; `flow`: which."""
    return FlowSpec(
        run_id=asked.run_id,
        transport=flow.transport,
        payload_bytes=flow.payload_bytes,
        offered_rate_mbps=flow.offered_rate_mbps,
        duration_s=duration_s,
        direction=flow.direction,
        ip_version=settings.ip_version,
        seed=flow.seed(asked.seed),
        pacing=asked.pace.mode,
        window_us=asked.pace.window_us,
        gso=asked.pace.gso,
        pacing_limits=settings.pacing_limits,
        options=flow.options,
        profile=settings.profile,
        schedule_seed=flow.seed(asked.schedule_seed),
    )
