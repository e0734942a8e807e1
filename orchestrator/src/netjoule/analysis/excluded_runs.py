# SPDX-License-Identifier: Apache-2.0
"""Which finished runs of an analysed campaign count, as R judged them, and the results of those that do."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from netjoule.core import files
from netjoule.core.errors import InvalidData
from netjoule.design.run_table import last_attempts
from netjoule.store.planfile import read_plan
from netjoule_contracts.types.result import Result

_REASONS_FILE = "tables/invalid_runs.csv"
_FINISHED = frozenset({"valid", "invalid"})


def excluded_runs(campaign: Path) -> frozenset[str]:
    """Finished runs that R excluded; none of a campaign that was not analysed."""
    path = campaign / _REASONS_FILE
    if not path.is_file():
        return frozenset()
    return frozenset(row["run_id"] for row in files.read_rows(path) if row.get("run_id"))


def exclusion_line(campaign: Path) -> str:
    """How many finished runs do not count and where the reasons stand; empty when all of them do.

    Runs that were made again are replaced, and no loss.
    """
    last = last_attempts(read_plan(campaign))
    finished = {row.run_id for row in last if row.status in _FINISHED}
    out = len(finished & excluded_runs(campaign))
    if not out:
        return ""
    return (
        f"netjoule: warning: {out} of {len(finished)} finished runs {'does' if out == 1 else 'do'} not count;"
        f" the reasons stand in {campaign / _REASONS_FILE}"
    )


def valid_results(campaign: Path, folders: Iterable[Path]) -> dict[str, Result]:
    """result.json by run, of those that have one, call it valid and were not excluded.

    A file that cannot be used is one run's defect, which R has named; it must not end the whole.
    """
    out = excluded_runs(campaign)
    found = {}
    for folder in folders:
        path = folder / "result.json"
        if folder.name in out or not path.is_file():
            continue
        with suppress(InvalidData):
            found[folder.name] = files.read_document(path, Result)
    return {run_id: result for run_id, result in found.items() if result.valid}
