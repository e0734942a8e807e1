# SPDX-License-Identifier: Apache-2.0
"""Which runs a campaign consists of, and which come next. Pure: no files, no clock, chance by seed.

A *mini-block* is one cell with every arm back to back in random order. A *block*
holds every cell once, its mini-blocks shuffled. A mini-block with an invalid run is repeated whole at the
end of its block, because pairs are formed only inside a mini-block.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError
from netjoule.workload.cell import Cell
from netjoule.workload.load import Condition
from netjoule.workload.workload import Workload

MOST_RUNS = 100_000
"""Of a campaign's first attempts: days, even of runs of a second."""

HAPPENED = frozenset({"valid", "invalid", "superseded"})
"""Of a run that has ended and left its files."""
FINAL = HAPPENED | {"not_needed"}


Kind = Literal["work", "control", "warm_up"]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One run of plan.csv; see the Table Schema ``plan`` for the meaning of each column.

    Attributes:
        cell: values of the factors, the arm's not among them.
        status: of status.csv; planned where it has none, superseded of a valid one whose mini-block was
            repeated.
        reason: code, of an invalid one; of one that is not needed, the rule that ended the campaign.
    """

    run_id: str
    block: int
    mini_block: int
    order: int
    attempt: int
    load: str
    kind: Kind
    arm: str
    seed: int
    cell: Cell
    status: str = "planned"
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """As events have it: the factors beside the rest."""
        rest = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "cell"}
        return rest | dict(self.cell)

    def condition(self, workload: Workload, campaign_seed: int) -> Condition:
        """What the run does, for its load and its testbed."""
        factors = workload.values_of(self.arm, self.cell)
        return Condition(
            arm=self.arm,
            factors=factors,
            run_id=self.run_id,
            seed=self.seed,
            schedule_seed=schedule_seed(campaign_seed, self.mini_block),
            control=self.kind == "control",
            testbed=workload.asked_of_testbed(factors),
        )


@dataclass(frozen=True, slots=True)
class MiniBlock:
    """One attempt of a mini-block.

    Attributes:
        rows: all its runs, in order.
        missing: those that still have to run, in order.
    """

    block: int
    mini_block: int
    attempt: int
    cell: Cell
    rows: tuple[PlanRow, ...]
    missing: tuple[PlanRow, ...]

    @property
    def resumed(self) -> bool:
        """Whether some of its runs were finished in an earlier session."""
        return len(self.missing) < len(self.rows)


def expand(workload: Workload, seed: int) -> tuple[PlanRow, ...]:
    """All runs of a campaign in the order of execution.

    Args:
        workload: what is asked.
        seed: of every random choice; the same seed gives the same plan.

    Returns:
        rows with status ``planned``; ``mini_block`` counts through the whole campaign.

    Raises:
        UsageError: for more than `MOST_RUNS`, before any row is made.
    """
    require_few_runs(workload)
    cells = workload.cells
    rows: list[PlanRow] = []
    for block in range(1, workload.blocks + 1):
        shuffled = list(cells)
        _rng(seed, "block", block).shuffle(shuffled)
        for place, cell in enumerate(_by_session(shuffled)):
            number = (block - 1) * len(cells) + place + 1
            rows += _first_attempt(workload, seed, block, number, cell)
    return tuple(rows)


def of_session(cell: Cell) -> dict[str, Any]:
    """The values in a cell that hold for a whole session: of factors that no running testbed can change."""
    return {
        name: value
        for name, value in cell.items()
        if not (contracts.factor(name) or {}).get("while_up", True)
    }


def sessions(workload: Workload) -> int:
    """How many a campaign has when nothing stops it: one, or in each block one for each of those values."""
    held = {Cell(of_session(cell)) for cell in workload.cells}
    return workload.blocks * len(held) if len(held) > 1 else 1


def _by_session(cells: Sequence[Cell]) -> list[Cell]:
    """Cells in their order, but those that one session can have side by side."""
    first: dict[Cell, int] = {}
    for place, cell in enumerate(cells):
        first.setdefault(Cell(of_session(cell)), place)
    return sorted(cells, key=lambda cell: first[Cell(of_session(cell))])


def require_few_runs(workload: Workload) -> None:
    """Refuse a campaign that nobody could run to its end.

    Raises:
        UsageError: for more than `MOST_RUNS`.
    """
    if workload.runs > MOST_RUNS:
        raise UsageError(
            f"it asks for {workload.runs} runs, and a campaign has {MOST_RUNS} at most",
            where=f"workload {workload.name}, field blocks",
            next_step="ask for fewer blocks or fewer values of factors",
        )


def next_mini_block(rows: Sequence[PlanRow]) -> MiniBlock | None:
    """The first mini-block attempt that still has runs to do; None when the plan is done."""
    for group in groups(rows):
        missing = tuple(r for r in group if r.status not in FINAL)
        if missing:
            first = group[0]
            return MiniBlock(first.block, first.mini_block, first.attempt, first.cell, group, missing)
    return None


def blocks_done(rows: Sequence[PlanRow]) -> int:
    """How many blocks, counted from the first, have nothing left to run."""
    last = max((row.block for row in rows), default=0)
    return min((row.block for row in rows if row.status not in FINAL), default=last + 1) - 1


def last_attempts(rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Rows of the latest attempt of their mini-block; those before it were repeated."""
    latest = {row.mini_block: row.attempt for row in sorted(rows, key=lambda row: row.attempt)}
    return [row for row in rows if row.attempt == latest[row.mini_block]]


