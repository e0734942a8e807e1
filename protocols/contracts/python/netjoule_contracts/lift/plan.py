# SPDX-License-Identifier: Apache-2.0
"""plan.csv of campaigns from before there was status.csv: it held the status of each run, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_OLDER_PLAN = "plan_1"
_STATUS = {"done": "valid", "superseded": "valid"}
_KEPT = ("run_id", "block", "mini_block", "order", "attempt", "seed")
FACTORS = ("payload_bytes", "offered_rate_mbps", "direction", "parallel", "pacing", "window_us", "gso")


class LiftedRun(NamedTuple):
    """A run of an older plan.csv: cells as plan.csv has them now, and what status.csv would say of it."""

    cells: dict[str, str]
    factors: dict[str, str]
    status: str
    reason: str


def is_older(header: Sequence[str]) -> bool:
    """Whether this is the header of such a plan.csv."""
    return "status" in header


def contract_of(table: str, header: Sequence[str]) -> str:
    """Name of the Table Schema of a file of a table, which has this header."""
    return _OLDER_PLAN if table == "plan" and is_older(header) else table


def lifted(row: Mapping[str, str], workload: Mapping[str, Any]) -> LiftedRun:
    """A row in the shape of now; the arm was always the transport, and null always its control.

    Args:
        row: its cells by column.
        workload: as campaign.json has it, for what was the same in every run and had no column.
    """
    constant = {"parallel": str(workload.get("parallel", 1))}
    factors = {name: constant.get(name) or row[name] for name in FACTORS}
    profile = workload.get("profile")
    if isinstance(profile, Mapping) and "name" in profile:
        factors["profile"] = str(profile["name"])
    control = row["transport"] == "null"
    cells = {name: row[name] for name in _KEPT}
    cells |= {"load": "flow", "kind": "control" if control else "work", "arm": row["transport"]}
    return LiftedRun(cells, factors, _STATUS.get(row["status"], row["status"]), row["reason"])
