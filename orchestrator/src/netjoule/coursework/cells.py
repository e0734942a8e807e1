# SPDX-License-Identifier: Apache-2.0
"""Numbers of a campaign by cell and block, recomputed from what its runs wrote: result.json and flow.json.

They are those of tables/ea_summary.csv (of transfers transfer_summary.csv) at the campaign's first meter, or
at each where meters tell cells apart: runs that count, means over blocks. The tables themselves are never
read: whoever hands them in may have written them by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec import UNSET

from netjoule.analysis.floor_warnings import OUTCOME_REFUSALS
from netjoule.analysis.intervals import differ_clearly, half_width
from netjoule.core import files
from netjoule.core.words import counted
from netjoule.design.run_table import PlanRow
from netjoule.store import blocks, simulated_blocks
from netjoule.store.planfile import read_plan
from netjoule_contracts.documents import typed
from netjoule_contracts.types.result import Node, Result

Key = tuple[str | int | float, ...]
"""The arm, and the values of the factors that tell its cells apart: of `OF_FLOWS` unless told."""

OF_FLOWS = ("payload_bytes", "offered_rate_mbps")
"""Message size in bytes, offered load in Mb/s."""
_UNITS = (" B", " Mb/s")

METER = "meter"
"""Stands among the factors where the meter, by its id, tells cells apart too."""


class CannotTell(Exception):
    """A campaign does not decide a question; the text says why."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run that counts, at one meter.

    Attributes:
        block: from 1.
        numbers: by the names of ea_summary.csv (``ea_j_per_mbit``, ``goodput_mbps``, ``delta_p_w``,
            ``floor_w``, ``ea_above_floor_j_per_mbit``, ``frames_per_message``) and of its measures
            (``loss_ratio``, ``service_rate_mbps``); those that it does not have are left out.
        hollow: its device model is extrapolated.
        below_resolution: its P_A - P_I is.
        floor_reason: code that leaves its floor empty; empty when it has one.
    """

    block: int
    numbers: Mapping[str, float]
    hollow: bool = False
    below_resolution: bool = False
    floor_reason: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs of one arm and cell."""

    key: Key
    runs: tuple[Run, ...]

    def __str__(self) -> str:
        arm, *others = self.key
        told = (
            other if isinstance(other, str) else f"{other:g}{unit}"
            for other, unit in zip(others, _UNITS, strict=False)
        )
        return ", ".join((str(arm), *told))

    def by_block(self, name: str) -> dict[int, float]:
        """Mean of a quantity in each block that has it."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            if name in run.numbers:
                found.setdefault(run.block, []).append(run.numbers[name])
        return {block: fmean(values) for block, values in sorted(found.items())}

    def mean(self, name: str) -> float:
        """Mean over blocks.

        Raises:
            CannotTell: when no run has the quantity, or the device model does not hold for the cell.
        """
        if any(run.hollow for run in self.runs):
            raise CannotTell(f"at {self} the device model is extrapolated")
        values = self.by_block(name)
        codes = sorted({run.floor_reason for run in self.runs} - {""}) if "floor" in name else []
        if not values:
            why = f" ({', '.join(codes)})" if codes else ""
            raise CannotTell(f"no run of {self} has {name}{why}")
        if OUTCOME_REFUSALS.intersection(codes):
            raise CannotTell(f"{name} of {self} is empty: not every run has it ({', '.join(codes)})")
        return fmean(values.values())

    def half_width(self, name: str) -> float:
        """Half of the 95 % t interval over blocks.

        Raises:
            CannotTell: below two blocks.
        """
        values = list(self.by_block(name).values())
        if len(values) < 2:
            raise CannotTell(
                f"{self} has {name} in {counted(len(values), 'block')}, and an interval needs two"
            )
        return half_width(values)


class Cells:
    """All cells of a campaign."""

    def __init__(self, runs: Iterable[tuple[Key, Run]]) -> None:
        found: dict[Key, list[Run]] = {}
        for key, run in runs:
            found.setdefault(key, []).append(run)
        self._cells = {key: Cell(key, tuple(of)) for key, of in found.items()}

    def at(self, *key: str | int | float) -> Cell:
        """One cell.

        Args:
            key: the arm, and what tells its cells apart.

        Raises:
            CannotTell: when no run of it counts.
        """
        if key not in self._cells:
            raise CannotTell(f"no run of {Cell(key, ())} counts")
        return self._cells[key]

    def dearer(self, first: Cell, second: Cell) -> bool:
        """Whether E_A of the first is clearly greater than that of the second."""
        name = "ea_j_per_mbit"
        apart = differ_clearly(positive_pairs(first, second, name).values())
        return apart and first.mean(name) > second.mean(name)


def positive_pairs(first: Cell, second: Cell, name: str) -> dict[int, tuple[float, float]]:
    """A quantity of two cells in each block where it is above 0 in both."""
    ours, theirs = first.by_block(name), second.by_block(name)
    return {b: (ours[b], theirs[b]) for b in ours if ours[b] > 0 and theirs.get(b, 0) > 0}


def read(campaign: Path, factors: Sequence[str] = OF_FLOWS) -> Cells:
    """Cells of a campaign that `netjoule check` finds no defect in.

    Args:
        campaign: its folder.
        factors: that tell cells of an arm apart.
    """
    runs = []
    for row, result, flow in _documents(campaign):
        for node in (result.nodes if METER in factors else result.nodes[:1]) if result.valid else ():
            cell = {**row.cell, METER: node.meter_id}
            key = (row.arm, *(cell[name] for name in factors))
            runs.append((key, _run(row.block, result, node, flow)))
    return Cells(runs)


def _documents(campaign: Path) -> Iterator[tuple[PlanRow, Result, Mapping[str, Any]]]:
    """Result of each run that is neither invalid nor of an attempt that was repeated; of flows flow.json."""
    valid = {row.run_id: row for row in read_plan(campaign) if row.status == "valid"}
    of_blocks = [blocks.home(campaign, number) for number in sorted({row.block for row in valid.values()})]
    simulated = [home for home in of_blocks if (home / simulated_blocks.RUNS).exists()]
    for home in simulated:
        for run_id, one in simulated_blocks.written_out(home):
            if run_id in valid and one.result is not None:
                yield valid[run_id], typed(Result, dict(one.result)), one.documents[0].content
    for row in () if simulated else valid.values():
        folder = blocks.run_folder(campaign, row)
        result = files.read_document(folder / "result.json", Result)
        yield row, result, files.read_json(folder / "flow.json") if result.load == "flow" else {}


def _run(block: int, result: Result, node: Node, flow: Mapping[str, Any]) -> Run:
    of_run = None if result.work is None else result.work.work_per_s
    t_a = of_run if node.work_per_s is UNSET else node.work_per_s
    ea = node.energy_per_work_j
    if ea is None and t_a and node.delta_p_w is not None:
        # A negative difference leaves E_A empty; means without it would be biased upwards.
        ea = node.delta_p_w / t_a
    numbers = {
        **result.measures,
        "ea_j_per_mbit": ea,
        "goodput_mbps": t_a,
        "delta_p_w": node.delta_p_w,
        "floor_w": node.floor.floor_w,
        "ea_above_floor_j_per_mbit": node.floor.energy_per_work_above_floor_j,
        "frames_per_message": flow.get("frames_per_message"),
    }
    return Run(
        block=block,
        numbers={name: float(value) for name, value in numbers.items() if value is not None},
        hollow=node.hollow,
        below_resolution=node.below_resolution,
        floor_reason=node.floor.reason or "",
    )