def in_order(rows: Iterable[PlanRow]) -> list[PlanRow]:
    """Rows as plan.csv has them in the order of execution: a repeat comes at the end of its block."""
    first: list[PlanRow] = []
    repeats: dict[int, list[PlanRow]] = {}
    for row in rows:
        (first if row.attempt == 1 else repeats.setdefault(row.block, [])).append(row)
    ends = {row.block: place for place, row in enumerate(first)}
    out: list[PlanRow] = []
    for place, row in enumerate(first):
        out.append(row)
        out += repeats.pop(row.block, []) if ends[row.block] == place else []
    return superseded([*out, *(row for rest in repeats.values() for row in rest)])


def superseded(rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Rows of which a valid one whose mini-block was repeated is called superseded."""
    last = {row.run_id for row in last_attempts(rows)}
    return [
        replace(row, status="superseded") if row.status == "valid" and row.run_id not in last else row
        for row in rows
    ]


def with_repeats(rows: Sequence[PlanRow], seed: int, max_attempts: int) -> tuple[PlanRow, ...]:
    """Add a new attempt for each finished mini-block whose latest attempt has an invalid run.

    The new attempt goes to the end of the block, with every arm in a new random order. Valid
    runs of the older attempt become ``superseded``: they stay in the results and are not paired.
    Applying it twice changes nothing.
    """
    # One of an older attempt may have been run again, for what it had lost.
    out = superseded(rows)
    sizes = Counter((row.mini_block, row.attempt) for row in rows)
    for group in groups(last_attempts(rows)):
        first = group[0]
        if len(group) < sizes[first.mini_block, first.attempt - 1]:  # a crash cut the repeat's rows
            older = [r for r in rows if (r.mini_block, r.attempt) == (first.mini_block, first.attempt - 1)]
            known = {row.run_id for row in group}
            _insert(out, [row for row in _repeat(older, seed) if row.run_id not in known])
            continue
        if first.attempt >= max_attempts:
            continue
        if any(r.status not in FINAL for r in group) or all(r.status != "invalid" for r in group):
            continue
        _insert(out, _repeat(group, seed))
    return tuple(superseded(out))


def _insert(rows: list[PlanRow], repeat: Sequence[PlanRow]) -> None:
    """Put rows at the end of their block."""
    after = max(i for i, r in enumerate(rows) if r.block == repeat[0].block)
    rows[after + 1 : after + 1] = repeat


def schedule_seed(seed: int, mini_block: int) -> int:
    """Seed of what a profile sends in a mini-block: the same for every arm and attempt."""
    return _rng(seed, "schedule", mini_block).randrange(2**32)


def _repeat(group: Sequence[PlanRow], seed: int) -> list[PlanRow]:
    """The next attempt of a mini-block, in a new random order."""
    first = group[0]
    attempt = first.attempt + 1
    order = sorted(group, key=lambda r: r.arm)
    _rng(seed, "mini_block", first.mini_block, attempt).shuffle(order)
    return [
        replace(
            row,
            run_id=_run_id(row.block, row.mini_block, row.arm, attempt),
            order=place,
            attempt=attempt,
            seed=_run_seed(seed, row.mini_block, row.arm, attempt),
            status="planned",
            reason="",
        )
        for place, row in enumerate(order, start=1)
    ]


def _first_attempt(workload: Workload, seed: int, block: int, mini_block: int, cell: Cell) -> list[PlanRow]:
    """The rows of a mini-block, its arms in random order."""
    arms = sorted(workload.arms)
    _rng(seed, "mini_block", mini_block, 1).shuffle(arms)
    return [
        PlanRow(
            run_id=_run_id(block, mini_block, arm, 1),
            block=block,
            mini_block=mini_block,
            order=order,
            attempt=1,
            load=workload.load,
            kind="control" if arm == workload.control else "work",
            arm=arm,
            seed=_run_seed(seed, mini_block, arm, 1),
            cell=cell,
        )
        for order, arm in enumerate(arms, start=1)
    ]


def groups(rows: Iterable[PlanRow]) -> list[tuple[PlanRow, ...]]:
    """Rows by mini-block attempt, in the order in which each first appears."""
    groups: dict[tuple[int, int], list[PlanRow]] = {}
    for row in rows:
        groups.setdefault((row.mini_block, row.attempt), []).append(row)
    return [tuple(g) for g in groups.values()]


def _run_id(block: int, mini_block: int, arm: str, attempt: int) -> str:
    """A name for people and a folder; nobody reads anything out of it."""
    return f"b{block:02d}m{mini_block:03d}-{re.sub('[^A-Za-z0-9._-]', '_', arm)}-a{attempt}"


def _rng(seed: int, *purpose: object) -> random.Random:
    """An independent generator per purpose, so that adding a choice does not move the others."""
    return random.Random(":".join(map(str, (seed, *purpose))))  # noqa: S311 - an experiment, not a secret


def _run_seed(seed: int, mini_block: int, arm: str, attempt: int) -> int:
    return _rng(seed, "run", mini_block, arm, attempt).randrange(2**32)
