# SPDX-License-Identifier: Apache-2.0
"""Which runs a campaign consists of, and which come next. Pure: no files, no clock, chance by seed.

A *mini-block* is one (payload, rate, pacing) with every transport back to back in random order. A *block*
holds every cell once, its mini-blocks shuffled. A mini-block with an invalid run is repeated whole at the
end of its block, because pairs are formed only inside a mini-block.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from netjoule.core.errors import UsageError
from netjoule.workload.load import Condition
from netjoule.workload.workload import Pace, Workload

__all__ = [
    "MOST_RUNS",
    "MiniBlock",
    "PlanRow",
    "expand",
    "last_attempts",
    "next_mini_block",
    "require_few_runs",
    "schedule_seed",
    "with_repeats",
]

MOST_RUNS = 100_000
"""Of a campaign's first attempts: days, even of runs of a second."""

FINAL = frozenset({"done", "invalid", "superseded"})


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One run of plan.csv; see the Table Schema ``plan`` for the meaning of each column."""

    run_id: str
    block: int
    mini_block: int
    order: int
    attempt: int
    transport: str
    payload_bytes: int
    offered_rate_mbps: float
    direction: str
    generator: str
    seed: int
    status: str = "planned"
    reason: str = ""
    pacing: str = "absolute"
    window_us: int = 0
    gso: bool = False

    @property
    def pace(self) -> Pace:
        """Pacing, window and trains in one."""
        return Pace(self.pacing, self.window_us, self.gso)

    def condition(self, campaign_seed: int) -> Condition:
        """What the run does, for its load."""
        names = ("payload_bytes", "offered_rate_mbps", "direction", "pacing", "window_us", "gso")
        return Condition(
            arm=self.transport,
            factors={name: getattr(self, name) for name in names},
            run_id=self.run_id,
            seed=self.seed,
            schedule_seed=schedule_seed(campaign_seed, self.mini_block),
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
    payload_bytes: int
    offered_rate_mbps: float
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
    cells = [
        (payload, rate, pace)
        for payload in workload.payload_bytes
        for rate in workload.offered_rate_mbps
        for pace in workload.paces
    ]
    rows: list[PlanRow] = []
    for block in range(1, workload.blocks + 1):
        shuffled = list(cells)
        _rng(seed, "block", block).shuffle(shuffled)
        for place, (payload, rate, pace) in enumerate(shuffled):
            number = (block - 1) * len(cells) + place + 1
            rows += _first_attempt(workload, seed, _Place(block, number, payload, rate), pace)
    return tuple(rows)


def require_few_runs(workload: Workload) -> None:
    """Refuse a campaign that nobody could run to its end.

    Raises:
        UsageError: for more than `MOST_RUNS`.
    """
    if workload.runs > MOST_RUNS:
        raise UsageError(
            f"it asks for {workload.runs} runs, and a campaign has {MOST_RUNS} at most",
            where=f"workload {workload.name}, field blocks",
            next_step="ask for fewer blocks, sizes, rates or ways of pacing",
        )


def next_mini_block(rows: Sequence[PlanRow]) -> MiniBlock | None:
    """The first mini-block attempt that still has runs to do; None when the plan is done."""
    for group in _groups(rows):
        missing = tuple(r for r in group if r.status not in FINAL)
        if missing:
            first = group[0]
            return MiniBlock(
                first.block,
                first.mini_block,
                first.attempt,
                first.payload_bytes,
                first.offered_rate_mbps,
                group,
                missing,
            )
    return None


def last_attempts(rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Rows of the latest attempt of their mini-block; those before it were repeated."""
    latest = {row.mini_block: row.attempt for row in sorted(rows, key=lambda row: row.attempt)}
    return [row for row in rows if row.attempt == latest[row.mini_block]]


def with_repeats(rows: Sequence[PlanRow], seed: int, max_attempts: int) -> tuple[PlanRow, ...]:
    """Add a new attempt for each finished mini-block whose latest attempt has an invalid run.

    The new attempt goes to the end of the block, with every transport in a new random order. Valid
    runs of the older attempt become ``superseded``: they stay in the results and are not paired.
    Applying it twice changes nothing.
    """
    last = {row.run_id for row in last_attempts(rows)}
    # One of an older attempt may have been run again, for what it had lost.
    out = [
        replace(r, status="superseded") if r.status == "done" and r.run_id not in last else r for r in rows
    ]
    for group in _groups(last_attempts(rows)):
        first = group[0]
        if first.attempt >= max_attempts:
            continue
        if any(r.status not in FINAL for r in group) or all(r.status != "invalid" for r in group):
            continue
        out = [replace(r, status="superseded") if r in group and r.status == "done" else r for r in out]
        after = max(i for i, r in enumerate(out) if r.block == first.block)
        out[after + 1 : after + 1] = _repeat(group, seed)
    return tuple(out)


def schedule_seed(seed: int, mini_block: int) -> int:
    """Seed of what a profile sends in a mini-block: the same for every transport, null and every attempt."""
    return _rng(seed, "schedule", mini_block).randrange(2**32)


def _repeat(group: Sequence[PlanRow], seed: int) -> list[PlanRow]:
    """The next attempt of a mini-block, in a new random order."""
    first = group[0]
    attempt = first.attempt + 1
    order = sorted(group, key=lambda r: r.transport)
    _rng(seed, "mini_block", first.mini_block, attempt).shuffle(order)
    return [
        replace(
            row,
            run_id=_run_id(row.block, row.mini_block, row.transport, attempt),
            order=place,
            attempt=attempt,
            seed=_run_seed(seed, row.mini_block, row.transport, attempt),
            status="planned",
            reason="",
        )
        for place, row in enumerate(order, start=1)
    ]


class _Place(NamedTuple):
    """Where a mini-block stands and which cell it is."""

    block: int
    mini_block: int
    payload_bytes: int
    offered_rate_mbps: float


def _first_attempt(workload: Workload, seed: int, place: _Place, pace: Pace) -> list[PlanRow]:
    """The rows of a mini-block, its transports in random order."""
    transports = sorted(workload.transports)
    _rng(seed, "mini_block", place.mini_block, 1).shuffle(transports)
    return [
        PlanRow(
            run_id=_run_id(place.block, place.mini_block, transport, 1),
            **place._asdict(),
            order=order,
            attempt=1,
            transport=transport,
            direction=workload.direction,
            generator=workload.generator_of(transport),
            seed=_run_seed(seed, place.mini_block, transport, 1),
            pacing=pace.mode,
            window_us=pace.window_us,
            gso=pace.gso,
        )
        for order, transport in enumerate(transports, start=1)
    ]


def _groups(rows: Iterable[PlanRow]) -> list[tuple[PlanRow, ...]]:
    """Rows by mini-block attempt, in the order in which each first appears."""
    groups: dict[tuple[int, int], list[PlanRow]] = {}
    for row in rows:
        groups.setdefault((row.mini_block, row.attempt), []).append(row)
    return [tuple(g) for g in groups.values()]


def _run_id(block: int, mini_block: int, transport: str, attempt: int) -> str:
    return f"b{block:02d}m{mini_block:03d}-{transport}-a{attempt}"


def _rng(seed: int, *purpose: object) -> random.Random:
    """An independent generator per purpose, so that adding a choice does not move the others."""
    return random.Random(":".join(map(str, (seed, *purpose))))  # noqa: S311 - an experiment, not a secret


def _run_seed(seed: int, mini_block: int, transport: str, attempt: int) -> int:
    return _rng(seed, "run", mini_block, transport, attempt).randrange(2**32)
