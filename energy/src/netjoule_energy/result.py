# SPDX-License-Identifier: Apache-2.0
"""The document runs/<run_id>/result.json, as values (contract: result.schema.json)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netjoule_energy.integrator import IntegratorCheck

SCHEMA_VERSION = 1
TOOK_NO_PART = "took_no_part"
"""Why a client without a flow in the run has no E_A."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A code of reasons.json and what was seen, in words."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class FloorResult:
    """Generator floor of the mini-block at one meter; `reason` says why the rest is empty."""

    run_id: str | None
    p_null_w: float | None
    floor_w: float | None
    u95_floor_w: float | None
    ea_above_floor_j_per_mbit: float | None
    u95_ea_above_floor_j_per_mbit: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class FlowShare:
    """What one flow of several got in the window."""

    flow: int
    client: str
    transport: str
    direction: str
    payload_bytes: int
    offered_rate_mbps: float
    goodput_mbps: float | None
    demand_met_ratio: float | None
    loss_ratio: float | None
    achieved_ratio: float | None
    wake_ups_per_message: float | None
    naps_per_message: float | None


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index of the flows' goodputs, and of goodput over offered load."""

    jain_goodput: float | None
    jain_demand_met: float | None


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What one meter says about one run; numbers are None where they do not exist, `ea_reason` says why."""

    meter_id: str
    node: str
    power_source: str
    radio_source: str
    device_model: str | None
    device_form: str | None
    p_a_w: float | None
    p_i_w: float | None
    p_i_before_w: float | None
    p_i_after_w: float | None
    delta_p_w: float | None
    u_delta_p_w: float | None
    ea_j_per_mbit: float | None
    ea_reason: str | None
    u95_ea_j_per_mbit: float | None
    ea_upper_limit_j_per_mbit: float | None
    u95_components: dict[str, float] | None
    below_resolution: bool
    extrapolated_ratio: float | None
    hollow: bool
    coverage: float | None
    readings: int
    effective_readings: float
    tail_energy_j: float | None
    grade: str | None
    grade_limits: tuple[str, ...]
    semantics: str
    quantity: str
    lag_s: float
    lag_source: str
    specification: dict[str, float] | None
    integrator: IntegratorCheck | None
    floor: FloorResult
    t_a_mbps: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Per-run numbers of every meter; `window` is the effective measure window in campaign seconds.

    flows and fairness: only of a run with several flows; t_a_mbps of a node: only where it is not the run's.
    """

    run_id: str
    transport: str
    payload_bytes: int
    offered_rate_mbps: float
    direction: str
    window: dict[str, float] | None
    t_a_mbps: float | None
    u95_t_a_mbps: float | None
    loss_ratio: float | None
    achieved_ratio: float | None
    wake_ups_per_message: float | None
    naps_per_message: float | None
    valid: bool
    reasons: tuple[Reason, ...]
    nodes: tuple[NodeResult, ...]
    flows: tuple[FlowShare, ...] = ()
    fairness: Fairness | None = None

    def to_document(self) -> dict[str, Any]:
        """Return the JSON document."""
        body = asdict(self)
        body["reasons"] = [asdict(reason) for reason in self.reasons]
        body["nodes"] = [_node_document(node) for node in self.nodes]
        body["flows"] = [asdict(flow) for flow in self.flows]
        if self.fairness is None:
            del body["flows"], body["fairness"]
        return {"schema_version": SCHEMA_VERSION, **body}


def _node_document(node: NodeResult) -> dict[str, Any]:
    body = {**asdict(node), "grade_limits": list(node.grade_limits)}
    if node.t_a_mbps is None:
        del body["t_a_mbps"]
    return body
