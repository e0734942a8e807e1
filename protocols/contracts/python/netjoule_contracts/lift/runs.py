# SPDX-License-Identifier: Apache-2.0
"""Runs of older versions: run.json and intervals.csv in the shape of the newest.

A run of version 1 says what was asked of its flows and leaves the rest to their reports, so its lift needs
them (`documents_of`). Its null run was found by its name, or among all runs of its mini-block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule_contracts.flow_control import control_of
from netjoule_contracts.flow_work import (
    FlowPart,
    books,
    bytes_of,
    clock_limit_s,
    measures_of_all,
    megabits,
    node_of,
    part_name,
    work_of,
)

Document = Mapping[str, Any]
Row = Mapping[str, str]

NULL = "null"
OF_VERSION_1 = ("run", "result", "intervals")
"""Contracts that had a version 1, which is kept under the name with _1 after it."""
_COLUMNS = ("part", "node", "t_start_s", "t_end_s", "work")
FACTORS = ("payload_bytes", "offered_rate_mbps", "direction")

_OF_FLOWS = frozenset(
    ("transport", "transport_options", "flows", "generator", "ip_version", "pacing", "t_first_packet_s")
).union(FACTORS)
"""Fields of version 1 that say what was asked of flows, or when they began."""


def is_first(document: Document) -> bool:
    """Whether a document is of version 1 of its contract, which is the only one before the newest."""
    return document.get("schema_version") == 1


def load_of(run: Document) -> str:
    """Return the name of the load of a run: runs of version 1 were all of the first load."""
    return "flow" if is_first(run) else str(run.get("load"))


def cell_of(run: Document) -> dict[str, Any]:
    """Return load, kind, arm and factors of a run; one of version 1 names three of its factors."""
    if not is_first(run):
        return {name: run[name] for name in ("load", "kind", "arm", "factors")}
    return {
        "load": "flow",
        "kind": "control" if is_control(run) else "work",
        "arm": run["transport"],
        "factors": {name: run[name] for name in FACTORS},
    }


def parts_of(run: Document) -> list[str]:
    """Return the names of the parts of a run's work; one where it did not come to any."""
    if is_first(run):
        several: Sequence[Document] = run.get("flows") or ({},)
        return [part_name(flow) for flow in several]
    return [part["part"] for part in (run["work"] or {}).get("parts", ())] or ["1"]


def contract_of(name: str, run: Document) -> str:
    """Return the contract that holds a document, or a table beside a run.json: of an older version its own.

    run: the document itself, or the run.json that the table stands beside.
    """
    return f"{name}_1" if name in OF_VERSION_1 and is_first(run) else name


def contract_of_intervals(header: Sequence[str]) -> str:
    """Return the contract that a table intervals.csv with this header is of."""
    return "intervals" if "part" in header else "intervals_1"


def documents_of(run: Document) -> list[str]:
    """Return the files beside run.json that its lift needs, in order; none of the newest version."""
    if not is_first(run):
        return []
    return ["flow.json", *(f"flows/{flow['flow']}.json" for flow in (run.get("flows") or ())[1:])]


def mini_block_of(run: Document) -> tuple[Any, ...]:
    """Return what the runs of one attempt of a mini-block have in common."""
    return tuple(run.get(name) for name in ("block", "mini_block", "attempt"))


def is_control(run: Document) -> bool:
    """Whether a run is the control run of its mini-block."""
    return run.get("transport") == NULL if is_first(run) else run.get("kind") == "control"


def flows_of(run: Document, reports: Sequence[Document]) -> list[FlowPart]:
    """Return each flow by itself: run.json as if it were the run's only one, and its report."""
    several: Sequence[Document] = run.get("flows") or ({},)
    return [({**run, **asked}, report) for asked, report in zip(several, reports, strict=True)]


def interval_columns(run: Document) -> tuple[str, ...]:
    """Return the columns that intervals.csv beside a run must have."""
    return ("end", "t_start_s", "t_end_s", "bytes") if is_first(run) else _COLUMNS


def part_columns(run: Document) -> tuple[str, ...]:
    """Return the columns of intervals.csv whose values have intervals of their own, the part first."""
    return ("flow", "end") if is_first(run) else ("part",)


def lifted_intervals(run: Document, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows of intervals.csv as part, node, t_start_s, t_end_s and work, which are numbers.

    Raises:
        ValueError: at a cell that is no number.
        KeyError: without a column.
    """
    if not is_first(run):
        return [
            {"part": row["part"], "node": row["node"]}
            | {name: float(row[name]) for name in ("t_start_s", "t_end_s", "work")}
            for row in rows
        ]
    several: Sequence[Document] = run.get("flows") or ({},)
    nodes = {part_name(asked): node_of({**run, **asked}) for asked in several}
    return [
        {
            "part": str(row.get("flow") or 1),
            "node": nodes.get(str(row.get("flow") or 1), ""),
            "t_start_s": float(row["t_start_s"]),
            "t_end_s": float(row["t_end_s"]),
            "work": megabits(float(row["bytes"])),
        }
        for row in rows
        if row["end"] == "receiver"
    ]


def lifted_run(run: Document, reports: Sequence[Document], rows: Iterable[Document]) -> dict[str, Any]:
    """Return run.json in the shape of the newest version, but for its `control`.

    reports: of `documents_of`, {} for each that is missing. rows: `lifted_intervals` of its intervals.csv.
    """
    if not is_first(run):
        return dict(run)
    flows = flows_of(run, reports)
    told = [*run["reasons"], *_reasons(run, flows)]
    kept = {name: value for name, value in run.items() if name not in _OF_FLOWS}
    return kept | {"reasons": told} | facts_of(run, flows, rows)


def sizes_of(rows: Iterable[Document]) -> dict[str, list[float]]:
    """Return the bytes of payload in rows of intervals.csv, by part."""
    sizes: dict[str, list[float]] = {}
    for row in rows:
        sizes.setdefault(row["part"], []).append(bytes_of(row["work"]))
    return sizes


def facts_of(run: Document, flows: Sequence[FlowPart], rows: Iterable[Document]) -> dict[str, Any]:
    """Return what the newest version of run.json has of a run of flows and version 1 had not.

    run: with its windows, and what was asked of its flows. rows: of intervals.csv.
    """
    measure = (run.get("windows") or {}).get("measure")
    edges = {"clock_limit_s": clock_limit_s(report for _, report in flows)}
    return {
        "schema_version": 2,
        **cell_of(run),
        "window": None if measure is None else {"kind": "fixed", **measure} | edges,
        "work": work_of(flows, sizes_of(rows), received=not is_control(run)),
        "measures": measures_of_all(flows),
        "control": None,
    }


def lifted_control(
    run: Document, reports: Sequence[Document], null: Document, null_reports: Sequence[Document]
) -> dict[str, Any]:
    """Return `control` of a run of version 1: both documents as they were written, with their reports."""
    return control_of(flows_of(run, reports), flows_of(null, null_reports), str(null["run_id"]))


def _reasons(run: Document, flows: Sequence[FlowPart]) -> list[dict[str, str]]:
    """What the reports say against a run, beside the reasons that it has."""
    found: list[dict[str, str]] = []
    for asked, report in flows:
        named = f"flow {asked['flow']}: " if run.get("flows") else ""
        if not report:
            missing = {"code": "generator_failed", "detail": f"{named}the run has no flow report"}
            found += [] if run["reasons"] else [missing]
            continue
        found += [{"code": "bookkeeping_mismatch", "detail": f"{named}{defect}"} for defect in books(report)]
    return found
