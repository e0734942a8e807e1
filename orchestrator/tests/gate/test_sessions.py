# SPDX-License-Identifier: Apache-2.0
"""Sessions of a gate: a fresh one confirms a FAIL, and a session that broke off is no regression."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from gate_decisions import decision, pilot
from runner_fakes import new_campaign

from netjoule.core.errors import HostLacks, InvalidData, NetjouleError, RunFailed, UsageError
from netjoule.core.reason import Reason
from netjoule.design import rig_limits
from netjoule.gate import sessions as rooms
from netjoule.gate.campaign_process import ended_badly
from netjoule.gate.sessions import Sessions


def gate(tmp_path: Path, *decides: Mapping[str, Any] | NetjouleError) -> tuple[Sessions, list[str]]:
    """Sessions that come to these decisions, and the folders that ran."""
    ran: list[str] = []

    def run(folder: Path) -> None:
        ran.append(folder.name)
        new_campaign(folder).close()
        found = decides[len(ran) - 1]
        if isinstance(found, NetjouleError):
            raise found

    def decide(_folder: Path) -> Mapping[str, Any]:
        found = decides[len(ran) - 1]
        assert not isinstance(found, NetjouleError)
        return found

    return Sessions(tmp_path, run, decide), ran


def test_a_pass_needs_one_session(tmp_path: Path) -> None:
    made, ran = gate(tmp_path, decision("pass"))
    assert made.gate().verdict == "pass"
    assert ran == ["session-1"]
    assert [one["role"] for one in made.done] == ["first"]


@pytest.mark.parametrize(("second", "wanted"), [("fail", "fail"), ("pass", "inconclusive")])
def test_a_fail_is_confirmed_in_a_fresh_session(tmp_path: Path, second: str, wanted: str) -> None:
    made, ran = gate(tmp_path, decision("fail", 1.06), decision(second, 1.05))
    assert made.gate().verdict == wanted
    assert ran == ["session-1", "session-2"]
    assert [one["role"] for one in made.done] == ["first", "confirming"]
    assert made.anchor is None


def against(verdict: str) -> dict[str, Any]:
    """What R says of the anchor."""
    ratios = {"ratio": 1.04, "ratio_low": 1.02, "ratio_high": 1.06}
    return {"anchor": {"verdict": verdict, **ratios, "words": "words"}}


@pytest.mark.parametrize(
    ("first", "second", "wanted", "sessions"),
    [
        ("pass", None, "pass", 1),
        ("inconclusive", None, "inconclusive", 1),
        ("fail", "fail", "fail", 2),
        ("fail", "pass", "inconclusive", 2),
    ],
)
def test_a_release_is_decided_against_by_the_same_rule(
    tmp_path: Path, first: str, second: str | None, wanted: str, sessions: int
) -> None:
    """The head passes against its base each time: steps of 2 % would pass for ever."""
    decides = [decision("pass", **against(one)) for one in (first, second) if one]
    made, ran = gate(tmp_path, *decides)
    found = made.gate()
    assert (found.verdict, len(ran)) == (wanted, sessions)
    assert made.anchor is not None
    assert made.anchor["verdict"] == wanted
    assert (found.reason and found.reason.code) == (None if wanted == "pass" else "anchor")


@pytest.mark.parametrize("error", [RunFailed("the meter is gone", code="meter_stopped"), InvalidData("none")])
def test_a_session_that_breaks_off_is_skipped_and_never_a_regression(
    tmp_path: Path, error: NetjouleError
) -> None:
    made, _ = gate(tmp_path, decision("fail", 1.06), error)
    found = made.gate()
    assert found.verdict == "skipped"
    assert found.reason is not None
    assert found.reason.code == (error.code or "session_failed")


@pytest.mark.parametrize("error", [UsageError("wrong"), HostLacks("no R")])
def test_what_the_user_has_to_mend_stays_an_error(tmp_path: Path, error: NetjouleError) -> None:
    made, _ = gate(tmp_path, error)
    with pytest.raises(type(error)):
        made.gate()


def test_a_noisy_rig_is_skipped(tmp_path: Path) -> None:
    reason = {"code": "rig_noisy", "detail": "the reference workload scatters more than in the pilot"}
    made, _ = gate(tmp_path, decision("inconclusive", None, reason=reason))
    found = made.gate()
    assert (found.verdict, found.reason and found.reason.code) == ("skipped", "rig_noisy")


def test_a_campaign_whose_runs_did_not_count_is_skipped_at_the_last_look_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick = Reason("gate_rig_sick", "5 of 16 runs do not count: meter")
    monkeypatch.setattr(rig_limits, "sick", lambda _rows: sick)
    made, ran = gate(tmp_path, decision("fail", 1.06))
    found = made.gate()
    assert (found.verdict, found.reason) == ("skipped", sick)
    assert ran == ["session-1"] and len(made.done) == 1


def test_a_rig_that_is_noisy_in_the_confirming_session_is_why_nothing_is_decided(tmp_path: Path) -> None:
    reason = {"code": "rig_noisy", "detail": "the reference workload scatters more than in the pilot"}
    made, _ = gate(tmp_path, decision("fail", 1.06), decision("inconclusive", None, reason=reason))
    found = made.gate()
    assert (found.verdict, found.reason and found.reason.code) == ("skipped", "rig_noisy")


def test_a_pilot_keeps_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms.decision, "pilot", lambda _folder: pilot(1.1))
    made, _ = gate(tmp_path, {})
    found, numbers = made.pilot(3.0)
    assert found.verdict == "pass"
    assert numbers["half_width_percent"] == 1.1
    assert [one["role"] for one in made.done] == ["pilot"]


def test_exit_codes_of_a_session_are_no_verdicts() -> None:
    assert isinstance(ended_badly(1, "netjoule: the link is gone"), RunFailed)
    assert isinstance(ended_badly(4, "netjoule: no run is valid"), InvalidData)
    assert isinstance(ended_badly(130, ""), RunFailed)
