# SPDX-License-Identifier: Apache-2.0
"""What docs/findings-capacity.md says of single runs, out of tables/router_series.csv of `capacity-series`.

`python series_figures.py CAMPAIGN` prints it. Every figure is a mean over blocks with half of its
95 % interval.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from netjoule.analysis.intervals import half_width

A_SECOND = 10
"""Steps of a second."""
BEGINS_S = 10.0
"""Slow start and what follows from it are over."""
FULL_MBPS, WASTED_MBPS, HIGHEST_MBPS = 9.8, 0.5, 10.0


class Step(NamedTuple):
    """A step of a run: its end, service rate and arrivals in Mb/s."""

    end_s: float
    rate: float
    arrived: float


Run = Sequence[Step]
Measure = Callable[[Run], float | None]


def read(campaign: Path) -> dict[tuple[str, str], list[Run]]:
    """Runs by path and way of scaling, a run for each block."""
    found: dict[tuple[str, str, int], list[Step]] = defaultdict(list)
    with (campaign / "tables/router_series.csv").open(newline="", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            of_step = (float(row[name]) for name in ("t_end_s", "mean_rate_mbps", "arrived_mbps"))
            key = (row["path"], row["arm"], int(row["block"]))
            found[key].append(Step(*of_step))
    runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for path, arm, block in sorted(found):
        runs[path, arm].append(found[path, arm, block])
    return runs


def recoveries(run: Run) -> list[Run]:
    """Steps from each loss of a flow that filled the link until a second brings over `FULL_MBPS` again."""
    found, at = [], A_SECOND
    while at < len(run):
        before = _arrivals(run[at - A_SECOND : at])
        if run[at].end_s > BEGINS_S and before > FULL_MBPS and run[at].arrived < 0.75 * before:
            full = (
                end
                for end in range(at + 1, len(run) - A_SECOND + 1)
                if _arrivals(run[end : end + A_SECOND]) > FULL_MBPS
            )
            end = next(full, None)
            if end is None:
                break
            found.append(run[at:end])
            at = end
        at += 1
    return found


def recovery_s(run: Run) -> float | None:
    """Mean length of the recoveries; None without one."""
    lengths = [of[-1].end_s - of[0].end_s + 0.1 for of in recoveries(run)]
    return fmean(lengths) if lengths else None


def wasted_in_recovery(run: Run) -> float | None:
    """Share of the recoveries in which the rate is over the arrivals, by `WASTED_MBPS` at least."""
    steps = [step for of in recoveries(run) for step in of]
    return _share(steps, _wasted) if steps else None


def highest_arrivals_mbps(run: Run) -> float:
    """Arrivals of the fullest second: the median of its steps, of which a burst fills one or two."""
    seconds = (run[at : at + A_SECOND] for at in range(0, len(run), A_SECOND))
    return max(median(step.arrived for step in second) for second in seconds if second[0].end_s > BEGINS_S)


def wasted(run: Run) -> float:
    """Share of time in which the rate is over the arrivals, by `WASTED_MBPS` at least."""
    return _share(run, _wasted)


def capped(run: Run) -> float:
    """Share of time in which arrivals fill a rate below the highest."""
    return _share(run, lambda step: step.rate < HIGHEST_MBPS and not _wasted(step))


def over_five(run: Run) -> float:
    """Share of seconds whose arrivals exceed 5 Mb/s."""
    seconds = [run[at : at + A_SECOND] for at in range(0, len(run) - A_SECOND + 1, A_SECOND)]
    return fmean(_arrivals(of) > 5.0 for of in seconds if of[0].end_s > BEGINS_S)


def _wasted(step: Step) -> bool:
    return step.rate - step.arrived >= WASTED_MBPS


def _share(steps: Run, holds: Callable[[Step], bool]) -> float:
    return fmean(holds(step) for step in steps if step.end_s > BEGINS_S)


def _arrivals(steps: Run) -> float:
    return fmean(step.arrived for step in steps)


MEASURES: tuple[Measure, ...] = (
    recovery_s,
    wasted_in_recovery,
    highest_arrivals_mbps,
    wasted,
    capped,
    over_five,
)


def over_blocks(runs: Sequence[Run], of: Measure) -> tuple[float, float, int] | None:
    """Mean over the blocks that have it, half of its 95 % interval, and how many they are."""
    values = [value for run in runs if (value := of(run)) is not None]
    return (fmean(values), half_width(values), len(values)) if len(values) > 1 else None


if __name__ == "__main__":
    for (path, arm), runs in read(Path(sys.argv[1])).items():
        for of in MEASURES:
            if told := over_blocks(runs, of):
                print(
                    f"{path:<15} {arm:<13} {of.__name__:<22} {told[0]:.3f} ± {told[1]:.3f}, {told[2]} blocks"
                )
