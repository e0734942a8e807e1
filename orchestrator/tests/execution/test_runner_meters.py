# SPDX-License-Identifier: Apache-2.0
"""What the runner does about its meters: clocks before each run, frozen values, load pulses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from golden_sentences import raises
from runner_fakes import FakeTestbed, Script, new_campaign, run, workload

from netjoule.core import files
from netjoule.core.errors import RunFailed
from netjoule.loads.flow.generators import FlowSpec
from netjoule.testbeds.base import Remark

PULSES = {"rate_mbps": 60, "payload_bytes": 1440}


class Aligner:
    """Stands in for the search in the power trace: each call takes the next lag."""

    def __init__(self, *lags_s: float, confidence: float = 0.99) -> None:
        self.lags_s = list(lags_s)
        self.confidence = confidence
        self.pulses: list[int] = []

    def __call__(self, _campaign: Path, pulses: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        self.pulses.append(len(pulses))
        return [
            {
                "meter_id": "m0",
                "lag_s": self.lags_s.pop(0),
                "u_lag_s": 0.005,
                "confidence": self.confidence,
                "method": "normalised_correlation",
                "pulses": [{**pulse, "amplitude_w": 1.0} for pulse in pulses],
            }
        ]


def unsure(residual_s: float, times: int) -> Any:
    """A testbed whose client's clock is known to `residual_s` only, for the first so many looks."""
    looks = 0

    def on_up(testbed: FakeTestbed) -> None:
        async def clock_rows(t_s: float) -> Sequence[dict[str, Any]]:
            nonlocal looks
            looks += 1
            known = {"offset_s": 0.3, "drift_ppm": 1.0, "method": "control_exchange"}
            return [
                {"t_s": t_s, "host": "client", "residual_s": residual_s if looks <= times else 1e-5, **known}
            ]

        testbed.clock_rows = clock_rows  # type: ignore[method-assign]

    return on_up


