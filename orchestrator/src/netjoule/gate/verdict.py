# SPDX-License-Identifier: Apache-2.0
"""From what sessions decided to the verdict of a gate (contract gate_verdict). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from netjoule.core.errors import InvalidData, RunFailed
from netjoule.core.reason import Reason

PASS, FAIL, INCONCLUSIVE, SKIPPED = "pass", "fail", "inconclusive", "skipped"
EXIT_CODES = {PASS: 0, FAIL: 1, INCONCLUSIVE: 4, SKIPPED: 4}
OF_THE_RIG = frozenset({"rig_noisy"})
"""Reasons of a session that say nothing about the programs."""
_RANK = {PASS: 0, INCONCLUSIVE: 1, SKIPPED: 2, FAIL: 3}
_SESSION_FIELDS = (
    "blocks_max",
    "looks",
    "verdict",
    "ratio",
    "ratio_low",
    "ratio_high",
    "cells",
    "reference_log_sd",
    "head_over_reference",
    "values",
)
_RATIO = ("ratio", "ratio_low", "ratio_high")


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of the sessions of a gate.

    Attributes:
        verdict: pass, fail, inconclusive or skipped.
        reason: why it is inconclusive or skipped.
        decision: the event ``gate_decision`` whose ratio is the gate's; None where none decided.
    """

    verdict: str
    reason: Reason | None = None
    decision: Mapping[str, Any] | None = None


def worse(against_base: Judged, against_anchor: Judged | None) -> Judged:
    """The verdict of both comparisons: a head that costs more than a release is a regression, too."""
    if against_anchor is None or _RANK[against_anchor.verdict] <= _RANK[against_base.verdict]:
        return against_base
    said = against_anchor.reason.detail if against_anchor.reason else "a regression, seen in both sessions"
    reason = Reason("anchor", f"against the anchor: {said}")
    return Judged(against_anchor.verdict, reason, against_base.decision)


def judged(first: Mapping[str, Any], confirming: Mapping[str, Any] | None = None) -> Judged:
    """The verdict of the sessions' decisions: a regression is one that both saw.

    Args:
        first: event ``gate_decision`` of the first session, or its part ``anchor``.
        confirming: of the confirming one; None before it ran.
    """
    decided = first["verdict"]
    if confirming is None or decided != FAIL:
        reason = None if decided in (PASS, FAIL) else _reason_of(first)
        return Judged(decided, reason, first)
    if confirming["verdict"] == FAIL:
        return Judged(FAIL, None, confirming)
    if (confirming.get("reason") or {}).get("code") in OF_THE_RIG:
        return Judged(INCONCLUSIVE, _reason_of(confirming), confirming)
    words = f"the first session failed, and the confirming one ended with: {confirming['verdict']}"
    return Judged(INCONCLUSIVE, Reason("not_confirmed", words), confirming)


def judged_pilot(found: Mapping[str, Any], margin_percent: float) -> Judged:
    """Whether a pilot shows that its rig can decide: narrow enough, and two builds of one source alike."""
    half = found["half_width_percent"]
    if half is None:
        given = found.get("reason")
        reason = (
            _reason_of(found) if given else Reason("no_cell_left", "no cell of the workload can be compared")
        )
        return Judged(INCONCLUSIVE, reason)
    if not found["contains_0"]:
        words = f"two builds of one source differ: {100 * (found['ratio'] - 1):+.2g} %"
        return Judged(INCONCLUSIVE, Reason("pilot_biased", words), found)
    if not found["narrow_enough"]:
        words = (
            f"its half-width is {half:.2g} % after {found['blocks']} blocks, and half of the margin is"
            f" {margin_percent / 2:g} %{_better_cell(found)}"
        )
        return Judged(INCONCLUSIVE, Reason("pilot_too_wide", words), found)
    return Judged(PASS, None, found)


