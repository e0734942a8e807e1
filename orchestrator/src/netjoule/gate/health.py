# SPDX-License-Identifier: Apache-2.0
"""How the rigs are: why gates of the last days decided nothing, counted by rig, error class and reason. Pure.

A report of its own, so that a sick rig is seen before anybody blames a change for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from netjoule.core.tables import Column, Table
from netjoule.core.words import counted
from netjoule.design import rig_limits
from netjoule.gate.verdict import FAIL

_CLASSES: Mapping[str, str] = {
    "rig_noisy": "noisy reference",
    "rig_busy": "lock",
    "build_failed": "building",
    "session_failed": "session",
    **dict.fromkeys(("no_pilot", "unlike_pilot", "pilot_too_wide", "pilot_biased"), "pilot"),
    **dict.fromkeys(("not_confirmed", "blocks_used_up", "no_cell_left"), "statistics"),
}
"""Classes of a gate's own reasons; those of runs have theirs in `rig_limits`."""
_SICK = "gate_rig_sick"


@dataclass(frozen=True, slots=True)
class Count:
    """How often a rig had a reason.

    Attributes:
        rig: its name.
        error_class: of the reason.
        code: the reason.
        gates: that ended by it.
        last_utc: when the last of them did.
    """

    rig: str
    error_class: str
    code: str
    gates: int
    last_utc: str


@dataclass(frozen=True, slots=True)
class Health:
    """The report.

    Attributes:
        days: that it is of.
        gates: all gates and pilots by rig.
        counts: those that decided nothing; of each rig the most frequent reason first.
    """

    days: int
    gates: Mapping[str, int]
    counts: tuple[Count, ...]


def error_class(code: str, detail: str = "") -> str:
    """The class of a reason; ``statistics`` of what is no error, ``other`` of an unknown one.

    Args:
        code: of the reason.
        detail: of the reason; that of a sick rig ends with the class.
    """
    named = detail.rpartition(": ")[2]
    if code == _SICK and named in rig_limits.CLASSES.values():
        return named
    return _CLASSES.get(code) or rig_limits.error_class(code) or "other"


def health(rows: Iterable[Mapping[str, Any]], until: datetime, days: int) -> Health:
    """Count what the gates of some days ended by.

    Args:
        rows: verdict documents, or rows of the history's table `gates`.
        until: end of the last day, with its time zone.
        days: how many.
    """
    gates: dict[str, int] = defaultdict(int)
    ends: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in rows:
        if not until - timedelta(days=days) < datetime.fromisoformat(row["finished_utc"]) <= until:
            continue
        gates[row["rig"]] += 1
        reason = _reason(row)
        if reason and row["verdict"] != FAIL:
            ends[row["rig"], error_class(*reason), reason[0]].append(row["finished_utc"])
    counts = [Count(*named, len(utc), max(utc)) for named, utc in ends.items()]
    counts.sort(key=lambda count: (count.rig, -count.gates, count.code))
    return Health(days, dict(sorted(gates.items())), tuple(counts))


def _reason(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Code and detail of why nothing was decided, of a document or of a row."""
    if "reason_code" in row:
        return (row["reason_code"], row["reason_detail"] or "") if row["reason_code"] else None
    return (row["reason"]["code"], row["reason"]["detail"]) if row["reason"] else None


def as_json(found: Health) -> dict[str, Any]:
    """The report for machines."""
    return {"days": found.days, "gates": dict(found.gates), "counts": [asdict(one) for one in found.counts]}


def table(found: Health) -> Table:
    """The report for people; a rig without any reason has a row, too."""
    rows = []
    for rig, gates in found.gates.items():
        of_rig = [one for one in found.counts if one.rig == rig]
        rows += [
            [one.rig, one.error_class, one.code, f"{one.gates} of {gates}", one.last_utc] for one in of_rig
        ] or [[rig, "none", "", f"0 of {gates}", ""]]
    return Table(
        [
            Column("rig", right=False, key=True),
            Column("error class", right=False),
            Column("reason", right=False),
            Column("gates"),
            Column("last", right=False),
        ],
        rows,
        title=f"Gates of the last {counted(found.days, 'day')} that decided nothing",
        caption="statistics: the rig was fit, and the data showed neither.",
    )
