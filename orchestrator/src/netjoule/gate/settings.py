# SPDX-License-Identifier: Apache-2.0
"""What a gate asks of a workload, as the workload that its sessions run. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError

PILOT_LOOKS = (12, 15, 18, 21, 24)
_NOT_ASKED = ("name", "description", "blocks", "seed", "statistics", "gate", "limits")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a gate decides.

    Attributes:
        objective: energy, throughput, cpu_time or p99_delay.
        margin_percent: PASS: an increase of so much is ruled out.
        tolerance_percent: FAIL: an increase of so much is shown.
    """

    objective: str = "energy"
    margin_percent: float = 3.0
    tolerance_percent: float = 1.0


@dataclass(frozen=True, slots=True)
class Names:
    """Arms of a session by what they are; None where there is none."""

    head: str = "head"
    base: str = "base"
    anchor: str | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Pilot:
    """What an earlier A/A pilot of this rig and workload found.

    Attributes:
        fingerprint: as in its verdict.
        blocks: that counted.
        block_s: that a block took, with its share of what is not measured.
        log_ratio_sd: standard deviation over blocks of ln(second build / first build).
        half_width_percent: of the two-sided 95 % interval.
        reference_log_sd: standard deviation over blocks of ln(E of the reference workload); None without one.
        biased: whether its two builds of one source differed.
    """

    fingerprint: Mapping[str, Any]
    blocks: int
    block_s: float
    log_ratio_sd: float
    half_width_percent: float
    reference_log_sd: float | None = None
    biased: bool = False


def workload_version(document: Mapping[str, Any]) -> str:
    """First 12 digits of the SHA-256 of what a workload asks, without arms, blocks and seed.

    Args:
        document: an effective workload, before it has the arms of a gate.
    """
    asked = {name: value for name, value in document.items() if name not in _NOT_ASKED}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def require_objective(document: Mapping[str, Any], objective: str) -> None:
    """Refuse what the workload's load does not measure. Raises UsageError."""
    known = contracts.loads()[document["load"]]["objectives"]
    if objective not in known:
        what = f"--objective {objective}: the load {document['load']} does not measure it"
        raise UsageError(what, next_step=f"take one of {', '.join(known)}")


def without_arms(document: Mapping[str, Any]) -> dict[str, Any]:
    """A workload without what its arms differ in: two gates of one workload are alike in the rest."""
    arm, load = document["arm"], document["load"]
    factors = {name: values for name, values in document["factors"].items() if name != arm}
    settings = {name: value for name, value in document.get(load, {}).items() if name != "builds"}
    rest = {name: value for name, value in document.items() if name not in ("arm", "control")}
    return rest | {"factors": factors} | ({load: settings} if load in document else {})


def session_document(
    document: Mapping[str, Any], rule: Rule, names: Names, looks: Sequence[int], pilot: Pilot | None
) -> dict[str, Any]:
    """The workload of a session: the arms' workload with as many blocks and looks as the gate has at most.

    Args:
        document: a workload that has the arms.
        rule: of the decision.
        names: of its arms.
        looks: blocks after which the data is looked at; the last is all.
        pilot: whose scatter the reference workload is held to; None in a pilot.
    """
    section: dict[str, Any] = {
        "head": names.head,
        "base": names.base,
        "objective": rule.objective,
        "margin_percent": rule.margin_percent,
        "tolerance_percent": rule.tolerance_percent,
        "looks": list(looks),
    }
    if pilot is None:
        section["pilot"] = True
    if names.anchor is not None:
        section["anchor"] = names.anchor
    if names.reference is not None:
        section["reference"] = names.reference
        if pilot is not None and pilot.reference_log_sd:
            section |= {"reference_log_sd": pilot.reference_log_sd, "pilot_blocks": pilot.blocks}
    rest = {name: value for name, value in document.items() if name not in ("seed", "statistics")}
    return {**rest, "blocks": looks[-1], "gate": section}
