# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves in a campaign's folder, and how it is settled. Used by the store only."""

from __future__ import annotations

import os
from pathlib import Path

import netjoule_contracts as contracts
from netjoule import files
from netjoule.errors import InvalidData, RunFailed, file_errors
from netjoule.verdict import first_invalidating

__all__ = ["cut_torn_lines", "discard", "last_logged_s", "sealed_status"]

_RUN_PARTS = ("run.json", "flow.json", "intervals.csv", "result.json")


def cut_torn_lines(campaign: Path) -> None:
    """Cut the unfinished last line of every table and stream."""
    for pattern in ("*.csv", "*/*.csv", "runs/*/*.csv", "devices/*.ndjson"):
        for table in campaign.glob(pattern):
            files.cut_torn_line(table)


def sealed_status(folder: Path) -> tuple[str, str] | None:
    """Status and reason code of a run whose files are complete; None when they are not."""
    try:
        document = files.read_json(folder / "run.json")
        contracts.validate("run", document)
    except (RunFailed, InvalidData, contracts.ContractError):
        return None
    if document["windows"]["idle_after"] is None or not (folder / "flow.json").exists():
        return None
    if not (folder / "intervals.csv").exists():
        return None
    if document["status"] == "done":
        return ("done", "")
    reason = first_invalidating(document["reasons"])
    return ("invalid", reason.code if reason else "generator_failed")


def discard(folder: Path) -> None:
    """Remove the partial files of an unfinished run; its events stay."""
    parts = [folder / part for part in _RUN_PARTS]
    for part in [*parts, *(folder / "flows").glob("*.json")]:
        with file_errors("remove", part):
            part.unlink(missing_ok=True)


def last_logged_s(campaign: Path) -> float:
    """Greatest campaign time in seconds that a meter's or radio's table knows; 0 without any."""
    known = [0.0]
    for table in (*campaign.glob("meters/*.csv"), *campaign.glob("radio/*.csv")):
        known += _last_time(table)
    return max(known)


def _last_time(table: Path) -> list[float]:
    """First cell of the last line as a number; empty when there is none."""
    with file_errors("read", table), table.open("rb") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(max(0, size - 4096))
        lines = handle.read().decode(errors="replace").splitlines()
    try:
        return [float(lines[-1].split(",")[0])] if lines else []
    except ValueError:
        return []
