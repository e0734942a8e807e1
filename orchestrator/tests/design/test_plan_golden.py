# SPDX-License-Identifier: Apache-2.0
"""A workload with a seed gives the same order of runs for ever: campaigns of one name stay comparable.

`data/plans.json` holds a digest of every shipped workload's plan, and of one with repeats, as version 0.1
made them; `data/workloads-1` holds these workloads as they were written then.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from netjoule import loads
from netjoule.design.run_table import PlanRow, expand, with_repeats

DATA = Path(__file__).parents[1] / "data"
DIGESTS = json.loads((DATA / "plans.json").read_text(encoding="utf-8"))
OLD = DATA / "workloads-1"
SHIPPED = Path(__file__).parents[3] / "workloads/flow"
SEEDS = (1, 987654321)


def cells(row: PlanRow) -> list[object]:
    """What a run is, in the order in which plan.csv of version 0.1 had it."""
    where = [row.run_id, row.block, row.mini_block, row.order, row.attempt]
    what = [row.cell[name] for name in ("payload_bytes", "offered_rate_mbps", "direction")]
    paced = [row.cell[name] for name in ("pacing", "window_us", "gso")]
    # Every shipped workload had the generator that is the default.
    return [*where, row.arm, *what, "netjoule-traffic", row.seed, *paced]


def digest(rows: Iterable[PlanRow]) -> str:
    """Of a plan, row by row."""
    text = "\n".join(json.dumps(cells(row), separators=(",", ":")) for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()


def repeated(rows: tuple[PlanRow, ...], seed: int) -> tuple[PlanRow, ...]:
    """The plan when the first run is invalid, twice."""
    for _ in range(2):
        last = max(row.attempt for row in rows if row.mini_block == 1)
        rows = tuple(
            replace(row, status="invalid" if row.order == 1 else "valid")
            if (row.mini_block, row.attempt) == (1, last)
            else row
            for row in rows
        )
        rows = with_repeats(rows, seed, 3)
    return rows


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", sorted(path.stem for path in OLD.glob("*.yaml")))
@pytest.mark.parametrize("folder", [OLD, SHIPPED], ids=["old", "shipped"])
def test_the_order_of_runs_is_that_of_version_0_1(folder: Path, name: str, seed: int) -> None:
    rows = expand(loads.read(folder / f"{name}.yaml"), seed)
    wanted = DIGESTS[name][str(seed)]
    found = {"runs": len(rows), "plan": digest(rows), "repeats": digest(repeated(rows, seed))}
    assert found == wanted


def test_every_shipped_workload_is_compared() -> None:
    since = {
        "gate",
        "capacity-alone",
        "capacity-both",
        "capacity-live",
        "capacity-series",
        "coursework-scaling",
        "capacity-bursts",
        "capacity-dccp",
        "capacity-flows",
        "capacity-sensitivity",
        "capacity-two",
        "capacity-undelayed",
        "capacity-varying",
    }  # version 0.1 did not have them
    assert set(DIGESTS) | since == {path.stem for path in SHIPPED.glob("*.yaml")}
