# SPDX-License-Identifier: Apache-2.0
"""Holds the blocks of a simulated campaign to what runs in folders of their own are held to.

Each run is written out, in that form, into a folder that is removed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from netjoule.core.errors import NetjouleError
from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.store import blocks, simulated_blocks
from netjoule.topology.topology import SIMULATED
from netjoule.validation import tables
from netjoule.validation.run import MEASURE_ALONE, Asked, check_run
from netjoule.validation.tables import Defect

_SHM = "/dev/shm"  # noqa: S108 - folders in it have names of their own
_IN_MEMORY = _SHM if os.access(_SHM, os.W_OK | os.X_OK) else None
"""Where no file of a run that is looked at waits for a disk."""
_FILES = {"run.json": simulated_blocks.RUNS, "result.json": simulated_blocks.RESULTS}


def is_simulated(campaign: Mapping[str, Any]) -> bool:
    """Whether campaign.json is that of a simulated campaign."""
    topology = campaign.get("topology")
    return isinstance(topology, dict) and topology.get("kind") == SIMULATED


def blocks_and_runs(
    path: Path, campaign: Mapping[str, Any], rows: list[PlanRow] | None, asked: Asked | None
) -> Iterator[Defect]:
    """Defects of each block, and of each run that was written out in full."""
    known = {row.run_id: row for row in rows or ()}
    numbers = {row.block for row in known.values()}
    hosts = frozenset(campaign["topology"].get("hosts", ()))
    there = set[str]()
    for folder in sorted((path / blocks.BLOCKS).glob("*")):
        base = f"{blocks.BLOCKS}/{folder.name}"
        if not folder.name.isdecimal() or int(folder.name) not in numbers:
            yield Defect(base, "", "plan.csv has no such block")
            continue
        yield from _tables(path, folder)
        yield from _twice(path, folder)
        try:
            for run_id, one in simulated_blocks.written_out(folder):
                there.add(run_id)
                yield from _run(base, one, known.get(run_id), asked, hosts)
        except (NetjouleError, OSError, ValueError, KeyError, TypeError) as error:
            yield Defect(base, "", f"it cannot be read: {error}")
    for row in known.values():
        if row.status in run_table.HAPPENED and row.run_id not in there:
            yield Defect(
                blocks.BLOCKS, f"run {row.run_id}", "its lines are gone; 'netjoule resume' runs it again"
            )
    for folder in sorted((path / "runs").glob("*")):
        yield from _held(path, folder.name, known.get(folder.name), asked, hosts)


def _tables(path: Path, folder: Path) -> Iterator[Defect]:
    for name in simulated_blocks.TABLES:
        if (table := folder / f"{name}.csv").exists():
            yield from tables.table(table.relative_to(path).as_posix(), table, f"block_{name}")


def _twice(path: Path, folder: Path) -> Iterator[Defect]:
    """A run has one line in each file of documents; which of two would hold?"""
    for name in (simulated_blocks.RUNS, simulated_blocks.RESULTS):
        seen = set[str]()
        with suppress(NetjouleError):  # told where the runs are read
            for document in simulated_blocks.documents(folder / name):
                if document["run_id"] in seen:
                    file = (folder / name).relative_to(path).as_posix()
                    yield Defect(file, f"run {document['run_id']}", "it stands twice")
                seen.add(document["run_id"])


def _run(
    base: str,
    one: simulated_blocks.SimulatedRun,
    row: PlanRow | None,
    asked: Asked | None,
    hosts: frozenset[str],
) -> Iterator[Defect]:
    """Defects of a run of a block, by the files that they are in."""
    run_id, load = str(one.run["run_id"]), str(one.run.get("load", ""))
    if row is None:
        yield Defect(f"{base}/{simulated_blocks.RUNS}", f"run {run_id}", "plan.csv has no such run")
        return
    with TemporaryDirectory(prefix="netjoule-check-", dir=_IN_MEMORY) as temporary:
        simulated_blocks.write_out(one, load, Path(temporary) / "runs" / row.run_id)
        for defect in _held(Path(temporary), row.run_id, row, asked, hosts):
            name = defect.file.rpartition("/")[2]
            place = ", ".join(filter(None, (f"run {run_id}", defect.place)))
            yield Defect(f"{base}/{_FILES.get(name, name)}", place, defect.what)


def _held(
    campaign: Path, run_id: str, row: PlanRow | None, asked: Asked | None, hosts: frozenset[str]
) -> Iterator[Defect]:
    """Defects of a run in a folder of its own."""
    condition = load = None
    if asked is not None and row is not None:
        condition, load = row.condition(asked.workload, asked.seed), asked.load
    yield from check_run(
        campaign, run_id, row, hosts, settled=True, asked=condition, load=load, needed=MEASURE_ALONE
    )
