# SPDX-License-Identifier: Apache-2.0
"""A block of a simulated campaign: a file for each kind of document and table, with lines of all its runs.

What runs/<run_id>/ has elsewhere stands here by run: runs.ndjson (run.json), results.ndjson (result.json),
LOAD.ndjson (run_id, part and document, of loads that keep some), intervals.csv, events.csv and, of paths
with routers, routers.csv, whose first column is run_id. A run can be simulated again, so nothing waits for
the disk: what a power cut took is seen when the campaign is opened, and its block is simulated once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from netjoule.core import files
from netjoule.core.errors import InvalidData, file_errors
from netjoule.core.reason import first_invalidating
from netjoule.design.run_table import PlanRow
from netjoule.store.blocks import document_name
from netjoule.workload.cell import Cell
from netjoule.workload.load import Document
from netjoule_contracts import OF_BLOCK, reading

RUNS = "runs.ndjson"
RESULTS = "results.ndjson"
TABLES = ("intervals", "events", "routers")
_OF_ROW = ("run_id", "block", "mini_block", "order", "attempt", "load", "kind", "arm", "seed")


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """All that there is of a run; `result` is None of one that failed."""

    run: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    documents: Sequence[Document] = ()
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


class BlockWriter(AbstractContextManager["BlockWriter"]):
    """Writes a block's files, run by run."""

    def __init__(self, folder: Path, load: str) -> None:
        """Nothing is there yet.

        Args:
            folder: the block's, empty.
            load: that its runs have.
        """
        self._folder, self._load = folder, load
        self._stack = ExitStack()
        self._files: dict[str, IO[str]] = {}

    def add(self, one: SimulatedRun) -> None:
        """Write a run.

        Raises:
            RunFailed: when a file cannot be written, as on a full disk.
        """
        run_id = one.run["run_id"]
        for table in TABLES:
            if rows := one.tables.get(table):
                name = f"{table}.csv"
                header = name not in self._files
                of_block = [{"run_id": run_id, **row} for row in rows]
                self._write(name, files.table_text(OF_BLOCK + table, of_block, header=header))
        for document in one.documents:
            line = {"run_id": run_id, "part": document.part, "document": document.content}
            self._write(f"{self._load}.ndjson", _line(line))
        if one.result is not None:
            self._write(RESULTS, _line(one.result))
        self._write(RUNS, _line(one.run))  # last: a run that stands here is whole

    def _write(self, name: str, text: str) -> None:
        with file_errors("write", self._folder / name):
            if name not in self._files:
                path = self._folder / name
                self._files[name] = self._stack.enter_context(path.open("x", encoding="utf-8", newline=""))
            self._files[name].write(text)

    def __exit__(self, *_: object) -> None:
        with file_errors("write", self._folder):
            self._stack.close()


def rows_of(folder: Path) -> list[PlanRow]:
    """What became of each run of a block, as plan.csv and status.csv say it.

    Raises:
        InvalidData: for a line that is no document of a run.
    """
    return [row_of(run) for run in documents(folder / RUNS)]


def row_of(run: Mapping[str, Any]) -> PlanRow:
    """A run of a plan with what became of it, by its run.json."""
    reason = None if run["status"] == "done" else first_invalidating(run["reasons"])
    return PlanRow(
        **{name: run[name] for name in _OF_ROW},
        cell=Cell(run["factors"]),
        status="valid" if run["status"] == "done" else "invalid",
        reason="" if reason is None else reason.code,
    )


def documents(path: Path) -> Iterator[dict[str, Any]]:
    """Documents of a file of a block, in the order in which they were written; none without the file.

    Raises:
        InvalidData: naming the line that is none.
    """
    if not path.exists():
        return
    with file_errors("read", path):
        for number, line in enumerate(reading.lines(path), start=1):
            try:
                document = reading.value_of(line)
                if not isinstance(document, dict) or not isinstance(document.get("run_id"), str):
                    raise ValueError("it is no document of a run")
            except ValueError as error:
                raise InvalidData(str(error), where=f"{path}, line {number}") from None
            yield document


def lost(folder: Path, rows: Sequence[PlanRow]) -> dict[str, str]:
    """Finished runs that a block does not have any more, in words by run_id."""
    failed, results, runs = set[str](), set[str](), set[str]()
    with suppress(InvalidData, KeyError, TypeError):
        for result in documents(folder / RESULTS):
            results.add(result["run_id"])
        for run in documents(folder / RUNS):
            runs.add(row_of(run).run_id)
            failed |= {run["run_id"]} if run["status"] == "failed" else set()
    whole = runs & (results | failed)
    return {row.run_id: "its lines are gone" for row in rows if row.run_id not in whole}


def written_out(folder: Path) -> Iterator[tuple[str, SimulatedRun]]:
    """Each run of a block, whole; the rows of tables as texts.

    Raises:
        InvalidData, OSError: for a file that cannot be read.
    """
    load = next((run["load"] for run in documents(folder / RUNS)), "")
    results = {result["run_id"]: result for result in documents(folder / RESULTS)}
    kept: dict[str, list[Document]] = {}
    for line in documents(folder / f"{load}.ndjson"):
        kept.setdefault(line["run_id"], []).append(Document("", line["document"], line["part"]))
    tables: dict[str, dict[str, list[dict[str, str]]]] = {name: {} for name in TABLES}
    for name, of_runs in tables.items():
        path = folder / f"{name}.csv"
        for cells in files.read_rows(path) if path.exists() else ():
            of_runs.setdefault(cells.pop("run_id", ""), []).append(cells)
    for run in documents(folder / RUNS):
        run_id = run["run_id"]
        of_run = {name: rows[run_id] for name, rows in tables.items() if run_id in rows}
        yield run_id, SimulatedRun(run, results.get(run_id), kept.get(run_id, ()), of_run)


def write_out(one: SimulatedRun, load: str, folder: Path) -> None:
    """Write a run in the form of those of other campaigns: runs/<run_id>/.

    Raises:
        RunFailed: when it cannot be written.
    """
    with file_errors("write", folder):
        folder.mkdir(parents=True, exist_ok=True)
    files.write_json(folder / "run.json", one.run)
    if one.result is not None:
        files.write_json(folder / "result.json", one.result)
    for document in one.documents:
        files.write_json(folder / document_name(load, document.part), document.content)
    for table, rows in one.tables.items():
        files.write_atomic(folder / f"{table}.csv", files.table_text(table, rows))


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
