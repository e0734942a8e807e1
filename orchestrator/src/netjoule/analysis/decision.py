# SPDX-License-Identifier: Apache-2.0
"""What a gate's campaign decides, how long a gate is to be, and how two campaigns compare: R's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netjoule.analysis.analysis import run_r
from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason
from netjoule.design import rig_limits
from netjoule.store.campaign import Campaign


def look(campaign: Path) -> Reason:
    """What ends a gate's campaign after the blocks that it has; without a code where it is to go on.

    Raises:
        NetjouleError: when R cannot tell.
    """
    read = Campaign.read(campaign)
    if (sick := rig_limits.sick(read.rows())) is not None:
        return sick
    if read.workload.document["gate"].get("pilot"):
        return _pilot_ended(pilot(campaign))
    found = decision(campaign)
    return Reason("" if found["decided"] == "continue" else f"gate_{found['decided']}", str(found["words"]))


def decision(campaign: Path) -> Mapping[str, Any]:
    """The event ``gate_decision`` of a campaign: a session of contract gate_verdict, and what is decided."""
    return _answer("gate", "gate_decision", [str(campaign.resolve()), "--gate"])


def pilot(campaign: Path) -> Mapping[str, Any]:
    """The event ``gate_pilot`` of a campaign with two builds of one source: how much it scatters."""
    return _answer("gate", "gate_pilot", [str(campaign.resolve()), "--gate-pilot"])


def plan(
    log_ratio_sd: float, blocks: int, margin_percent: float, tolerance_percent: float
) -> Mapping[str, Any]:
    """The event ``gate_plan``: blocks of a gate at most, and its looks.

    Args:
        log_ratio_sd: of a pilot, over blocks.
        blocks: of the pilot.
        margin_percent, tolerance_percent: of the gate.
    """
    numbers = [repr(float(log_ratio_sd)), str(blocks), repr(margin_percent), repr(tolerance_percent)]
    return _answer("gate", "gate_plan", ["--gate-plan", *numbers])


def comparison(campaigns: Sequence[Path], options: Sequence[str]) -> Mapping[str, Any]:
    """The event ``comparison`` of two campaigns, or of two arms of one."""
    folders = [str(one.resolve()) for one in campaigns]
    return _answer("compare", "comparison", [*folders, "--compare", *options])


def _pilot_ended(found: Mapping[str, Any]) -> Reason:
    """A pilot is long enough once it is narrow enough."""
    half = found["half_width_percent"]
    words = f"{found['blocks']} blocks" + ("" if half is None else f": half-width {half:.2g} %")
    return Reason("gate_pilot_enough" if found["narrow_enough"] else "", words)


def _answer(verb: str, event: str, arguments: Sequence[str]) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = []
    run_r(verb, [*arguments, "--json"], lambda one: found.append(one) if one["event"] == event else None)
    if not found:
        raise RunFailed(f"the R program gave no {event}", where=verb)
    return found[-1]
