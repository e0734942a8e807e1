# SPDX-License-Identifier: Apache-2.0
"""Intervals of ratios drawn in characters, one bar a line, all on one scale: no picture is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_HALF = 14
"""Characters on either side of no change."""
_ROUNDING = 1e-9
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_MARGINS = 5
"""The scale goes to at most so many margins; what is beyond is an arrow."""


def scale(parts: Iterable[Mapping[str, Any]], margin: float) -> float:
    """The change at either end of a bar, for intervals of these ratios and a margin."""
    ends = [abs(part[name] - 1) for part in parts for name in ("ratio_low", "ratio_high") if part[name]]
    wanted = min(max([1.5 * margin, *ends]), _MARGINS * margin)
    return next((step for step in _STEPS if step >= wanted - _ROUNDING), wanted)


def bar(part: Mapping[str, Any], margin: float, end: float) -> str:
    """An interval on a line of dots from ``-end`` to ``+end``, with no change and the margin marked."""
    line = ["·"] * (2 * _HALF + 1)
    line[_HALF], line[_place(margin, end)] = "│", "╎"
    if part["ratio_low"] is None or part["ratio_high"] is None or part["ratio"] is None:
        return "".join(line)
    low, middle, high = (part[name] - 1 for name in ("ratio_low", "ratio", "ratio_high"))
    for place in range(_place(low, end), _place(high, end) + 1):
        line[place] = {"│": "┼", "╎": "╫"}.get(line[place], "─")
    line[_place(low, end)] = "◂" if low < -end - _ROUNDING else "├"
    line[_place(high, end)] = "▸" if high > end + _ROUNDING else "┤"
    line[_place(middle, end)] = "●"
    return "".join(line)


def _place(change: float, end: float) -> int:
    return _HALF + round(_HALF * max(-end, min(change, end)) / end)
