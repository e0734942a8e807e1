# SPDX-License-Identifier: Apache-2.0
"""Exercise 5: small files over a long path by 1 to 32 connections, and what they cost by a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from netjoule.coursework.cells import METER, CannotTell, Cells
from netjoule.coursework.exercise import WITHIN, Exercise, always
from netjoule.coursework.question import Answer, Number

_LEVELS = ("1", "2", "4", "8", "16", "32")
_ONE, _MANY, _MOST = "1", "16", "32"
_HTTP_1, _HTTP_2 = "1.1", "2"
_FITTED = "s5-seed"
_RISING_TERM = ("s5-seed-none", "s5-seed-half", _FITTED, "s5-seed-double")
_EA, _THROUGHPUT = "ea_j_per_mbit", "goodput_mbps"
_MBIT_PER_100_MB = 800
_RTT_S, _PATH_MBPS, _FILE_MBIT = 0.29, 100.0, 8e-6 * 65536
_PREDICTED_MBPS = _FILE_MBIT / (_RTT_S + _FILE_MBIT / _PATH_MBPS)
_NEAR = 0.2
_FAR_BELOW = 0.75
# What may be concluded, as two cells the first of which would take less energy.
_CONCLUSIONS = {
    "many_beat_one_over_http_1": ((_MOST, _HTTP_1), (_ONE, _HTTP_1)),
    "many_beat_one_over_http_2": ((_MOST, _HTTP_2), (_ONE, _HTTP_2)),
    "http_2_beats_http_1_with_one": ((_ONE, _HTTP_2), (_ONE, _HTTP_1)),
}


def _over_one(connections: str, http: str) -> Callable[[Cells], Number]:
    """Throughput of so many connections over that of one of HTTP/1.1."""

    def right(cells: Cells) -> Number:
        one = cells.at(_ONE, _HTTP_1, _FITTED).mean(_THROUGHPUT)
        return Number(cells.at(connections, http, _FITTED).mean(_THROUGHPUT) / one, WITHIN)

    return right


def _why_less(cells: Cells) -> frozenset[Answer]:
    """It is asked where 32 connections bring far less than 32 times one, and the path has room."""
    ratio, found = _over_one(_MOST, _HTTP_1)(cells).value, cells.at(_MOST, _HTTP_1, _FITTED).mean(_THROUGHPUT)
    if ratio > _FAR_BELOW * int(_MOST) or found > _FAR_BELOW * _PATH_MBPS:
        raise CannotTell("32 connections bring nearly 32 times one, or fill the path")
    return frozenset({"each_begins_with_round_trips"})


def _saving_percent(cells: Cells) -> Number:
    one, many = (cells.at(level, _HTTP_1, _FITTED).mean(_EA) for level in (_ONE, _MANY))
    return Number(100 * (1 - many / one), WITHIN)


def _break_point(cells: Cells) -> frozenset[Answer]:
    """The lowest level whose energy interval holds the least mean while the next brings more, as in R."""
    levels = [cells.at(level, _HTTP_1, _FITTED) for level in _LEVELS]
    least = min(cell.mean(_EA) for cell in levels)
    for cell, more in pairwise(levels):
        holds = abs(cell.mean(_EA) - least) <= cell.half_width(_EA)
        if holds and more.mean(_THROUGHPUT) > cell.mean(_THROUGHPUT):
            return frozenset({int(cell.key[0])})
    raise CannotTell("HTTP/1.1 has no break point")


def _cheaper_way(cells: Cells) -> frozenset[Answer]:
    """Of 32 files at once by either version; both without a clear difference."""
    one, many = cells.at(_ONE, _HTTP_2, _FITTED), cells.at(_MOST, _HTTP_1, _FITTED)
    if cells.dearer(many, one):
        return frozenset({"one_of_http_2"})
    return frozenset({"many_of_http_1"} if cells.dearer(one, many) else {"one_of_http_2", "many_of_http_1"})


def _hangs_on_the_term(cells: Cells) -> frozenset[Answer]:
    """The conclusion that holds clearly without the term, and not with twice it."""

    def holds(conclusion: str, meter: str) -> bool:
        less, more = (cells.at(*cell, meter) for cell in _CONCLUSIONS[conclusion])
        return cells.dearer(more, less)

    without, *_, double = _RISING_TERM
    changed = {one for one in _CONCLUSIONS if holds(one, without) and not holds(one, double)}
    if len(changed) != 1:
        raise CannotTell(f"{len(changed)} of the conclusions change with the term")
    return frozenset(changed)


def _strays(cells: Cells) -> Iterator[str]:
    one = cells.at(_ONE, _HTTP_1, _FITTED)
    found = one.mean(_THROUGHPUT)
    if abs(found / _PREDICTED_MBPS - 1) > _NEAR:
        predicted = f"a file in a round trip makes {_PREDICTED_MBPS:.3g} Mb/s"
        yield f"one connection of HTTP/1.1 brings {found:.3g} Mb/s, and {predicted}"
    for level in _LEVELS:
        cell = cells.at(level, _HTTP_1, _FITTED)
        if cell.mean(_THROUGHPUT) > (1 + WITHIN) * int(level) * _PREDICTED_MBPS:
            yield f"{level} connections of HTTP/1.1 bring more than a file each in a round trip"
    for less, more in pairwise(_RISING_TERM):
        if cells.at(_MOST, _HTTP_1, less).mean(_EA) >= cells.at(_MOST, _HTTP_1, more).mean(_EA):
            yield f"{more}, whose term in connections is greater, reads no more than {less}"


_ROW = "in tables/transfer_summary.csv, meter s5-seed, http 1.1"

TRANSFERS = Exercise(
    name="transfers",
    title="Connections over a long path",
    workload="coursework-transfers",
    testbed="testbed/topologies/transfers-s5-seed-term.yaml",
    preset="ideal-216",
    cell_factors=("http", METER),
    strays=_strays,
    told={
        "predicted_one_mbps": (
            lambda _cells: Number(_PREDICTED_MBPS, WITHIN),
            "bits of a file over the time for it: the round trip, and the file's bits at the path's rate",
        ),
        "one_mbps": (
            lambda cells: Number(cells.at(_ONE, _HTTP_1, _FITTED).mean(_THROUGHPUT), WITHIN),
            f"it is throughput_mbps {_ROW}, connections 1",
        ),
        "most_over_one_ratio": (
            _over_one(_MOST, _HTTP_1),
            f"divide throughput_mbps of connections 32 by that of 1, {_ROW}",
        ),
        "less_than_32_because": (
            _why_less,
            "how many files has each connection then, and what comes before its first? Compare what arrives "
            "with the rate of the path, and a file with the buffer",
        ),
        "one_e_d_per_100_mb_j": (
            lambda cells: Number(_MBIT_PER_100_MB * cells.at(_ONE, _HTTP_1, _FITTED).mean(_EA), WITHIN),
            f"it is e_d_per_100_mb_j {_ROW}, connections 1; E_t has idle power in it",
        ),
        "saving_percent": (
            _saving_percent,
            f"compare e_d_per_100_mb_j of connections 16 and 1, {_ROW}; the saving is a share of that of 1",
        ),
        "break_point_connections": (
            _break_point,
            "it is the row of the older HTTP with break_point true, meter s5-seed: it need not be the least",
        ),
        "http_2_over_http_1_ratio": (
            _over_one(_ONE, _HTTP_2),
            "divide throughput_mbps of http 2 by that of http 1.1, both with connections 1, meter s5-seed",
        ),
        "cheaper_way": (
            _cheaper_way,
            "compare e_d_per_100_mb_j of http 2, connections 1, with http 1.1, connections 32; meter s5-seed",
        ),
        "hangs_on_the_term": (
            _hangs_on_the_term,
            "compare each pair at the meters s5-seed-none and s5-seed-double: which order changes?",
        ),
        "term_is_measured": (
            always(False),
            "read what 'netjoule-device --model s5-seed --describe' says of its parameters",
        ),
    },
)
