# SPDX-License-Identifier: Apache-2.0
"""What several formats take out of a verdict document: the session that decided, cells, figures in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule.core.safe_text import escaped

Verdict = Mapping[str, Any]
Cell = Mapping[str, Any]

_RANK = {"more": 0, "less": 1, "left_out": 2, "no_clear_difference": 3}


def title(verdict: Verdict) -> str:
    """Which command it was."""
    return "netjoule gate" + (" --pilot" if verdict["kind"] == "pilot" else "")


def deciding(verdict: Verdict) -> Mapping[str, Any] | None:
    """The last session of head and base: its ratio is the verdict's; None where none ran."""
    of_base = [session for session in verdict["sessions"] if session["role"] != "anchor"]
    return of_base[-1] if of_base else None


def cells(verdict: Verdict) -> Sequence[Cell]:
    """Cells of the session that decided, in the workload's order."""
    session = deciding(verdict)
    return session["cells"] if session else []


def worst_first(found: Iterable[Cell]) -> list[Cell]:
    """Those that cost more first, the greatest ratio before others; then those that cost less."""
    return sorted(
        found, key=lambda cell: (_RANK[cell["verdict"]], -(cell["ratio"] or 0) * (cell["verdict"] == "more"))
    )


def blocks(session: Mapping[str, Any]) -> int:
    """Blocks that count in the last look of a session; a pilot's has none."""
    counted = [look["blocks"] for look in session["looks"][-1:]] or [c["blocks"] for c in session["cells"]]
    return max(counted, default=0)


def cell_name(cell: Mapping[str, Any], without: Mapping[str, Any] | None = None) -> str:
    """The value of each factor but some, such as ``size=64, rate=30``."""
    values = [f"{n}={_value(value)}" for n, value in cell["cell"].items() if n not in (without or {})]
    return escaped(", ".join(values)) or "all"


def in_common(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Factors that all cells have the same value of: people need not read them in each row."""
    first = found[0]["cell"] if found else {}
    return {n: value for n, value in first.items() if all(cell["cell"].get(n) == value for cell in found)}


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def percent(ratio: float | None) -> str:
    """A ratio as a change, ``+4.9 %``; empty where there is none."""
    return "" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def range_of_ratio(part: Mapping[str, Any]) -> str:
    """The interval of a ratio, ``+2.1 % to +7.8 %``; empty where there is none."""
    ends = percent(part["ratio_low"]), percent(part["ratio_high"])
    return " to ".join(ends) if all(ends) else ""


def change(cell: Cell) -> str:
    """What a cell takes more, in percent, or in watts where its ratio has no meaning."""
    return _watts(cell["difference_w"]) if cell["method"] == "p_a_difference" else percent(cell["ratio"])


def interval(cell: Cell) -> str:
    """The 95 % interval of `change`."""
    if cell["method"] != "p_a_difference":
        return range_of_ratio(cell)
    ends = _watts(cell["difference_low_w"]), _watts(cell["difference_high_w"])
    return " to ".join(ends) if all(ends) else ""


def _watts(value: float | None) -> str:
    return "" if value is None else f"{value:+.3g} W"


def is_quiet(verdict: Verdict) -> bool:
    """Whether its sentence is all that is to be told: a pass, against an anchor, too."""
    anchor = verdict["anchor"]
    return verdict["verdict"] == "pass" and (anchor is None or anchor["verdict"] == "pass")
