# SPDX-License-Identifier: Apache-2.0
"""Reads what one run left behind, runs of older versions in the shape of the newest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from netjoule_contracts import reading
from netjoule_contracts.lift import runs as lift
from netjoule_energy.campaign.files import (
    Campaign,
    CampaignError,
    as_in_run,
    check,
    demand,
    read_document,
    read_meter,
    read_states,
    readable,
)
from netjoule_energy.power.windows import Intervals
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.run.parts import idle_clients
from netjoule_energy.run.run_input import UNTIL_DONE, RunInput, run_input

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def run_folder(campaign: Path, run_id: str) -> Path:
    """Return the folder of a run.

    Raises:
        CampaignError: when the id is no plain name (it must not lead out of the campaign).
    """
    if not RUN_ID.fullmatch(run_id):
        raise CampaignError(f"{run_id!r} is not a run id")
    return campaign / "runs" / run_id


@dataclass(frozen=True, slots=True)
class _Read:
    """A run as it was written, with the documents that its lift needs, and as its numbers are computed."""

    written: dict[str, Any]
    documents: list[dict[str, Any]]
    source: RunInput


class Runs:
    """The runs of a campaign, each read when it is asked for."""

    def __init__(self, campaign: Path, known: Campaign) -> None:
        """Read nothing yet."""
        self._campaign, self._known = campaign, known
        # A control run is asked for by each run of its mini-block, which follow one another.
        self._read = lru_cache(maxsize=2)(self._read_anew)

    def source(self, run_id: str) -> RunInput:
        """Return everything that the numbers of one run rest on, but for its control run.

        Raises:
            CampaignError: naming the file that is missing or broken.
        """
        return self._read(run_id).source

    def with_control(self, run_id: str) -> tuple[RunInput, RunInput | None]:
        """Return a run, and the control run of its mini-block where there is one.

        Raises:
            CampaignError: naming the file of either that is missing or broken.
        """
        read = self._read(run_id)
        run = read.source.run
        if not lift.is_first(read.written):
            named = run["control"]
            return read.source, None if named is None else self.source(str(named["run_id"]))
        found = None if read.source.is_control else self._controls.get(lift.mini_block_of(run))
        if found is None:
            return read.source, None
        null = self._read(found)
        control = lift.lifted_control(read.written, read.documents, null.written, null.documents)
        return replace(read.source, run=run | {"control": control}), null.source

    @cached_property
    def _controls(self) -> dict[tuple[Any, ...], str]:
        """Control runs by what the runs of their mini-block have in common; of several the first."""
        found: dict[tuple[Any, ...], str] = {}
        for path in sorted((self._campaign / "runs").glob("*/run.json")):
            run = read_document(path)
            if lift.is_control(run):
                found.setdefault(lift.mini_block_of(run), str(run["run_id"]))
        return found

    def _meter(self, passport: dict[str, Any], t_from_s: float, t_to_s: float) -> MeterInput:
        lag = self._known.lags.get(str(passport["meter_id"]))
        return read_meter(self._campaign, passport, t_from_s, t_to_s, lag)

    def _read_anew(self, run_id: str) -> _Read:
        folder = run_folder(self._campaign, run_id)
        run = read_run(self._campaign, run_id)
        documents = [_read_beside(folder / name) for name in lift.documents_of(run)]
        rows = _rows(folder / "intervals.csv", run)
        lifted = lift.lifted_run(run, documents, rows)
        t_from_s, t_to_s = _extent(run)
        passports = [as_in_run(passport, run) for passport in self._known.passports]
        meters = tuple(self._meter(passport, t_from_s, t_to_s) for passport in passports)
        if lifted["window"] is not None and lifted["window"]["kind"] == UNTIL_DONE:
            meters = tuple(
                replace(meter, states=read_states(self._campaign, meter.node, t_from_s, t_to_s))
                for meter in meters
            )
        source = run_input(lifted, by_part(folder / "intervals.csv", rows), meters)
        idle = idle_clients(self._known.clients, source.parts)
        return _Read(run, documents, replace(source, idle_clients=idle))


def read_run(campaign: Path, run_id: str) -> dict[str, Any]:
    """Return run.json of a run as it was written, held to the contract of its version."""
    path = run_folder(campaign, run_id) / "run.json"
    run = read_document(path)
    check(path, lift.contract_of("run", run), run)
    return run


def _read_beside(path: Path) -> dict[str, Any]:
    """Return a document beside run.json, {} when it is missing.

    Programs differ in what they can tell, so only its shape is demanded.
    """
    if not path.exists():
        return {}
    document = read_document(path)
    for part in ("sender", "receiver", "clock_offset"):
        if not isinstance(document.get(part), dict | None):
            raise CampaignError(f"{path}: {part} must be an object or null")
    return document


def _rows(path: Path, run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return intervals.csv in the shape of its newest version; none without the file."""
    if not path.exists():
        return []
    try:
        return lift.lifted_intervals(run, _cells(path, lift.interval_columns(run)))
    except (TypeError, ValueError) as error:
        if isinstance(error, CampaignError):
            raise
        raise CampaignError(f"{path}: an interval is not a number: {error}") from None


def _cells(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    header: list[str] = []
    with readable(path):
        for line, cells, defect in reading.rows(path, reading.MOST_DOCUMENT_BYTES):
            if defect or (header and len(cells) != len(header)):
                raise reading.Unreadable(f"line {line}", defect or f"cells: {len(cells)}, not {len(header)}")
            if header:
                yield dict(zip(header, cells, strict=True))
            else:
                demand(path, cells, columns)
                header = cells
    if not header:
        demand(path, header, columns)


def by_part(path: Path, rows: list[dict[str, Any]]) -> dict[str, Intervals]:
    """Return each part's intervals in time order, by its name; parts in the order of their names."""
    cells: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        cells.setdefault(row["part"], []).append((row["t_start_s"], row["t_end_s"], row["work"]))
    return {part: _intervals_of(path, found) for part, found in sorted(cells.items())}


def _intervals_of(path: Path, cells: list[tuple[float, float, float]]) -> Intervals:
    table = np.array(cells, dtype=np.float64).reshape(-1, 3)
    if not np.all(np.isfinite(table)):
        raise CampaignError(f"{path}: an interval is not a finite number")
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Intervals(table[:, 0], table[:, 1], table[:, 2])


def _extent(run: dict[str, Any]) -> tuple[float, float]:
    """Return first start and last end of the run's windows in campaign seconds ((0, 0) without any)."""
    windows = [window for window in run["windows"].values() if window is not None]
    if not windows:
        return 0.0, 0.0
    return min(float(w["t_start_s"]) for w in windows), max(float(w["t_end_s"]) for w in windows)
