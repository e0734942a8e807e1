# SPDX-License-Identifier: Apache-2.0
"""One session of a campaign and its clock: how campaign time goes on over a stop, a kill or a reboot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


def rfc3339(utc: datetime) -> str:
    """UTC as RFC 3339 text with milliseconds."""
    return utc.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a campaign and its clock.

    Attributes:
        session: number, from 1.
        origin_ns: CLOCK_MONOTONIC of the controller at campaign time 0 (``--origin-ns=N`` of helpers; it
            can be negative after a reboot).
        t_start_s: campaign time at which the session began.
    """

    session: int
    boot_id: str
    origin_ns: int
    t_start_s: float

    def t_s(self, monotonic_ns: int) -> float:
        """Campaign time in seconds of a CLOCK_MONOTONIC reading of the controller."""
        return (monotonic_ns - self.origin_ns) / 1e9


def begun(
    before: Sequence[Mapping[str, Any]],
    *,
    boot_id: str,
    monotonic_ns: int,
    utc: datetime,
    last_logged_s: float,
    zero: Mapping[str, Any] | None = None,
) -> tuple[Session, list[dict[str, Any]]]:
    """A new session, and all sessions as campaign.json then lists them.

    In the same boot the origin stays; after a reboot it is computed from UTC, and never so that campaign
    time would go back behind what is logged.

    Args:
        before: the sessions so far; one still called running was killed.
        boot_id: of this boot of the controller.
        monotonic_ns: CLOCK_MONOTONIC now.
        utc: UTC now.
        last_logged_s: greatest campaign time that a meter's or radio's table knows.
        zero: session of another campaign whose time this one goes by: its boot_id, monotonic_origin_ns and
            started_utc.
    """
    sessions = [{**old, "end": "killed"} if old["end"] == "running" else dict(old) for old in before]
    before_it = sessions or ([{**zero, "t_start_s": 0.0, "t_end_s": None}] if zero else [])
    origin_ns = _origin_ns(before_it, boot_id, monotonic_ns, utc, last_logged_s)
    session = Session(len(sessions) + 1, boot_id, origin_ns, (monotonic_ns - origin_ns) / 1e9)
    sessions.append(
        {
            "session": session.session,
            "boot_id": boot_id,
            "monotonic_origin_ns": origin_ns,
            "t_start_s": round(session.t_start_s, 6),
            "started_utc": rfc3339(utc),
            "t_end_s": None,
            "ended_utc": None,
            "end": "running",
        }
    )
    return session, sessions


def ended(
    before: Sequence[Mapping[str, Any]], session: Session, *, end: str, monotonic_ns: int, utc: datetime
) -> list[dict[str, Any]]:
    """All sessions with this one closed; `end` is complete, stopped or failed."""
    sessions = [dict(s) for s in before]
    t_end_s = round(session.t_s(monotonic_ns), 6)
    sessions[session.session - 1].update(t_end_s=t_end_s, ended_utc=rfc3339(utc), end=end)
    return sessions


def _origin_ns(
    sessions: Sequence[Mapping[str, Any]],
    boot_id: str,
    monotonic_ns: int,
    utc: datetime,
    last_logged_s: float,
) -> int:
    if not sessions:
        return monotonic_ns
    if sessions[-1]["boot_id"] == boot_id:
        return int(sessions[-1]["monotonic_origin_ns"])
    zero = datetime.fromisoformat(sessions[0]["started_utc"])
    known_s = max(last_logged_s, *(float(s["t_end_s"] or s["t_start_s"]) for s in sessions))
    t_now_s = max((utc - zero).total_seconds(), known_s + 1.0)
    return monotonic_ns - round(t_now_s * 1e9)
