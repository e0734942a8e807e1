# SPDX-License-Identifier: Apache-2.0
from datetime import UTC, datetime

import pytest
import verdict_documents as made

from netjoule.core import tables
from netjoule.gate import health

UNTIL = datetime(2026, 11, 27, tzinfo=UTC)


def row(rig: str, code: str | None, finished: str = "2026-11-26T12:00:00Z") -> dict:
    why = {"reason_code": code, "reason_detail": code and "why"}
    return {"rig": rig, "verdict": "skipped" if code else "pass", **why, "finished_utc": finished}


def test_gates_are_counted_by_rig_and_reason():
    rows = [
        row("b", "rig_noisy"),
        row("a", "idle_drift"),
        row("a", "rig_busy"),
        row("a", "idle_drift", "2026-11-26T13:00:00Z"),
        row("a", None),
        row("c", None),
        row("a", "clock_unsure", "2026-11-25T23:00:00Z"),
        row("a", "clock_unsure", "2026-11-27T00:00:01Z"),
    ]
    found = health.health(rows, UNTIL, 1)
    assert found.gates == {"a": 4, "b": 1, "c": 1}
    assert found.counts == (
        health.Count("a", "idle power", "idle_drift", 2, "2026-11-26T13:00:00Z"),
        health.Count("a", "lock", "rig_busy", 1, "2026-11-26T12:00:00Z"),
        health.Count("b", "noisy reference", "rig_noisy", 1, "2026-11-26T12:00:00Z"),
    )
    assert [one.code for one in health.health(rows, UNTIL, 2).counts if one.rig == "a"][:2] == [
        "idle_drift",
        "clock_unsure",
    ]
    assert health.as_json(found)["counts"][0]["gates"] == 2
    said = [line.split() for line in tables.lines(health.table(found), None)]
    assert ["a", "idle", "power", "idle_drift", "2", "of", "4", "2026-11-26T13:00:00Z"] in said
    assert ["c", "none", "0", "of", "1"] in said


def test_verdict_documents_are_read_as_well():
    found = health.health([made.verdict("skipped"), made.verdict("pass")], UNTIL, 1)
    assert found.gates == {"emulated": 2}
    assert [(one.code, one.gates) for one in found.counts] == [("rig_noisy", 1)]
    regression = made.verdict("fail") | {"reason": {"code": "anchor", "detail": "against the anchor"}}
    assert health.health([regression], UNTIL, 1).counts == (), "it was decided"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("idle_drift", "idle power"),
        ("clock_unsure", "clock"),
        ("meter_stopped", "meter"),
        ("rig_noisy", "noisy reference"),
        ("rig_busy", "lock"),
        ("build_failed", "building"),
        ("not_confirmed", "statistics"),
        ("no_pilot", "pilot"),
        ("something", "other"),
    ],
)
def test_error_classes(code, expected):
    assert health.error_class(code) == expected


def test_a_sick_rig_is_of_the_class_that_its_reason_ends_with():
    words = "4 of 12 runs do not count: idle power"
    assert health.error_class("gate_rig_sick", words) == "idle power"
    assert health.error_class("gate_rig_sick", "many") == "other"
