# SPDX-License-Identifier: Apache-2.0
"""datapackage.json of a campaign: a Frictionless Data Package over its tables.

Tables of one kind are one resource with many paths, so that a campaign of thousands of runs holds each
schema once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule_contracts import reading
from netjoule_contracts.lift import plan as older_plan
from netjoule_contracts.lift import runs as lift

# Contract of each table by the pattern of its path inside a campaign.
TABLES = {
    "plan": "plan.csv",
    "status": "status.csv",
    "clocks": "clocks.csv",
    "meters": "meters/*.csv",
    "radio": "radio/*.csv",
    "intervals": "runs/*/intervals.csv",
    "events": "runs/*/events.csv",
    "power": "runs/*/power.csv",
    "routers": "runs/*/routers.csv",
    "block_intervals": "blocks/*/intervals.csv",
    "block_events": "blocks/*/events.csv",
    "block_routers": "blocks/*/routers.csv",
}

_OF_ALL = ("plan", "status")
"""What a block has of them stands in those of the campaign as well."""

CELLS_ARE_DATA = "Cells are data, also where one begins with =, +, - or @: import them as text."


def table_files(campaign: Path, table: str) -> list[str]:
    """Paths of all files of a table that exist, relative to the campaign, sorted; its blocks', too."""
    patterns = (TABLES[table],) if table in _OF_ALL else (TABLES[table], f"blocks/*/{TABLES[table]}")
    found = (path for pattern in patterns for path in campaign.glob(pattern))
    return sorted(path.relative_to(campaign).as_posix() for path in found if path.is_file())


def describe(campaign: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """The data package of a campaign's folder.

    Args:
        campaign: folder.
        document: its campaign.json.

    Returns:
        the JSON form, Data Package version 2.
    """
    name = str(document["campaign"])
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-") or "campaign",
        "title": f"netjoule campaign {name}",
        "description": f"{document['workload'].get('description', '')} {CELLS_ARE_DATA}".lstrip(),
        "created": document["created_utc"],
        "schema_version": 1,
        "resources": [r for r in (_resource(campaign, table) for table in TABLES) if r],
    }


def contract_of(campaign: Path, table: str, paths: Sequence[str]) -> str:
    """The contract of a table with these files, of an older campaign that of its version."""
    if table not in ("intervals", "plan") or not paths:
        return table
    header = _header(campaign / paths[0])
    return (
        lift.contract_of_intervals(header) if table == "intervals" else older_plan.contract_of(table, header)
    )


def _header(path: Path) -> list[str]:
    try:
        return files.header_of(path)
    except reading.Unreadable:
        return []  # a defect of the table, not of what lists it


def _resource(campaign: Path, table: str) -> dict[str, Any] | None:
    paths = table_files(campaign, table)
    if not paths:
        return None
    contract = contract_of(campaign, table, paths)
    schema = contracts.table(contract)
    fields = {"fields": contracts.fields_of(contract, _header(campaign / paths[0])) or schema["fields"]}
    return {
        "name": table,
        "title": schema.get("title", table),
        "type": "table",
        "path": paths[0] if len(paths) == 1 else paths,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": fields | {k: v for k, v in schema.items() if k in ("missingValues", "primaryKey")},
    }
