# SPDX-License-Identifier: Apache-2.0
"""Change points in what gates measured over weeks, found by apache-otava. They warn; they decide nothing.

A series is the head's ratio to the reference workload of its own session, which removes the rig's own drift:
one per rig, kernel, CPU, meters with their ranges, workload version and objective.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from netjoule.core.errors import HostLacks
from netjoule.gate.history import store

MAX_P = 1e-5
LEAST_RUNS = 3
"""Runs that lie between changes at least; fewer stand out, and are looked past."""
LATEST = 100
"""Runs that are looked at."""
_WINDOW = 50
_SAME = 10
"""Runs by which the place of a change may move as more runs come."""
_KEY = (
    "rig",
    "kernel",
    "cpu_model",
    "meters",
    "power_source",
    "workload",
    "workload_version",
    "objective",
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change point.

    Attributes:
        place: of the first run after it, from 0.
        percent: mean after it against the mean before, to the next changes.
    """

    place: int
    percent: float


@dataclass(frozen=True)
class Series:
    """Sessions that can be held against each other, oldest first.

    Attributes:
        key: what they have in common, by column of the history's gates.
        margin_percent: of the newest gate.
        points: rows with ``id``, ``finished_utc``, ``verdict`` and ``head_over_reference``.
    """

    key: dict[str, str]
    margin_percent: float
    points: Sequence[dict[str, Any]]

    @property
    def name(self) -> str:
        """For people: rig, workload and what else may tell two series apart."""
        key = self.key
        meters = ", ".join(json.loads(key["meters"])) or "no meter"
        return (
            f"{key['workload']} {key['workload_version']} ({key['objective']}) on {key['rig']}: {meters},"
            f" kernel {key['kernel']}, {key['cpu_model']}"
        )

    @cached_property
    def values(self) -> list[float]:
        """Ratios to the reference workload."""
        return [float(point["head_over_reference"]) for point in self.points]

    @cached_property
    def changes(self) -> list[Change]:
        """Change points; see `changes_in`."""
        return changes_in(self.values, self.margin_percent)


def series_of(rig: str | None = None, workload: str | None = None, url: str | None = None) -> list[Series]:
    """All series of the history, or of a rig or a workload; each ends with its newest session."""
    by_key: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in store.trend_points(rig, workload, url):
        by_key.setdefault(tuple(row[name] for name in _KEY), []).append(dict(row))
    return [
        Series(dict(zip(_KEY, key, strict=True)), points[-1]["margin_percent"], points)
        for key, points in by_key.items()
    ]


def changes_in(values: Sequence[float], margin_percent: float) -> list[Change]:
    """Lasting changes, in both directions, of more than the margin among the latest runs.

    Raises:
        HostLacks: without apache-otava.
    """
    require()
    runs = list(range(max(0, len(values) - LATEST), len(values)))
    while True:
        found = _found(tuple(float(values[run]) for run in runs), margin_percent)
        ends = [0, *(place for place, _ in found), len(runs)]
        short = [range(*part) for part in pairwise(ends) if part[1] - part[0] < LEAST_RUNS]
        if not found or not short:
            return [Change(runs[place], percent) for place, percent in found]
        runs = [run for place, run in enumerate(runs) if not any(place in part for part in short)]


@lru_cache(2 * LATEST)
def _found(latest: tuple[float, ...], margin_percent: float) -> list[tuple[int, float]]:
    """What otava says: places and percents."""
    try:
        from otava.analysis import compute_change_points
    except ImportError as error:
        step = "install it as 'netjoule history --trend' says where it is missing"
        raise HostLacks(f"apache-otava does not start: {error}", next_step=step) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of equal values
        found, _ = compute_change_points(  # of a list: it fails at some arrays
            list(latest), window_len=_WINDOW, max_pvalue=MAX_P, min_magnitude=margin_percent / 100
        )
    return [(int(one.index), float(one.stats.forward_change_percent())) for one in found]


def new_changes(values: Sequence[float], margin_percent: float) -> list[Change]:
    """Changes that the newest run brought to light: found after none of the runs before it."""
    found = changes_in(values, margin_percent)
    if not found:
        return []
    earlier = range(max(0, len(values) - LATEST), len(values))
    known = [one.place for end in earlier for one in changes_in(values[:end], margin_percent)]
    return [one for one in found if all(abs(one.place - place) > _SAME for place in known)]


def warnings_of(gate: str, url: str | None = None) -> Iterator[str]:
    """A sentence for each change that a gate, the newest of its series, brought to light.

    Raises:
        HostLacks: without apache-otava.
    """
    require()
    for series in series_of(url=url):
        if series.points[-1]["id"] == gate:
            for change in new_changes(series.values, series.margin_percent):
                yield f"trend, which decides nothing: {sentence(series, change)}"


def sentence(series: Series, change: Change) -> str:
    """What a change says, for people."""
    since = series.points[change.place]
    more = "more" if change.percent > 0 else "less"
    return (
        f"since {since['id']} ({since['finished_utc'][:10]}) it takes {abs(change.percent):.2g} % {more} than"
        f" before, against its reference workload: {series.name}"
    )


def is_there() -> bool:
    """Whether apache-otava is installed."""
    return importlib.util.find_spec("otava") is not None


def require() -> None:
    """Refuse without apache-otava.

    Raises:
        HostLacks: saying how to get it.
    """
    if not is_there():
        raise HostLacks(
            "change points are found by the Python package apache-otava, which is not installed",
            next_step="pip install --no-deps --require-hashes -r scripts/requirements-trend.txt",
        )
