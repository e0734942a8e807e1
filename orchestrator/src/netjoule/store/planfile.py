# SPDX-License-Identifier: Apache-2.0
"""plan.csv as rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import InvalidData
from netjoule.design.run_table import PlanRow

__all__ = ["read_plan", "write_plan"]


def write_plan(path: Path, rows: Iterable[PlanRow]) -> None:
    """Replace a plan.csv, on disk when this returns."""
    files.write_atomic(path, files.table_text("plan", [asdict(row) for row in rows]))


def read_plan(path: Path) -> list[PlanRow]:
    """Rows of a plan.csv.

    Raises:
        InvalidData: naming line and column of the first cell that does not fit.
    """
    defect = next(contracts.table_defects("plan", path), None) if path.is_file() else "the file is missing"
    if defect:
        raise InvalidData(defect, where=str(path))
    return [_plan_row(cells) for cells in files.read_table(path, "plan")]


def _plan_row(cells: Mapping[str, str]) -> PlanRow:
    return PlanRow(
        run_id=cells["run_id"],
        block=int(cells["block"]),
        mini_block=int(cells["mini_block"]),
        order=int(cells["order"]),
        attempt=int(cells["attempt"]),
        transport=cells["transport"],
        payload_bytes=int(cells["payload_bytes"]),
        offered_rate_mbps=float(cells["offered_rate_mbps"]),
        direction=cells["direction"],
        generator=cells["generator"],
        seed=int(cells["seed"]),
        pacing=cells["pacing"],
        window_us=int(cells["window_us"]),
        gso=cells["gso"] == "true",
        status=cells["status"],
        reason=cells["reason"],
    )
