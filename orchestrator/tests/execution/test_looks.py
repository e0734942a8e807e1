# SPDX-License-Identifier: Apache-2.0
"""A gate's campaign ends at the first planned look that decides; what is left is not needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import raises
from runner_fakes import TIMING, Script, new_campaign, run

from netjoule import loads
from netjoule.core.errors import RunFailed, UsageError
from netjoule.core.reason import Reason
from netjoule.design import rig_limits, run_table
from netjoule.store.campaign import Campaign
from netjoule.validation.check import unfinished
from netjoule.workload.workload import Workload

GATE = {
    "head": "tcp",
    "base": "udp",
    "objective": "energy",
    "margin_percent": 3,
    "tolerance_percent": 1,
    "looks": [4, 5, 7],
}


def gated(**changes: Any) -> Workload:
    document = {
        "schema_version": 2,
        "name": "gated",
        "load": "flow",
        "control": False,
        "factors": {"transport": ["udp", "tcp"], "payload_bytes": 1440, "offered_rate_mbps": 1},
        "blocks": 7,
        "timing": TIMING,
        "seed": 7,
        "gate": GATE,
    }
    return loads.made(document | changes, where="test")


def seen(*decides: str) -> tuple[list[int], Callable[[Path], Reason]]:
    """Blocks at which it was asked, and what says each of these in its turn."""
    asked: list[int] = []

    def look(path: Path) -> Reason:
        asked.append(run_table.blocks_done(Campaign.read(path).rows()))
        return Reason(decides[len(asked) - 1], "words")

    return asked, look


def statuses(campaign: Campaign) -> dict[int, set[str]]:
    return {
        block: {row.status for row in campaign.rows() if row.block == block}
        for block in {row.block for row in campaign.rows()}
    }


def test_the_first_look_that_decides_ends_the_campaign(tmp_path: Path) -> None:
    asked, look = seen("", "gate_fail")
    script = Script()
    with new_campaign(tmp_path / "c", gated()) as campaign:
        outcome, events = run(campaign, script, look=look)
        found = statuses(campaign)
    assert asked == [4, 5]
    assert (outcome.end, outcome.runs_done) == ("complete", 10)
    assert found == {block: {"valid" if block <= 5 else "not_needed"} for block in range(1, 8)}
    assert len(script.of("go")) == 10
    assert [event.detail for event in events if event.kind == "look"] == ["words", "words"]
    assert campaign.document["status"] == "complete"
    read = Campaign.read(tmp_path / "c")
    assert {row.reason for row in read.rows() if row.status == "not_needed"} == {"gate_fail"}
    assert unfinished(tmp_path / "c") == ""
    with Campaign.open(tmp_path / "c") as again:  # runs that are not needed have lost nothing
        assert again.lost == {}
        assert again.next_mini_block() is None


def test_no_look_before_the_last_block_decides_nothing_early(tmp_path: Path) -> None:
    asked, look = seen("", "")
    with new_campaign(tmp_path / "c", gated()) as campaign:
        outcome, _ = run(campaign, Script(), look=look)
    assert asked == [4, 5]  # the last is asked by who reads the whole campaign
    assert outcome.runs_done == 14


def test_repeats_belong_to_the_block_before_its_look(tmp_path: Path) -> None:
    asked, look = seen("gate_pass")
    script = Script()
    spoilt = []

    def on_result(run_id: str, result: dict[str, Any]) -> dict[str, Any]:
        if not spoilt and script.of("compute").count(run_id) and len(script.of("go")) >= 7:
            spoilt.append(run_id)
            return result | {"valid": False, "reasons": [{"code": "idle_drift", "detail": "2 %"}]}
        return result

    script.on_result = on_result
    with new_campaign(tmp_path / "c", gated()) as campaign:
        run(campaign, script, look=look)
        rows = campaign.rows()
    assert asked == [4]
    assert spoilt
    assert [row.status for row in rows if row.attempt == 2] == ["valid", "valid"]
    assert len(script.of("go")) == 10


def test_a_session_that_was_killed_at_a_look_takes_it_when_it_goes_on(tmp_path: Path) -> None:
    def no_answer(_path: Path) -> Reason:
        raise RunFailed("R did not answer")

    script = Script()
    with new_campaign(tmp_path / "c", gated()) as campaign, pytest.raises(RunFailed):
        run(campaign, script, look=no_answer)
    assert len(script.of("go")) == 8
    asked, look = seen("gate_pass")
    again = Script(clock=script.clock)
    with Campaign.open(tmp_path / "c") as campaign:
        outcome, _ = run(campaign, again, look=look)
    assert (asked, again.of("go"), outcome.end) == ([4], [], "complete")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"head": "quic"}, "gate.head"),
        ({"base": "tcp"}, "gate.base"),
        ({"looks": [4, 6]}, "gate.looks"),
        ({"looks": [5, 4, 7]}, "gate.looks"),
        ({"tolerance_percent": 3}, "gate.tolerance_percent"),
        ({"reference": "udp", "pilot_blocks": 12}, "gate"),
    ],
)
def test_a_gate_that_does_not_fit_its_workload_is_refused(change: dict[str, Any], field: str) -> None:
    with raises(UsageError) as error:
        gated(gate=GATE | change)
    assert f"field {field}" in error.value.where


def test_a_rig_whose_runs_do_not_count_is_sick(tmp_path: Path) -> None:
    rows = new_campaign(tmp_path / "c", gated()).rows()

    def with_invalid(number: int, reason: str) -> list[run_table.PlanRow]:
        return [
            replace(row, status="invalid", reason=reason) if place < number else replace(row, status="valid")
            for place, row in enumerate(rows[:12])
        ]

    assert rig_limits.sick(with_invalid(3, "idle_drift")) is None
    found = rig_limits.sick(with_invalid(4, "idle_drift"))
    assert found is not None
    assert found.code == "gate_rig_sick"
    assert "idle" in found.detail
    assert rig_limits.sick(with_invalid(12, "command_failed")) is None  # the fault of what it runs
    assert rig_limits.sick(with_invalid(4, "meter_gap")[:7]) is None
