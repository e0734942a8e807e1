# SPDX-License-Identifier: Apache-2.0
"""The document runs/<run_id>/result.json: its types are those of the contract ``result``."""

from __future__ import annotations

from typing import Any

import msgspec

from netjoule_contracts.types.result import Floor, Reason, Result

MEGABIT = "Mb"
"""The unit of work in which energy per work is E_A, in J/Mb."""
TOOK_NO_PART = "took_no_part"
"""Why a client without a part in the run has no energy per work."""
GREATEST_FLOOR_RATIO = 0.2
"""A floor over this share of P_A - P_I is warned of: much of E_A is then the generator's own."""

_OF_MEGABITS = {
    "energy_per_work_j": "ea_j_per_mbit",
    "u95_energy_per_work_j": "u95_ea_j_per_mbit",
    "upper_limit_energy_per_work_j": "ea_upper_limit_j_per_mbit",
    "energy_per_work_above_floor_j": "ea_above_floor_j_per_mbit",
    "u95_energy_per_work_above_floor_j": "u95_ea_above_floor_j_per_mbit",
}
"""What fields are called besides where the work is in Mb: energy per work is then E_A."""


def document_of(result: Result) -> dict[str, Any]:
    """Return the JSON document."""
    document: dict[str, Any] = msgspec.to_builtins(result)
    if result.work is not None and result.work.unit == MEGABIT:
        for node in document["nodes"]:
            for part in (node, node["floor"]):
                part |= {ea: part[name] for name, ea in _OF_MEGABITS.items() if name in part}
    return document


def coded(code: str, detail: str) -> Reason:
    """Return a reason: a code of reasons.json and what was seen, in words."""
    return Reason(code=code, detail=detail)


def empty_floor(run_id: str | None, reason: str) -> Floor:
    """Return a floor without numbers; `reason` is a code of reasons.json."""
    return Floor(
        run_id=run_id,
        p_null_w=None,
        floor_w=None,
        u95_floor_w=None,
        energy_per_work_above_floor_j=None,
        u95_energy_per_work_above_floor_j=None,
        reason=reason,
    )


def floor_ratio(floor_w: float | None, delta_w: float | None) -> float | None:
    """Return the floor's share of P_A - P_I; None without a floor or without power above idle."""
    return floor_w / delta_w if floor_w is not None and delta_w is not None and delta_w > 0 else None
