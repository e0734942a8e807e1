# SPDX-License-Identifier: Apache-2.0
"""Runs of a campaign of flows as texts by column: plan.csv, the arm by its factor's name, and the status."""

from pathlib import Path

from netjoule.store.planfile import read_plan


def plan(campaign: Path) -> list[dict[str, str]]:
    """One mapping per run, in the order of execution."""
    names = ("run_id", "block", "mini_block", "order", "attempt", "status", "reason")
    return [
        {name: str(getattr(row, name)) for name in names}
        | {"transport": row.arm}
        | {factor: str(value) for factor, value in row.cell.items()}
        for row in read_plan(campaign)
    ]


def set_in_status(campaign: Path, run_id: str, status: str, reason: str = "") -> None:
    """Append a row of a run to status.csv, as text, right or not."""
    with (campaign / "status.csv").open("a", encoding="utf-8") as handle:
        handle.write(f"2026-11-21T00:00:00.000Z,{run_id},1,1,rig1,1,{status},{reason}\n")
