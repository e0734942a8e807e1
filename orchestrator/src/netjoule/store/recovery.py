# SPDX-License-Identifier: Apache-2.0
"""What a crash or a loss leaves in a campaign's folder, and how it is settled. Used by the store only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import netjoule_contracts as contracts
import netjoule_energy
from netjoule.core import files
from netjoule.core.errors import InvalidData, RunFailed, file_errors
from netjoule.core.reason import first_invalidating
from netjoule.design.run_table import PlanRow
from netjoule_contracts.lift import runs as lift


def cut_torn_lines(campaign: Path) -> dict[str, int]:
    """Cut the unfinished last line of every table and stream; how many bytes were cut, by file."""
    patterns = ("*.csv", "*/*.csv", "runs/*/*.csv", "devices/*.ndjson")
    tables = sorted(table for pattern in patterns for table in campaign.glob(pattern))
    cut = {table.relative_to(campaign).as_posix(): files.cut_torn_line(table) for table in tables}
    return {name: size for name, size in cut.items() if size}


def lost(campaign: Path, rows: Iterable[PlanRow]) -> dict[str, str]:
    """What finished runs have lost of their files and readings since, in words by run_id.

    A run without a result has not come to its end: settling looks at its readings.
    """
    found = {}
    try:
        known = netjoule_energy.read_campaign(campaign)
    except netjoule_energy.CampaignError:
        known = None
    for row in rows:
        folder = campaign / "runs" / row.run_id
        if not (folder / "run.json").exists() or (
            row.status != "invalid" and finished_status(folder) is None
        ):
            found[row.run_id] = "its files are gone"
        elif row.status != "invalid" and known is not None and (folder / "result.json").exists():
            lacking = _lacking(campaign, known, folder)
            found |= {row.run_id: lacking} if lacking else {}
    return found


def _lacking(campaign: Path, known: netjoule_energy.Campaign, folder: Path) -> str:
    """What the meters' tables lack of a run that has its result, in words; empty when it is covered."""
    run, result = (files.read_json(folder / name) for name in ("run.json", "result.json"))
    try:
        gaps = netjoule_energy.uncovered(campaign, known, run, result)
    except netjoule_energy.CampaignError as error:
        return str(error)
    return "; ".join(f"meter {gap.meter_id}: {gap}" for gap in gaps)


def finished_status(folder: Path) -> tuple[str, str] | None:
    """Status and reason code of a run whose files are complete; None when they are not."""
    try:
        document = files.read_json(folder / "run.json")
        contracts.validate(lift.contract_of("run", document), document)
    except (RunFailed, InvalidData, contracts.ContractError):
        return None
    load = lift.load_of(document)
    entry = contracts.loads().get(load, {})
    files_of_load = () if entry.get("document") is None else (f"{load}.json",)
    there = all((folder / name).exists() for name in ("intervals.csv", *files_of_load))
    if not there or document["windows"]["idle_after"] is None:
        return None
    if document["status"] == "done":
        return ("valid", "")
    reason = first_invalidating(document["reasons"])
    return ("invalid", reason.code if reason else "generator_failed")


def discard(folder: Path) -> None:
    """Remove the partial files of an unfinished run; its events stay."""
    parts = (*folder.glob("*.json"), folder / "intervals.csv", *folder.glob("*/*.json"))
    for part in parts:
        with file_errors("remove", part):
            part.unlink(missing_ok=True)


def last_logged_s(campaign: Path) -> float:
    """Greatest campaign time in seconds that a meter's or radio's table knows; 0 without any."""
    known = [0.0]
    for table in (*campaign.glob("meters/*.csv"), *campaign.glob("radio/*.csv")):
        last_s = last_time_s(table)
        known += [] if last_s is None else [last_s]
    return max(known)


def last_time_s(table: Path) -> float | None:
    """First cell of the last line as a number; None when there is none."""
    with file_errors("read", table), table.open("rb") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(max(0, size - 4096))
        lines = handle.read().decode(errors="replace").splitlines()
    try:
        return float(lines[-1].split(",")[0]) if lines else None
    except ValueError:
        return None