def test_a_run_whose_clock_is_unsure_is_not_sent_and_is_repeated(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c", workload(offered_rate_mbps=[1])) as campaign:
        outcome, _ = run(campaign, script, on_up=unsure(1.0, times=1))
        rows = campaign.rows()
        first = files.read_json(campaign.run_dir(rows[0].run_id) / "run.json")
        clocks = files.read_table(campaign.path / "clocks.csv", "clocks")
    assert outcome.end == "complete"
    assert (rows[0].status, rows[0].reason) == ("invalid", "clock_unsure")
    assert rows[0].run_id not in script.of("go")
    assert "clock of client is known to 1" in first["reasons"][0]["detail"]
    assert len(clocks) >= len(rows) and float(clocks[0]["residual_s"]) == 1.0
    assert all(r.status == "valid" for r in rows if r.attempt == 2)


def test_a_clock_that_stays_unsure_ends_the_campaign_with_the_next_step(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign, raises(RunFailed):
        run(campaign, script, on_up=unsure(1.0, times=1000))
    assert script.of("go") == []


def test_a_clock_that_was_stepped_takes_the_run_before_with_it(tmp_path: Path) -> None:
    script = Script()
    offsets_s = [0.3, 0.3, 0.8, *[0.8] * 20]

    def on_up(testbed: FakeTestbed) -> None:
        async def clock_rows(t_s: float) -> Sequence[dict[str, Any]]:
            known = {"drift_ppm": 1.0, "residual_s": 1e-5, "method": "control_exchange"}
            return [{"t_s": t_s, "host": "client", "offset_s": offsets_s.pop(0), **known}]

        testbed.clock_rows = clock_rows  # type: ignore[method-assign]

    def on_result(run_id: str, result: dict[str, Any]) -> dict[str, Any]:
        document = files.read_json(tmp_path / "c" / "runs" / run_id / "run.json")
        return result | {"valid": document["status"] == "done", "reasons": document["reasons"]}

    script.on_result = on_result
    with new_campaign(tmp_path / "c") as campaign:
        outcome, _ = run(campaign, script, on_up=on_up)
        rows = campaign.rows()
        events = files.read_table(campaign.run_dir(rows[1].run_id) / "events.csv", "events")
    assert outcome.end == "complete"
    assert [r.run_id for r in rows if r.reason == "clock_unsure"] == [rows[1].run_id]
    assert "clock_stepped" in [e["event"] for e in events]


def test_runs_of_a_frozen_meter_do_not_count_sealed_ones_included(tmp_path: Path) -> None:
    """The meter froze during the second run; it is noticed when the third is sealed."""
    script = Script()
    seen: list[str] = []

    def on_report(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        seen.append(spec.run_id)
        now_s = script.clock.now_ns / 1e9 - 5000
        if len(seen) == 2:
            script.frozen_s = now_s  # type: ignore[attr-defined]
        if len(seen) == 3:
            since_s = script.frozen_s  # type: ignore[attr-defined]
            script.remarks.append(Remark(now_s, "meter", "meter_stuck", "m0: one value for 30 s", since_s))
        return report

    def on_result(run_id: str, result: dict[str, Any]) -> dict[str, Any]:
        """As the energy arithmetic does: the reasons of run.json decide too."""
        document = files.read_json(tmp_path / "c" / "runs" / run_id / "run.json")
        return result | {"valid": document["status"] == "done", "reasons": document["reasons"]}

    script.on_report, script.on_result = on_report, on_result
    with new_campaign(tmp_path / "c") as campaign:
        outcome, _ = run(campaign, script)
        rows = {r.run_id: r for r in campaign.rows()}
        events = files.read_table(campaign.run_dir(seen[2]) / "events.csv", "events")
    assert outcome.end == "complete"
    frozen = [r.run_id for r in rows.values() if r.reason == "meter_frozen"]
    assert sorted(frozen) == sorted([seen[1], seen[2]]) and rows[seen[0]].reason == ""
    again = {r.mini_block for r in rows.values() if r.attempt == 2}
    assert again == {rows[run_id].mini_block for run_id in frozen}
    assert any(e["event"] == "meter_stuck" for e in events)


def test_a_workload_without_pulses_sends_none(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
    assert "pulse" not in script.of("go")
    assert "alignment" not in campaign.document


def test_pulses_go_before_and_after_and_the_lag_is_recorded(tmp_path: Path) -> None:
    script, align = Script(), Aligner(0.12, 0.121)
    with new_campaign(tmp_path / "c", workload(load_pulses=PULSES)) as campaign:
        outcome, events = run(campaign, script, align)
        runs = [r.run_id for r in campaign.rows()]
    assert outcome.end == "complete"
    assert script.of("go") == ["pulse"] * 4 + runs + ["pulse"] * 4
    assert align.pulses == [1, 2]
    assert len(campaign.document["load_pulses"]) == 2
    entry = campaign.document["alignment"][0]
    assert entry["lag_s"] == 0.12, "a move within its uncertainty leaves results as they are"
    assert len(entry["pulses"]) == 2
    assert sorted(script.of("compute")) == sorted(runs), "and nothing is computed twice"
    assert [e.detail for e in events if e.kind == "sync_pulse"] == ["m0 lag 0.120 s (u 0.005 s)"] * 2


def test_a_lag_that_moved_gives_every_result_anew(tmp_path: Path) -> None:
    script, align = Script(), Aligner(0.12, 0.20)
    with new_campaign(tmp_path / "c", workload(load_pulses=PULSES)) as campaign:
        run(campaign, script, align)
        runs = [r.run_id for r in campaign.rows()]
    assert campaign.document["alignment"][0]["lag_s"] == 0.20
    assert sorted(script.of("compute")) == sorted(runs * 2)


def test_a_pulse_that_fails_does_not_stop_the_campaign(tmp_path: Path) -> None:
    script = Script()

    def on_open(spec: FlowSpec) -> None:
        if spec.run_id == "pulse":
            raise RunFailed("no server", code="generator_failed")

    script.on_open = on_open
    with new_campaign(tmp_path / "c", workload(load_pulses=PULSES)) as campaign:
        outcome, events = run(campaign, script)
    assert outcome.end == "complete" and "alignment" not in campaign.document
    assert [e.detail for e in events if e.kind == "sync_pulse"] == ["no server", "no server"]