def _better_cell(found: Mapping[str, Any]) -> str:
    """Names the cell and window that would be decided soonest, where the pilot had several cells."""
    ranking = found.get("ranking", ())
    best = ranking[0] if ranking else None
    if best is None or best["log_ratio_sd"] is None or all(one["cell"] == best["cell"] for one in ranking):
        return "; longer windows (timing.measure_s) scatter less"
    varied = [
        name for name, value in best["cell"].items() if any(one["cell"].get(name) != value for one in ranking)
    ]
    cell = ", ".join(f"{name} {best['cell'][name]}" for name in varied)
    window = "" if best["measure_s"] is None else f" with windows of {best['measure_s']:g} s"
    scatter = f"a block scatters by {100 * best['log_ratio_sd']:.2g} %"
    return f"; {cell}{window} alone would be decided soonest ({scatter})"


@contextmanager
def no_regression_by_failure() -> Iterator[None]:
    """A command that fails in the body decides nothing: exit code 1 is a regression, and nothing else."""
    try:
        yield
    except RunFailed as error:
        raise InvalidData(error.what, where=error.where, next_step=error.next_step) from error


def session_of(role: str, campaign: str, decision: Mapping[str, Any]) -> dict[str, Any]:
    """A session as verdict.json has it."""
    return {"role": role, "campaign": campaign, **{name: decision[name] for name in _SESSION_FIELDS}}


def document(
    about: Mapping[str, Any],
    found: Judged,
    sessions: Sequence[Mapping[str, Any]],
    *,
    anchor: Mapping[str, Any] | None = None,
    pilot: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """verdict.json.

    Args:
        about: its fields that were known before: id, rig, arms, rule and the like.
        found: what came of it.
        sessions: as `session_of` has them.
        anchor: the same decision against a release.
        pilot: what a pilot found.
    """
    ratio = {name: (found.decision or {}).get(name) for name in _RATIO}
    return {
        "schema_version": 1,
        **about,
        "verdict": found.verdict,
        "exit_code": EXIT_CODES[found.verdict],
        "reason": found.reason.as_json() if found.reason else None,
        **ratio,
        "words": words(about, found),
        "sessions": list(sessions),
        "anchor": anchor,
        "pilot": pilot,
    }


def words(about: Mapping[str, Any], found: Judged) -> str:
    """The verdict in one sentence, with the numbers that it rests on."""
    seen = _seen(about, found.decision)
    if about["kind"] == "pilot" and found.verdict == PASS:
        assert found.decision is not None
        half = found.decision["half_width_percent"]
        return f"the rig can decide: half-width {half:.2g} % over {found.decision['blocks']} blocks"
    if found.verdict == PASS:
        return f"no regression: an increase of {about['margin_percent']:g} % is ruled out{seen}"
    if found.verdict == FAIL and found.reason is None:
        rose = f"{_name(about)} rose by more than {about['tolerance_percent']:g} % in both sessions"
        return f"regression: {rose}{seen}"
    assert found.reason is not None
    named = "regression" if found.verdict == FAIL else f"{found.verdict} ({found.reason.code})"
    # R ends its sentences, and what was seen goes on with this one.
    return f"{named}: {found.reason.detail.rstrip('.') if seen else found.reason.detail}{seen}"


def _seen(about: Mapping[str, Any], decision: Mapping[str, Any] | None) -> str:
    if about["kind"] == "pilot" or decision is None or decision.get("ratio") is None:
        return ""
    low, high = decision["ratio_low"], decision["ratio_high"]
    return f"; head / base {decision['ratio']:.4f} ({low:.4f} to {high:.4f}, {_blocks(decision)} blocks)"


def _blocks(decision: Mapping[str, Any]) -> int:
    return int(decision["looks"][-1]["blocks"]) if decision.get("looks") else 0


def _name(about: Mapping[str, Any]) -> str:
    names = {"energy": "energy per work", "throughput": "time per work", "cpu_time": "CPU time"}
    return names.get(about["objective"], "p99 delay")


def _reason_of(decision: Mapping[str, Any]) -> Reason:
    """Why a session decided nothing."""
    given = decision.get("reason")
    if given:
        return Reason(given["code"], given["detail"])
    blocks = f" in {decision['blocks_max']} blocks" if "blocks_max" in decision else ""
    return Reason("blocks_used_up", f"neither bound was crossed{blocks}")


def duration_s(verdict: Mapping[str, Any]) -> float:
    """From the begin of its sessions to its decision; of a document or its row in a history."""
    begin, end = (datetime.fromisoformat(verdict[name]) for name in ("created_utc", "finished_utc"))
    return (end - begin).total_seconds()
