# SPDX-License-Identifier: Apache-2.0
"""Exercise 2: the generator floor, and what is left of E_A above it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from netjoule.analysis.intervals import differ_clearly
from netjoule.coursework.cells import CannotTell, Cells, positive_pairs
from netjoule.coursework.exercise import WITHIN, Exercise, mean_of
from netjoule.coursework.question import Answer, Number

_SMALL, _LARGE = 64, 1440
_EA, _ABOVE, _FLOOR = "ea_j_per_mbit", "ea_above_floor_j_per_mbit", "floor_w"
# A smaller floor is none: the device model at the first meter has no CPU term.
_LEAST_SHARE = 0.001


def _share(cells: Cells) -> Number:
    """floor_ratio of ea_summary.csv: mean floor over mean P_A - P_I of the runs that have a floor."""
    cell = cells.at("udp", _SMALL, 12)
    if any(run.below_resolution for run in cell.runs):
        raise CannotTell(f"runs of {cell} are below the meter's resolution")
    with_floor = [run.numbers for run in cell.runs if _FLOOR in run.numbers]
    cell.mean(_FLOOR)  # says why there is none
    added_w = fmean(numbers["delta_p_w"] for numbers in with_floor)
    return Number(fmean(numbers[_FLOOR] for numbers in with_floor) / added_w, WITHIN, 0.01)


def _quic_over_udp(cells: Cells, name: str) -> float:
    quic, udp = (cells.at(transport, _SMALL, 12).mean(name) for transport in ("quic", "udp"))
    if quic <= 0 or udp <= 0:
        raise CannotTell(f"{name} of QUIC or UDP is not above 0 at 64 B and 12 Mb/s")
    return quic / udp


def _differ_more(cells: Cells) -> frozenset[Answer]:
    """The greater difference, or both without a clear difference."""
    in_ea, above = (_times_by_block(cells, name) for name in (_EA, _ABOVE))
    pairs = [(above[block], in_ea[block]) for block in above if block in in_ea]
    if not differ_clearly(pairs):
        return frozenset({"above_floor", "in_ea"})
    more = math.prod(a / b for a, b in pairs) > 1
    return frozenset({"above_floor" if more else "in_ea"})


def _times_by_block(cells: Cells, name: str) -> dict[int, float]:
    """How many times the lesser of QUIC's and UDP's the greater is, in each block."""
    _quic_over_udp(cells, name)  # says why there is none
    quic, udp = (cells.at(transport, _SMALL, 12) for transport in ("quic", "udp"))
    return {block: max(a / b, b / a) for block, (a, b) in positive_pairs(quic, udp, name).items()}


def _grows_with(cells: Cells) -> frozenset[Answer]:
    """3 Mb/s of 64 B are fewer bits and more messages than 12 Mb/s of 1440 B."""
    many, large = (cells.at("udp", size, load) for size, load in ((_SMALL, 3), (_LARGE, 12)))
    if not differ_clearly(positive_pairs(many, large, _FLOOR).values()):
        raise CannotTell(f"the floors of {many} and {large} show no clear difference")
    more = many.mean(_FLOOR) > large.mean(_FLOOR)
    return frozenset({"messages_per_second" if more else "bits_per_second"})


def _strays(cells: Cells) -> Iterator[str]:
    cell = cells.at("udp", _SMALL, 12)
    floor_w, added_w = cell.mean(_FLOOR), cell.mean("delta_p_w")
    if not _LEAST_SHARE * added_w < floor_w < added_w:
        yield f"the floor of {cell} is {floor_w:.2g} W, not between 0 and P_A - P_I"
    if cell.mean("goodput_mbps") < 0.9 * 12:
        yield f"under 90 % of {cell} arrived"


FLOOR = Exercise(
    name="floor",
    title="The generator floor",
    workload="coursework-floor",
    testbed="",
    preset="ideal-216",
    strays=_strays,
    told={
        "floor_w": (
            mean_of("udp", _SMALL, 12, _FLOOR),
            "it is floor_w in tables/ea_summary.csv, the row of meter client-cpu, udp, 64, 12",
        ),
        "floor_share_ratio": (
            _share,
            "divide floor_w by delta_p_w of the same row; a share is a ratio from 0 to 1",
        ),
        "udp_ea_above_floor_j_per_mbit": (
            mean_of("udp", _SMALL, 12, _ABOVE),
            "it is ea_above_floor_j_per_mbit; E_A = floor_w / T_A + E_A above the floor",
        ),
        "quic_over_udp_ea_ratio": (
            lambda cells: Number(_quic_over_udp(cells, _EA), WITHIN),
            "divide ea_j_per_mbit_mean of quic by that of udp in the same cell",
        ),
        "quic_over_udp_above_floor_ratio": (
            lambda cells: Number(_quic_over_udp(cells, _ABOVE), WITHIN),
            "divide ea_above_floor_j_per_mbit of quic by that of udp in the same cell",
        ),
        "transports_differ_more": (
            _differ_more,
            "take the same from two numbers and see what becomes of their ratio",
        ),
        "floor_grows_with": (
            _grows_with,
            "compare the floors of 64 B at 3 Mb/s and 1440 B at 12 Mb/s, and count messages and bits of each",
        ),
    },
)
