# SPDX-License-Identifier: Apache-2.0
"""The document runs/<run_id>/result.json, as values (contract: result.schema.json)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netjoule_energy.integrator import IntegratorCheck

SCHEMA_VERSION = 2
MEGABIT = "Mb"
"""The unit of work in which energy per work is E_A, in J/Mb."""
TOOK_NO_PART = "took_no_part"
"""Why a client without a part in the run has no energy per work."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A code of reasons.json and what was seen, in words."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class FloorResult:
    """Floor of the mini-block at one meter; `reason` says why the rest is empty."""

    run_id: str | None
    p_null_w: float | None
    floor_w: float | None
    u95_floor_w: float | None
    energy_per_work_above_floor_j: float | None
    u95_energy_per_work_above_floor_j: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class PartShare:
    """What one part of several did in the window."""

    part: str
    node: str
    work_per_s: float | None
    met_ratio: float | None
    measures: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index of the parts' work, and of work over what was asked."""

    jain_work: float | None
    jain_met: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """Work in the window, all parts together; None where none is counted."""

    quantity: float | None
    unit: str
    work_per_s: float | None
    u95_work_per_s: float | None


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
    e_d_j: float | None
    e_t_j: float | None
    energy_per_work_j: float | None
    ea_reason: str | None
    u95_energy_per_work_j: float | None
    upper_limit_energy_per_work_j: float | None
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
    tail_s: float | None = None
    tail_cut: bool | None = None
    work_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Per-run numbers of every meter; `window` is the effective measure window in campaign seconds.

    parts and fairness: only of a run whose work has several; work_per_s of a node: only where it is not the
    run's.
    """

    run_id: str
    load: str
    kind: str
    arm: str
    factors: dict[str, Any]
    window: dict[str, Any] | None
    work: Work | None
    measures: dict[str, float | None]
    valid: bool
    reasons: tuple[Reason, ...]
    nodes: tuple[NodeResult, ...]
    parts: tuple[PartShare, ...] = ()
    fairness: Fairness | None = None

    def to_document(self) -> dict[str, Any]:
        """Return the JSON document."""
        body = asdict(self)
        body["reasons"] = [asdict(reason) for reason in self.reasons]
        in_megabits = self.work is not None and self.work.unit == MEGABIT
        body["nodes"] = [_node_document(node, in_megabits=in_megabits) for node in self.nodes]
        body["parts"] = [asdict(part) for part in self.parts]
        if self.fairness is None:
            del body["parts"], body["fairness"]
        return {"schema_version": SCHEMA_VERSION, **body}


_OF_MEGABITS = {
    "energy_per_work_j": "ea_j_per_mbit",
    "u95_energy_per_work_j": "u95_ea_j_per_mbit",
    "upper_limit_energy_per_work_j": "ea_upper_limit_j_per_mbit",
    "energy_per_work_above_floor_j": "ea_above_floor_j_per_mbit",
    "u95_energy_per_work_above_floor_j": "u95_ea_above_floor_j_per_mbit",
}
"""What fields are called besides where the work is in Mb: energy per work is then E_A."""


def _node_document(node: NodeResult, *, in_megabits: bool) -> dict[str, Any]:
    body = {**asdict(node), "grade_limits": list(node.grade_limits)}
    for name in ("work_per_s", "tail_cut"):
        if body[name] is None:
            del body[name]
    if node.tail_cut is None:
        del body["tail_s"]
    if in_megabits:
        for part in (body, body["floor"]):
            part |= {ea: part[name] for name, ea in _OF_MEGABITS.items() if name in part}
    return body
