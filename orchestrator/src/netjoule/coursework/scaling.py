# SPDX-License-Identifier: Apache-2.0
"""Exercise 4: what a router that scales its rate saves, and what it takes from a flow of TCP. Simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean

from netjoule.analysis.intervals import differ_clearly
from netjoule.coursework.cells import CannotTell, Cell, Cells, positive_pairs
from netjoule.coursework.exercise import WITHIN, Exercise, always
from netjoule.coursework.question import Answer, Number

_NONE, _SHORT, _LONG = "none", "practra-10", "practra-1000"
_WAYS = (_SHORT, "practra-100", _LONG)
_NEAR, _FAR, _FAR_BURSTS = "rtt-10", "rtt-100", "rtt-100-bursts"
_PATHS = (_NEAR, _FAR, "rtt-10-bursts", _FAR_BURSTS)
_GOODPUT, _RATE, _SAVED = "goodput_mbps", "service_rate_mbps", "saving_linear_ratio"
_STATIC_RATIO = 0.5
_WITHIN_OF_A_SHARE = 0.01


def _mean(name: str) -> Callable[[Cells], Number]:
    """The mean of a quantity over the far path, without other traffic, at the least mRCI."""
    return lambda cells: Number(cells.at(_SHORT, _FAR).mean(name), WITHIN)


def _goodput_ratios(cells: Cells) -> dict[int, float]:
    """Goodput there over that without scaling, in each block."""
    pairs = positive_pairs(cells.at(_SHORT, _FAR), cells.at(_NONE, _FAR), _GOODPUT)
    if not pairs:
        raise CannotTell(f"no block has goodput of {cells.at(_SHORT, _FAR)} with and without scaling")
    return {block: scaled / without for block, (scaled, without) in pairs.items()}


def _lost_percent(cells: Cells) -> Number:
    return Number(100 * (1 - fmean(_goodput_ratios(cells).values())), WITHIN)


def _break_even(cells: Cells) -> Number:
    """P_s at which energy per megabit stays: P_s + (1 - P_s) (1 - saved) is what is left of goodput."""
    saved = cells.at(_SHORT, _FAR).mean(_SAVED)
    lost = 1 - fmean(_goodput_ratios(cells).values())
    if not 0 < lost < saved:
        raise CannotTell("energy per megabit does not fall at P_s = 0, or no goodput is lost")
    return Number(1 - lost / saved, WITHIN, _WITHIN_OF_A_SHARE)


def _energy_more_percent(cells: Cells) -> Number:
    saved = cells.at(_SHORT, _FAR).by_block(_SAVED)
    ratios = (
        (1 - (1 - _STATIC_RATIO) * saved[block]) / goodput
        for block, goodput in _goodput_ratios(cells).items()
        if block in saved
    )
    return Number(100 * (fmean(ratios) - 1), WITHIN)


def _loses_least(path: str) -> Callable[[Cells], frozenset[Answer]]:
    """Ways of scaling with the highest goodput; several without a clear difference."""
    return lambda cells: _not_apart(
        cells, path, _GOODPUT, max(_WAYS, key=lambda way: cells.at(way, path).mean(_GOODPUT))
    )


def _saves_most(cells: Cells) -> frozenset[Answer]:
    lowest = min(_WAYS, key=lambda way: cells.at(way, _NEAR).mean(_RATE))
    return _not_apart(cells, _NEAR, _RATE, lowest)


def _not_apart(cells: Cells, path: str, name: str, best: str) -> frozenset[Answer]:
    """The best of the ways, and those that show no clear difference from it."""
    first: Cell = cells.at(best, path)
    return frozenset(
        way
        for way in _WAYS
        if way == best or not differ_clearly(positive_pairs(first, cells.at(way, path), name).values())
    )


def _why_reversed(cells: Cells) -> frozenset[Answer]:
    """It is asked of a campaign in which the longest mRCI is best alone and not so with bursts."""
    if _LONG not in _loses_least(_FAR)(cells) or _LONG in _loses_least(_FAR_BURSTS)(cells):
        raise CannotTell(f"{_LONG} does not lose least alone, or it does so with bursts as well")
    return frozenset({"rate_rises_too_late"})


def _strays(cells: Cells) -> Iterator[str]:
    for path in _PATHS:
        without = cells.at(_NONE, path)
        if without.mean(_SAVED) > _WITHIN_OF_A_SHARE * WITHIN:
            yield f"{without} saves power, and it does not scale"
        for way in _WAYS:
            cell = cells.at(way, path)
            if cell.mean(_GOODPUT) > (1 + WITHIN) * cell.mean(_RATE):
                yield f"{cell} brings more than its router serves"


SCALING = Exercise(
    name="scaling",
    title="Routers that scale their rate",
    workload="coursework-scaling",
    testbed="testbed/topologies/troubled-marriage-simulated.yaml",
    preset="",
    cell_factors=("path",),
    strays=_strays,
    told={
        "far_service_rate_mbps": (
            _mean(_RATE),
            "it is service_rate_mbps in tables/router_energy.csv, the rows of practra-10 and rtt-100",
        ),
        "far_saving_ratio": (
            _mean(_SAVED),
            "it is saving_ratio in tables/router_energy.csv, practra-10, rtt-100, linear, static_ratio 0",
        ),
        "far_saving_cubic_ratio": (
            _mean("saving_cubic_ratio"),
            "the same with form cubic; the mean of cubes is not the cube of the mean",
        ),
        "far_goodput_lost_percent": (
            _lost_percent,
            "in tables/measure_contrasts.csv, t_a_mbps, practra-10, rtt-100; what is lost is above 0",
        ),
        "energy_more_percent": (
            _energy_more_percent,
            "it is energy_difference_percent in tables/router_energy.csv, linear, static_ratio 0.5",
        ),
        "break_even_static_ratio": (
            _break_even,
            "P_s + (1 - P_s) (1 - saving) over 1 - lost is 1: solve it for P_s",
        ),
        "saves_most_near": (
            _saves_most,
            "compare service_rate_mbps of the three at rtt-10: the lower, the more is saved",
        ),
        "loses_least_alone": (
            _loses_least(_FAR),
            "compare t_a_mbps of the three at rtt-100 in tables/measure_contrasts.csv",
        ),
        "loses_least_with_bursts": (
            _loses_least(_FAR_BURSTS),
            "compare t_a_mbps of the three at rtt-100-bursts",
        ),
        "long_mrci_loses_more_because": (
            _why_reversed,
            "a burst lasts a tenth of a second: how soon can the router follow, and what is lost till then?",
        ),
        "measured_on_a_router": (
            always(False),
            "read power_source and radio_source under each figure, and docs/coursework.md on the model",
        ),
    },
)
