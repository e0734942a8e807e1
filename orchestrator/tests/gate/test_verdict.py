# SPDX-License-Identifier: Apache-2.0
"""A regression is what two sessions saw; all else that is no pass decides nothing."""

from __future__ import annotations

from typing import Any

import pytest
from gate_decisions import about, decision, pilot
from golden_sentences import same_sentence

import netjoule_contracts as contracts
from netjoule.gate import verdict
from netjoule.gate.verdict import Judged


def document(found: Judged, kind: str = "gate", **more: Any) -> dict[str, Any]:
    made = verdict.document(about(kind), found, [], **more)
    contracts.validate("gate_verdict", made)
    return made


@pytest.mark.parametrize(
    ("first", "confirming", "wanted", "code", "reason"),
    [
        ("pass", None, "pass", 0, None),
        ("fail", "fail", "fail", 1, None),
        ("fail", "pass", "inconclusive", 4, "not_confirmed"),
        ("fail", "inconclusive", "inconclusive", 4, "not_confirmed"),
        ("inconclusive", None, "inconclusive", 4, "blocks_used_up"),
    ],
)
def test_a_regression_is_what_both_sessions_saw(
    first: str, confirming: str | None, wanted: str, code: int, reason: str | None
) -> None:
    ratio = {"pass": 1.002, "fail": 1.06, "inconclusive": 1.02}
    second = None if confirming is None else decision(confirming, ratio[confirming])
    found = verdict.judged(decision(first, ratio[first]), second)
    made = document(found)
    assert (made["verdict"], made["exit_code"]) == (wanted, code)
    assert (made["reason"] or {}).get("code") == reason
    assert made["ratio"] == ratio[confirming or first]  # the confirming session's where there is one
    same_sentence(made["words"])


def test_a_session_says_itself_why_it_decided_nothing() -> None:
    reason = {"code": "no_cell_left", "detail": "every cell is below resolution"}
    found = verdict.judged(decision("inconclusive", None, reason=reason))
    made = document(found)
    assert made["reason"] == reason
    assert made["ratio"] is None


def test_a_regression_against_the_anchor_is_one() -> None:
    against = verdict.judged(decision("fail"), decision("fail"))
    made = document(verdict.worse(verdict.judged(decision()), against))
    assert (made["verdict"], made["exit_code"], made["reason"]["code"]) == ("fail", 1, "anchor")
    same_sentence(made["words"])


@pytest.mark.parametrize(
    ("numbers", "wanted", "reason"),
    [
        (pilot(), "pass", None),
        (pilot(1.6), "inconclusive", "pilot_too_wide"),
        (pilot(contains_0=False, ratio=1.02), "inconclusive", "pilot_biased"),
        (pilot(None), "inconclusive", "no_cell_left"),
        (
            pilot(
                2.5,
                ranking=[
                    {
                        "cell": {"payload_bytes": 64, "rate": 1},
                        "measure_s": 2,
                        "log_ratio_sd": 0.02,
                        "blocks_needed": 11,
                    },
                    {
                        "cell": {"payload_bytes": 1440, "rate": 1},
                        "measure_s": 2,
                        "log_ratio_sd": 0.09,
                        "blocks_needed": None,
                    },
                ],
            ),
            "inconclusive",
            "pilot_too_wide",
        ),
        # Known for good: a gate with a greater margin would take its width.
        (pilot(1.6, contains_0=False, ratio=1.05), "inconclusive", "pilot_biased"),
    ],
)
def test_a_pilot_says_whether_its_rig_can_decide(
    numbers: dict[str, Any], wanted: str, reason: str | None
) -> None:
    made = document(verdict.judged_pilot(numbers, 3.0), "pilot")
    assert (made["verdict"], (made["reason"] or {}).get("code")) == (wanted, reason)
    same_sentence(made["words"])


def test_a_pilot_without_a_cell_says_which_comes_nearest() -> None:
    reason = {"code": "no_cell_left", "detail": "each is below the meter's resolution; 64 B comes nearest"}
    found = verdict.judged_pilot(pilot(None, reason=reason), 3.0)
    assert found.reason is not None and found.reason.as_json() == reason


def test_a_pilot_of_one_cell_advises_longer_windows() -> None:
    ranking = [{"cell": {}, "measure_s": s, "log_ratio_sd": 0.05, "blocks_needed": 60} for s in (2, 1)]
    found = verdict.judged_pilot(pilot(2.5, ranking=ranking), 3.0)
    assert found.reason is not None and "longer windows" in found.reason.detail


def test_a_session_keeps_what_the_contract_has_of_it() -> None:
    session = verdict.session_of("first", "session-1", decision())
    made = verdict.document(about(), verdict.judged(decision()), [session])
    contracts.validate("gate_verdict", made)
    assert made["sessions"][0]["looks"][0]["blocks"] == 9
