# SPDX-License-Identifier: Apache-2.0
"""Exercise 1: the energy envelope of three transports over two message sizes."""

from __future__ import annotations

from collections.abc import Iterator

from netjoule.coursework.cells import CannotTell, Cell, Cells
from netjoule.coursework.exercise import WITHIN, Exercise, always, mean_of
from netjoule.coursework.question import Answer, Number

_TRANSPORTS = ("udp", "tcp", "quic")
_LOADS_MBPS = (6.0, 12.0, 24.0)
_SMALL, _LARGE = 64, 1440
_EA = "ea_j_per_mbit"


def _half_width(cells: Cells) -> Number:
    # A half-width has fewer digits that count than a mean has.
    return Number(cells.at("udp", _SMALL, 12).half_width(_EA), 0.05)


def _width(cells: Cells) -> Number:
    """Greatest over least E_A across the sizes of the band."""
    means = [cells.at("udp", size, 12).mean(_EA) for size in (_SMALL, _LARGE)]
    if min(means) <= 0:
        raise CannotTell("E_A of UDP at 12 Mb/s is not above 0")
    return Number(max(means) / min(means), WITHIN)


def _dearest(cells: Cells) -> frozenset[Answer]:
    """The dearest transport, and those that show no clear difference from it in the campaign."""
    found: dict[str, Cell] = {name: cells.at(name, _SMALL, 6) for name in _TRANSPORTS}
    top = max(found, key=lambda name: found[name].mean(_EA))
    return frozenset(name for name in found if not cells.dearer(found[top], found[name]))


def _strays(cells: Cells) -> Iterator[str]:
    for load in _LOADS_MBPS:
        small, large = (cells.at("udp", size, load) for size in (_SMALL, _LARGE))
        if not 0 < large.mean(_EA) < small.mean(_EA):
            yield f"E_A of UDP at {load:g} Mb/s is not positive and least at {_LARGE} B"
        for cell in (small, large):
            if cell.mean("goodput_mbps") < 0.9 * load:
                yield f"under 90 % of {cell} arrived"


ENVELOPE = Exercise(
    name="envelope",
    title="The energy envelope",
    workload="coursework-envelope",
    testbed="",
    preset="ideal-216",
    strays=_strays,
    told={
        "least_ea_payload_bytes": (
            always(_LARGE),  # any other campaign strays
            "compare ea_j_per_mbit_mean of both sizes at one load, and count the messages of a megabit",
        ),
        "udp_ea_j_per_mbit": (
            mean_of("udp", _SMALL, 12, _EA),
            "it is ea_j_per_mbit_mean in tables/ea_summary.csv, the row of meter client-cpu, udp, 64, 12",
        ),
        "udp_ea_half_width_j_per_mbit": (
            _half_width,
            "the interval reaches from ea_ci95_low to ea_ci95_high; u95_meter is something else",
        ),
        "udp_envelope_ratio": (
            _width,
            "tables/envelope.csv has ea_least_j_per_mbit and ea_greatest_j_per_mbit for each load",
        ),
        "dearest_transport": (
            _dearest,
            "compare ea_j_per_mbit_mean of the three there; without a clear difference either is right",
        ),
        "holds_for_a_real_laptop": (
            always(False),
            "read power_source and radio_source under each figure, and docs/coursework.md on the model",
        ),
    },
)
