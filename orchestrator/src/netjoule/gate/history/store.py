# SPDX-License-Identifier: Apache-2.0
"""Verdicts into the history, and what a gate asks it: its rig's pilot, its rig's false alarms."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select

import netjoule_contracts as contracts
from netjoule.analysis import intervals
from netjoule.core.clock import SystemClock
from netjoule.core.errors import HostLacks, InvalidData, UsageError, refused
from netjoule.core.words import counted
from netjoule.gate.history import database
from netjoule.gate.history.tables import arms, cells, gates, marks, sessions
from netjoule.gate.settings import Pilot
from netjoule.gate.verdict import FAIL, SKIPPED, duration_s
from netjoule.store.session import rfc3339

Mark = Literal["was_false", "was_missed"]
WAS_FALSE: Mark = "was_false"
WAS_MISSED: Mark = "was_missed"


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """FAILs of gates with the same base and head, with the 95 % Clopper-Pearson interval of their rate."""

    fails: int
    gates: int
    low: float
    high: float

    def __str__(self) -> str:
        """For people, without the rig."""
        if self.gates == 0:
            return "no gate with the same base and head yet"
        return (
            f"{counted(self.fails, 'false alarm')} in {counted(self.gates, 'gate')} with the same base and"
            f" head (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f} %)"
        )


def record(verdict: Mapping[str, Any], folder: Path, url: str | None = None) -> bool:
    """Put a verdict into the history, in one transaction; a second time changes nothing.

    Its folder, with all campaigns, is on disk before the row is.

    Args:
        verdict: verdict.json.
        folder: where it lies.
        url: of the history; see `database.address`.

    Returns:
        Whether it is new there.

    Raises:
        InvalidData: when it does not fit its contract.
        HostLacks: when the history, or the folder, cannot be written: 1 would be a regression.
    """
    if defects := contracts.document_defects("gate_verdict", verdict):
        raise InvalidData(defects[0], where=str(folder / "verdict.json"))
    _flush(folder.resolve())
    with database.writing(url) as connection:
        if connection.execute(select(gates.c.id).where(gates.c.id == verdict["id"])).first():
            return False
        connection.execute(insert(gates), _gate(verdict, folder.resolve()))
        _insert(connection, verdict)
    return True


def pilot_of(
    rig: str,
    fingerprint: Mapping[str, Any],
    workload: str,
    workload_version: str,
    *,
    objective: str,
    url: str | None = None,
) -> Pilot | None:
    """The latest pilot of a rig as it is now, and of a workload as it is now; none where there was none.

    Args:
        rig, workload, workload_version, objective: as in the verdict.
        fingerprint: as there; empty is what is not known before a session.
        url: of the history; see `database.address`.
    """
    same = {"kind": "pilot", "rig": rig, "workload": workload, "objective": objective}
    same["workload_version"] = workload_version
    known = {name: text for name, text in _fingerprint(fingerprint).items() if fingerprint[name]}
    asked = select(gates).filter_by(**same, **known).where(gates.c.verdict != SKIPPED)
    with database.reading(url) as connection:
        if connection is None:
            return None
        latest = asked.order_by(gates.c.finished_utc.desc(), gates.c.id.desc()).limit(1)
        row = connection.execute(latest).mappings().first()
    if row is None or row["pilot_half_width_percent"] is None:  # the meter resolved no cell
        return None
    return Pilot(
        fingerprint={
            "kernel": row["kernel"],
            "cpu_model": row["cpu_model"],
            "meters": json.loads(row["meters"]),
        },
        blocks=row["pilot_blocks"],
        block_s=duration_s(dict(row)) / row["pilot_blocks"],
        log_ratio_sd=row["pilot_log_ratio_sd"],
        half_width_percent=row["pilot_half_width_percent"],
        reference_log_sd=row["pilot_reference_log_sd"],
        biased=row["reason_code"] == "pilot_biased",
    )


def false_alarms(rig: str, url: str | None = None) -> FalseAlarms:
    """How many gates of a rig with the same base and head failed; skipped ones are none.

    Raises:
        HostLacks: as `database.reading`, and without R where there are any.
    """
    asked = select(func.count()).select_from(gates).filter_by(kind="gate", rig=rig, same_arms=True)
    with database.reading(url) as connection:
        if connection is None:
            return FalseAlarms(0, 0, 0.0, 1.0)
        all_of_them = connection.execute(asked.where(gates.c.verdict != SKIPPED)).scalar_one()
        # One that is a regression against the release alone is no false alarm.
        alarms = asked.where(gates.c.verdict == FAIL, gates.c.reason_code.is_(None))
        fails = connection.execute(alarms).scalar_one()
    return FalseAlarms(fails, all_of_them, *intervals.binomial(fails, all_of_them))


def mark(gate: str, as_what: Mark, note: str = "", url: str | None = None) -> bool:
    """Mark a verdict as wrong, by what somebody found out later; no rate counts marks.

    Returns:
        Whether it was not marked so yet.

    Raises:
        UsageError: when there is no such gate, or its verdict cannot have been wrong in this way.
    """
    _require_markable(gate, as_what, url)
    with database.writing(url) as connection:
        key = {"gate": gate, "mark": as_what}
        if connection.execute(select(marks).filter_by(**key)).first():
            return False
        now = rfc3339(SystemClock().utc_now())
        connection.execute(insert(marks), key | {"note": note, "marked_utc": now})
    return True


def _require_markable(gate: str, as_what: Mark, url: str | None) -> None:
    asked = select(gates.c.verdict).where(gates.c.id == gate)
    with database.reading(url) as connection:  # where there is no history, none is made
        verdict = None if connection is None else connection.execute(asked).scalar()
    if verdict is None:
        raise UsageError(f"the history has no gate {gate!r}", next_step="'netjoule history' lists them")
    if (verdict == "fail") != (as_what == "was_false"):
        wrong = "was no alarm" if as_what == "was_false" else "was an alarm"
        raise UsageError(f"the verdict of {gate} is '{verdict}': it {wrong}", next_step="mark another")


def listed(
    rig: str | None = None, workload: str | None = None, url: str | None = None
) -> list[dict[str, Any]]:
    """Gates and pilots, newest last, each with its ``marks``."""
    wanted = {name: value for name, value in (("rig", rig), ("workload", workload)) if value is not None}
    with database.reading(url) as connection:
        if connection is None:
            return []
        found = connection.execute(
            select(gates).filter_by(**wanted).order_by(gates.c.finished_utc, gates.c.id)
        ).mappings()
        rows = [dict(row) for row in found]
        marked: dict[str, list[str]] = {}
        for gate, as_what in connection.execute(select(marks.c.gate, marks.c.mark).order_by(marks.c.mark)):
            marked.setdefault(gate, []).append(as_what)
    return [row | {"marks": marked.get(row["id"], [])} for row in rows]


def trend_points(
    rig: str | None = None, workload: str | None = None, url: str | None = None
) -> Sequence[RowMapping]:
    """Sessions that have a ratio to their reference workload, oldest first, with what tells their series."""
    wanted = {name: value for name, value in (("rig", rig), ("workload", workload)) if value is not None}
    asked = (
        select(gates, sessions.c.head_over_reference, sessions.c.role)
        .join_from(gates, sessions)
        # The anchor's is the first session once more.
        .where(sessions.c.head_over_reference.is_not(None), sessions.c.role != "anchor")
        .order_by(gates.c.finished_utc, gates.c.id, sessions.c.place)
    )
    for name, value in wanted.items():
        asked = asked.where(gates.c[name] == value)
    with database.reading(url) as connection:
        return [] if connection is None else connection.execute(asked).mappings().all()


def _fingerprint(fingerprint: Mapping[str, Any]) -> dict[str, str]:
    """As it stands in the table of gates."""
    return {
        "kernel": fingerprint["kernel"],
        "cpu_model": fingerprint["cpu_model"],
        "meters": json.dumps(fingerprint["meters"], ensure_ascii=False),
    }


def _gate(verdict: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    plain = {name: value for name, value in verdict.items() if name in gates.c}
    reason, anchor, pilot = (verdict[name] or {} for name in ("reason", "anchor", "pilot"))
    found = ("log_ratio_sd", "half_width_percent", "blocks", "reference_log_sd")
    return plain | {
        "folder": str(folder),
        **_fingerprint(verdict["fingerprint"]),
        "reason_code": reason.get("code"),
        "reason_detail": reason.get("detail"),
        "anchor_verdict": anchor.get("verdict"),
        "anchor_ratio": anchor.get("ratio"),
        **{f"pilot_{name}": pilot.get(name) for name in found},
    }


def _insert(connection: Connection, verdict: Mapping[str, Any]) -> None:
    """What belongs to a gate."""
    gate = verdict["id"]
    if verdict["arms"]:
        connection.execute(insert(arms), [{"gate": gate, **arm} for arm in verdict["arms"]])
    for place, session in enumerate(verdict["sessions"]):
        row = {name: value for name, value in session.items() if name in sessions.c}
        last = session["looks"][-1] if session["looks"] else {}
        row |= {name: last.get(name) for name in ("blocks", "log_ratio_sd")}
        connection.execute(insert(sessions), row | {"gate": gate, "place": place})
        of_cells = [
            {"gate": gate, "session": place, "place": number, **cell, "cell": _json(cell["cell"])}
            for number, cell in enumerate(session["cells"])
        ]
        if of_cells:
            connection.execute(insert(cells), of_cells)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _flush(folder: Path) -> None:
    """All files and folders below a folder to the disk, itself after them."""
    try:
        for place, _, names in os.walk(folder, topdown=False, onerror=_raise):
            for path in (Path(place, name) for name in names):
                if stat.S_ISREG(path.lstat().st_mode):
                    _fsync(path)
            _fsync(Path(place))
        _fsync(folder.resolve().parent)
    except OSError as error:
        why = refused("flush", folder, error)
        raise HostLacks(why.what, next_step=why.next_step) from error


def _raise(error: OSError) -> None:
    raise error


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
