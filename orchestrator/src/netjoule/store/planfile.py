# SPDX-License-Identifier: Apache-2.0
"""plan.csv and status.csv as rows and back. Both only grow: of a run, the last row of status.csv holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import InvalidData, NetjouleError
from netjoule.design import run_table
from netjoule.design.run_table import Kind, PlanRow
from netjoule.store.session import rfc3339
from netjoule.topology.rigs import FIRST
from netjoule.workload.cell import Cell
from netjoule_contracts.lift import plan as older_plan

PLAN = "plan.csv"
STATUS = "status.csv"
STOPPED = ("invalid", "interrupted")
"""Status and reason of a run that was begun and is planned again, under its own id."""
LOST = ("invalid", "worker_lost")
"""The same of one whose block's worker was lost."""
_FIXED = ("run_id", "block", "mini_block", "order", "attempt", "load", "kind", "arm", "seed")


def write_plan(campaign: Path, rows: Sequence[PlanRow]) -> None:
    """Write plan.csv of a new campaign, on disk when this returns."""
    text = files.table_text("plan", map(_cells, rows), factors=_factors(rows))
    files.write_atomic(campaign / PLAN, text)


def append_plan(campaign: Path, rows: Sequence[PlanRow]) -> None:
    """Append repeats to plan.csv, on disk when this returns."""
    path = campaign / PLAN
    files.append_table(path, "plan", map(_cells, rows), factors=_factors(rows), flush=True)


def append_status(
    campaign: Path,
    rows: Iterable[PlanRow],
    session: int,
    now: datetime,
    *,
    rig: str = FIRST,
    tokens: Mapping[int, int] | None = None,
) -> None:
    """Append the state of runs to status.csv, on disk when this returns; planned ones have no row.

    Args:
        campaign: folder.
        rows: runs with their state.
        session: 0 before the first.
        now: UTC.
        rig: that had them.
        tokens: of the owners of their blocks; by default each session is an owner of its own.
    """
    t_utc = rfc3339(now)
    cells = [
        {
            "t_utc": t_utc,
            "run_id": row.run_id,
            "attempt": row.attempt,
            "session": session,
            "rig": rig,
            "owner_token": session if tokens is None else tokens[row.block],
            "status": "valid" if row.status == "superseded" else row.status,
            "reason": row.reason,
        }
        for row in rows
        if row.status != "planned"
    ]
    if cells:
        files.append_table(campaign / STATUS, "status", cells, flush=True)


def is_older(campaign: Path) -> bool:
    """Whether a campaign is one of those whose plan.csv held the status of each run."""
    return older_plan.is_older(files.header_of(campaign / PLAN))


def read_plan(campaign: Path) -> list[PlanRow]:
    """Runs of a campaign with their status, in the order of execution.

    A last line that a crash cut off counts as not written.

    Raises:
        InvalidData: naming file, line and column of the first cell that does not fit.
    """
    header, cells = _table(campaign / PLAN, "plan")
    if older_plan.is_older(header):
        return _older(campaign, cells)
    return run_table.in_order(_with_status(_planned(header, cells), campaign / STATUS))


def read_planned(campaign: Path) -> list[PlanRow]:
    """The same of a campaign of this version, without their status: what plan.csv alone says."""
    return run_table.in_order(_planned(*_table(campaign / PLAN, "plan")))


def _planned(header: Sequence[str], cells: Iterable[Mapping[str, str]]) -> list[PlanRow]:
    factors = header[len(_FIXED) :]
    return [_row(row, {name: row[name] for name in factors}) for row in cells]


def _table(path: Path, table: str) -> tuple[list[str], list[dict[str, str]]]:
    """Header and rows of a table that fits its contract."""
    is_torn = table == "status" or not older_plan.is_older(files.header_of(path))
    defect = next(contracts.table_defects(table, path, torn=is_torn), None) if path.is_file() else _MISSING
    if defect:
        raise InvalidData(defect, where=str(path))
    return files.header_of(path), files.read_table(path, table, torn=is_torn)


_MISSING = "the file is missing"


def _older(campaign: Path, rows: Iterable[Mapping[str, str]]) -> list[PlanRow]:
    """Rows of a plan.csv that holds the status, too."""
    try:
        workload = files.read_json(campaign / "campaign.json").get("workload")
    except NetjouleError:  # told by whoever reads that document
        workload = None
    known = workload if isinstance(workload, dict) else {}
    found = []
    for row in rows:
        run = older_plan.lifted(row, known)
        found.append(replace(_row(run.cells, run.factors), status=run.status, reason=run.reason))
    return run_table.superseded(found)


def _row(cells: Mapping[str, str], factors: Mapping[str, str]) -> PlanRow:
    return PlanRow(
        run_id=cells["run_id"],
        block=int(cells["block"]),
        mini_block=int(cells["mini_block"]),
        order=int(cells["order"]),
        attempt=int(cells["attempt"]),
        load=cells["load"],
        kind=cast("Kind", cells["kind"]),
        arm=cells["arm"],
        seed=int(cells["seed"]),
        cell=Cell({name: _value(name, text) for name, text in factors.items()}),
    )


def _value(factor: str, text: str) -> Any:
    """A factor's value of its cell in plan.csv."""
    kind = (contracts.factor(factor) or {"value": {"type": "string"}})["value"]["type"]
    match kind:
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "boolean":
            return text == "true"
    return text


def _cells(row: PlanRow) -> dict[str, object]:
    """A run as plan.csv has it."""
    return {name: getattr(row, name) for name in _FIXED} | dict(row.cell)


def _factors(rows: Sequence[PlanRow]) -> list[str]:
    return list(rows[0].cell) if rows else []


def owners(campaign: Path) -> dict[str, tuple[int, str]]:
    """The greatest owner_token of each run that status.csv knows, with the rig of that owner."""
    found: dict[str, tuple[int, str]] = {}
    for cells in _settled(campaign / STATUS):
        owner = (int(cells["owner_token"]), cells["rig"])
        if owner[0] >= found.get(cells["run_id"], (0, ""))[0]:
            found[cells["run_id"]] = owner
    return found


def _settled(path: Path) -> Iterable[Mapping[str, str]]:
    """Rows of status.csv; none of one that is not there, or in which a full disk left nothing."""
    return _table(path, "status")[1] if path.exists() and path.stat().st_size else ()


def _with_status(rows: Sequence[PlanRow], path: Path) -> Iterator[PlanRow]:
    """Rows with the last status of each run; one that has none is planned."""
    last: dict[str, tuple[int, str, str]] = {}
    for cells in _settled(path):
        token = int(cells["owner_token"])
        if token >= last.get(cells["run_id"], (0, "", ""))[0]:
            last[cells["run_id"]] = (token, cells["status"], cells["reason"])
    for row in rows:
        _, *settled = last.get(row.run_id, (0, row.status, row.reason))
        status, reason = ("planned", "") if tuple(settled) in (STOPPED, LOST) else settled
        yield replace(row, status=status, reason=reason)
