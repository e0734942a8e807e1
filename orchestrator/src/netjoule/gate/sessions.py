# SPDX-License-Identifier: Apache-2.0
"""The sessions of a gate, one after the other: each a campaign with processes and seed of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule.analysis import decision
from netjoule.core.errors import InvalidData, RunFailed
from netjoule.core.reason import Reason
from netjoule.design import rig_limits
from netjoule.gate import verdict
from netjoule.gate.verdict import FAIL, INCONCLUSIVE, SKIPPED, Judged
from netjoule.store.campaign import Campaign

Run = Callable[[Path], None]
"""Runs a session's campaign in a new folder to its end. Raises NetjouleError when it cannot."""


@dataclass
class Sessions:
    """What sessions of a gate came to.

    Attributes:
        folder: of the gate.
        run: runs one.
        done: sessions as verdict.json has them.
        anchor: what was decided against a release.
    """

    folder: Path
    run: Run
    decide: Callable[[Path], Mapping[str, Any]] = decision.decision
    done: list[dict[str, Any]] = field(default_factory=list)
    anchor: Mapping[str, Any] | None = None

    def gate(self) -> Judged:
        """Decide: a FAIL is called a regression only when a fresh session confirms it."""
        first = self._session("first")
        if isinstance(first, Judged):
            return first
        found = self._both(first, None)
        if found.verdict != FAIL:
            return _of_rig(found)
        confirming = self._session("confirming")
        return confirming if isinstance(confirming, Judged) else _of_rig(self._both(first, confirming))

    def _both(self, first: Mapping[str, Any], confirming: Mapping[str, Any] | None) -> Judged:
        """Against the base, and against the anchor where there is one; the worse of both."""
        found = verdict.judged(first, confirming)
        if not first.get("anchor"):
            return found
        second = None if confirming is None else confirming["anchor"]
        against = verdict.judged(first["anchor"], second)
        told = second or first["anchor"]
        words = told["words"] if against.reason is None else against.reason.detail
        self.anchor = {**told, "verdict": against.verdict, "words": words}
        return verdict.worse(found, against)

    def pilot(self, margin_percent: float) -> tuple[Judged, Mapping[str, Any]]:
        """Run a pilot; what came of it, and its numbers."""
        found: dict[str, Any] = {}

        def decided(folder: Path) -> Mapping[str, Any]:
            found.update(decision.pilot(folder))
            return found

        self.decide = decided
        session = self._session("pilot")
        judged = session if isinstance(session, Judged) else verdict.judged_pilot(found, margin_percent)
        return judged, found

    def _session(self, role: str) -> Mapping[str, Any] | Judged:
        """Run a session; its decision, or why there is none."""
        campaign = self.folder / f"session-{len(self.done) + 1}"
        try:
            self.run(campaign)
            found = self.decide(campaign)
        except (RunFailed, InvalidData) as error:
            return Judged(SKIPPED, Reason(error.code or "session_failed", str(error)))
        self.done.append(verdict.session_of(role, campaign.name, found))
        return _sick(campaign) or found


def _sick(campaign: Path) -> Judged | None:
    """Of a campaign too many of whose runs did not count, at whichever look."""
    why = rig_limits.sick(Campaign.read(campaign).rows())
    return Judged(SKIPPED, why) if why else None


def _of_rig(found: Judged) -> Judged:
    """The same; skipped where the rig is why nothing was decided."""
    if found.verdict == INCONCLUSIVE and found.reason and found.reason.code in verdict.OF_THE_RIG:
        return Judged(SKIPPED, found.reason, found.decision)
    return found
