# SPDX-License-Identifier: Apache-2.0
"""The runner against a world without processes: order, windows, repeats, resume, stop."""

import asyncio
import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import raises
from runner_fakes import (
    START_NS,
    FakeTestbed,
    Script,
    certificate,
    new_campaign,
    passport,
    run,
    workload,
)

from netjoule.cli.progress import progress_sink
from netjoule.core import files
from netjoule.core.console import Output
from netjoule.core.errors import InvalidData, RunFailed, UsageError
from netjoule.design import run_table
from netjoule.execution import runner
from netjoule.execution.progress import Pace
from netjoule.loads.flow.generators import FlowSpec
from netjoule.store.campaign import Campaign
from netjoule.testbeds.base import Remark


def document(campaign: Campaign, run_id: str) -> dict[str, Any]:
    return files.read_json(campaign.run_dir(run_id) / "run.json")


def events_of(campaign: Campaign, run_id: str) -> list[dict[str, str]]:
    return files.read_table(campaign.run_dir(run_id) / "events.csv", "events")


def test_a_campaign_runs_every_row_once_and_completes(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c", workload(blocks=2)) as campaign:
        outcome, events = run(campaign, script)
        rows = campaign.rows()
    assert outcome == runner.Outcome("complete", 8, 0)
    assert script.of("go") == [r.run_id for r in rows]
    assert {r.status for r in rows} == {"valid"}
    assert sorted(script.of("compute")) == sorted(r.run_id for r in rows)
    assert script.of("open") == script.of("end")
    assert campaign.document["status"] == "complete"
    assert [e.kind for e in events if e.kind in ("testbed_ready", "session_finished")] == [
        "testbed_ready",
        "session_finished",
    ]
    assert events[0].remaining_s == pytest.approx(8 * (4.1 + 2 * 0.15))
    results = [e for e in events if e.kind == "run_result"]
    assert all(e.nodes[0]["ea_j_per_mbit"] == 0.5 for e in results)


def test_what_is_left_goes_by_how_long_runs_of_a_condition_took() -> None:
    load = workload(blocks=2, offered_rate_mbps=[1], transports=["udp", "tcp", "null"])
    udp, tcp, null = sorted(run_table.expand(load, 7)[:3], key=lambda row: "udp tcp null".index(row.arm))
    pace = Pace(4.0)
    assert pace.remaining_s([udp, tcp]) == 8
    pace.ran(udp, 90)  # its warm-up runs are in it
    assert pace.remaining_s([udp, tcp]) == 180
    pace.ran(udp, 10)
    pace.ran(tcp, 50)
    assert pace.remaining_s([udp, tcp, tcp, null]) == 10 + 2 * 50 + 30


def test_what_is_left_of_a_resumed_campaign_goes_by_the_runs_before(tmp_path: Path) -> None:
    script, path = Script(), tmp_path / "c"

    def on_report(_spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if len(script.of("go")) == 4:
            raise asyncio.CancelledError  # as if the process were gone
        return report

    script.on_report = on_report
    with new_campaign(path, workload(blocks=2)) as campaign, pytest.raises(asyncio.CancelledError):
        run(campaign, script)
    script.on_report = lambda _spec, report: report
    with Campaign.open(path) as campaign:
        left = sum(row.status == "planned" for row in campaign.rows())
        _, events = run(campaign, script)
    # From the idle window before to the end of the tail: 1 + 0.6 + 2 + 0.3, guards.
    assert events[0].remaining_s == pytest.approx(left * (3.9 + 2 * 0.15), rel=0.01)


def test_neighbours_share_one_idle_window(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        windows = [document(campaign, r.run_id)["windows"] for r in campaign.rows()]
    assert len(windows) == 4
    for left, right in itertools.pairwise(windows):
        assert left["idle_after"] == right["idle_before"]
    for each in windows:
        edges = [each[w][e] for w in ("idle_before", "warm_up", "measure", "tail", "idle_after") for e in
                 ("t_start_s", "t_end_s")]  # fmt: skip
        assert edges == sorted(edges)
        assert each["idle_before"]["t_end_s"] - each["idle_before"]["t_start_s"] == pytest.approx(1.0)
        assert each["measure"]["t_end_s"] - each["measure"]["t_start_s"] == pytest.approx(2.0)
        assert each["measure"]["t_start_s"] - each["warm_up"]["t_start_s"] == pytest.approx(0.6)


def test_the_idle_window_has_a_silent_sender_on_both_sides(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        rows = campaign.rows()
        windows = {r.run_id: document(campaign, r.run_id)["windows"] for r in rows}
    opened = {run_id: t for what, run_id, t in script.log if what == "open"}
    gone = {run_id: t for what, run_id, t in script.log if what == "go"}
    ended = {run_id: t for what, run_id, t in script.log if what == "end"}
    for row in rows:
        idle = windows[row.run_id]["idle_before"]
        assert opened[row.run_id] + 0.2 <= idle["t_start_s"] + 1e-6
        # One meter update and the power's grain keep the flow out of the last idle reading.
        assert gone[row.run_id] >= idle["t_end_s"] + 0.1 + 0.05 - 1e-6
        measure, tail = windows[row.run_id]["measure"], windows[row.run_id]["tail"]
        assert tail["t_start_s"] >= measure["t_end_s"] + 0.1 + 0.05 - 1e-6
        assert ended[row.run_id] >= windows[row.run_id]["tail"]["t_end_s"] - 1e-6
    last = rows[-1].run_id
    assert ended[last] >= windows[last]["idle_after"]["t_end_s"] - 1e-6  # no neighbour: its own sockets


def test_results_are_computed_only_when_their_readings_can_be_there(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        windows = {r.run_id: document(campaign, r.run_id)["windows"] for r in campaign.rows()}
    for what, run_id, t in script.log:
        if what == "compute":  # lag 0.1 s, update 0.1 s
            assert t >= windows[run_id]["idle_after"]["t_end_s"] + 0.1 + 0.1


def test_no_computing_inside_a_window(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c", workload(blocks=2)) as campaign:
        run(campaign, script)
        spans = [s for r in campaign.rows() for s in document(campaign, r.run_id)["windows"].values()]
    computed = [t for what, _, t in script.log if what == "compute"]
    assert computed
    assert not [t for t in computed for s in spans if s["t_start_s"] < t < s["t_end_s"]]


def test_a_failed_sender_repeats_its_mini_block_at_the_end_of_the_block(tmp_path: Path) -> None:
    script = Script()
    fail = {"left": 1}

    def on_report(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if spec.transport == "udp" and fail["left"]:
            fail["left"] -= 1
            raise RunFailed("netjoule-traffic send ended with code 1: no answer", code="flow_lost_control")
        return report

    script.on_report = on_report
    with new_campaign(tmp_path / "c", workload(blocks=2)) as campaign:
        outcome, events = run(campaign, script)
        rows = campaign.rows()
        bad = next(r for r in rows if r.status == "invalid")
        failed = document(campaign, bad.run_id)
        told = events_of(campaign, bad.run_id)
    assert outcome == runner.Outcome("complete", 8, 1)
    assert (bad.arm, bad.attempt, bad.reason) == ("udp", 1, "flow_lost_control")
    assert failed["status"] == "failed"
    assert failed["reasons"][0]["code"] == "flow_lost_control"
    assert [e["code"] for e in told if e["event"] == "run_failed"] == ["flow_lost_control"]
    repeats = [r for r in rows if r.attempt == 2]
    assert {r.arm for r in repeats} == {"udp", "null"}
    assert {r.mini_block for r in repeats} == {bad.mini_block}
    assert {r.status for r in repeats} == {"valid"}
    order = script.of("go")
    first_of_block_2 = next(i for i, run_id in enumerate(order) if run_id.startswith("b02"))
    assert max(order.index(r.run_id) for r in repeats) == first_of_block_2 - 1
    again = [e for e in events if e.kind == "repeat"]
    assert [(e.row.run_id, e.detail) for e in again] == [
        (
            bad.run_id,
            "invalid (flow_lost_control: netjoule-traffic send ended with code 1: no answer), so mini-block "
            f"{bad.mini_block} does not count; all its runs are to be repeated",
        )
    ]


def test_an_invalid_result_repeats_too_and_stops_after_three_attempts(tmp_path: Path) -> None:
    script = Script()

    def on_result(run_id: str, result: dict[str, Any]) -> dict[str, Any]:
        if "-udp-" in run_id:
            why = [
                {"code": "below_resolution", "detail": "small"},
                {"code": "idle_drift", "detail": "the two differ by 2 %"},
            ]
            return result | {"valid": False, "reasons": why}
        return result

    script.on_result = on_result
    with new_campaign(tmp_path / "c", workload(offered_rate_mbps=[1])) as campaign:
        outcome, events = run(campaign, script)
        rows = campaign.rows()
        final = [document(campaign, r.run_id) for r in rows if r.arm == "udp"]
    assert [r.status for r in rows if r.arm == "udp"] == ["invalid"] * 3
    assert {r.reason for r in rows if r.arm == "udp"} == {"idle_drift"}
    assert [r.status for r in rows if r.arm == "null"] == ["superseded", "superseded", "valid"]
    assert [d["reasons"][0]["code"] for d in final] == ["idle_drift"] * 3
    assert {d["status"] for d in final} == {"invalid"}
    assert outcome == runner.Outcome("complete", 1, 3)
    again = [e.detail for e in events if e.kind == "repeat"]
    assert [d.rpartition("; ")[2] for d in again] == [
        *["all its runs are to be repeated"] * 2,
        "its attempts are used up",
    ]
    assert all("(idle_drift: the two differ by 2 %)" in detail for detail in again)


def test_progress_counts_results_and_takes_back_what_is_repeated(tmp_path: Path, capsys) -> None:
    script = Script()
    why = {"code": "idle_drift", "detail": "the two differ by 2 %"}

    def on_result(run_id: str, result: dict[str, Any]) -> dict[str, Any]:
        return result | ({"valid": False, "reasons": [why]} if run_id.endswith("udp-a1") else {})

    script.on_result = on_result
    with new_campaign(tmp_path / "c", workload(offered_rate_mbps=[1])) as campaign:
        _, events = run(campaign, script)
    with progress_sink(Output(), 2) as sink:
        for event in events:
            sink(event)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["1/2", "2/2", "0/2", "1/2", "2/2"]
    assert "to be repeated" in lines[2]
    assert [line.endswith("(0 s left)") for line in lines] == [True, False, False, True, True]
    assert {event.total for event in events} == {2}
    over = [event.done for event in events if event.kind == "run_finished"]
    assert over == [1, 2, 1, 2]
    assert (events[-1].done, events[-1].settled) == (2, 2)


def failing(keep: Callable[[FlowSpec], bool]) -> Script:
    """A world whose runs fail a pacing limit, but those that `keep` names."""
    script = Script()
    invalid: dict[str, dict[str, str]] = {}

    def on_report(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        found = certificate(passed=keep(spec))
        if not found["passed"]:
            invalid[spec.run_id] = {"code": "pacing_uncertified", "detail": found["failed"][0]}
        return report | {"pacing_certificate": found}

    def on_result(run_id: str, result: dict[str, Any]) -> dict[str, Any]:
        return result | ({"valid": False, "reasons": [invalid[run_id]]} if run_id in invalid else {})

    script.on_report, script.on_result = on_report, on_result
    return script


def test_a_pacing_limit_that_no_run_of_a_mini_block_keeps_stops_the_campaign(tmp_path: Path) -> None:
    script = failing(lambda spec: False)
    with new_campaign(tmp_path / "c", workload(blocks=2)) as campaign:
        with raises(InvalidData) as stopped:
            run(campaign, script)
        first = [row for row in campaign.rows() if row.mini_block == 1 and row.attempt == 1]
        assert script.of("go") == [row.run_id for row in first]
        assert {(row.status, row.reason) for row in first} == {("invalid", "pacing_uncertified")}
        assert {row.status for row in campaign.rows() if row not in first} == {"planned"}
        assert campaign.document["status"] == "interrupted"
    assert (stopped.value.exit_code, stopped.value.code) == (4, "pacing_uncertified")
    assert stopped.value.where == "workload fake, field flow.pacing_limits"
    assert "netjoule selftest" in stopped.value.next_step


def test_a_campaign_goes_on_while_one_run_keeps_each_limit(tmp_path: Path) -> None:
    script = failing(lambda spec: spec.transport == "udp")
    with new_campaign(tmp_path / "c", workload(blocks=1, offered_rate_mbps=[1])) as campaign:
        outcome, _ = run(campaign, script)
        assert (outcome.end, len(script.of("go"))) == ("complete", 2 * campaign.workload.max_attempts)


def test_a_busy_hour_stops_no_campaign_whose_cell_kept_its_limits_before(tmp_path: Path) -> None:
    kept = {"b01m001-udp-a1", "b01m001-null-a1"}
    script = failing(lambda spec: spec.run_id in kept)
    with new_campaign(tmp_path / "c", workload(blocks=2, offered_rate_mbps=[1])) as campaign:
        assert kept == {row.run_id for row in campaign.rows() if row.block == 1}
        outcome, _ = run(campaign, script)
        assert (outcome.end, len(script.of("go"))) == ("complete", 2 + 2 * campaign.workload.max_attempts)


def test_books_that_do_not_balance_invalidate(tmp_path: Path) -> None:
    script = Script()
    script.on_report = lambda spec, report: report | {"reconciles": spec.transport != "udp"}
    with new_campaign(tmp_path / "c", workload(offered_rate_mbps=[1])) as campaign:
        script.on_result = lambda run_id, result: (
            result
            | {
                "valid": "-udp-" not in run_id,
                "reasons": document(campaign, run_id)["reasons"],
            }
        )
        run(campaign, script)
        udp = [r for r in campaign.rows() if r.arm == "udp"]
    assert {r.reason for r in udp} == {"bookkeeping_mismatch"}


def test_five_failures_in_a_row_end_the_session_with_the_cause(tmp_path: Path) -> None:
    script = Script()

    def on_open(_spec: FlowSpec) -> None:
        raise RunFailed("cannot reach 10.79.0.1:5301", code="generator_failed")

    script.on_open = on_open
    with new_campaign(tmp_path / "c", workload(blocks=3)) as campaign:
        with raises(RunFailed):
            run(campaign, script)
        assert campaign.document["sessions"][-1]["end"] == "failed"
        assert campaign.document["status"] == "interrupted"


def test_a_dead_link_is_named_and_finished_runs_are_kept(tmp_path: Path) -> None:
    script = Script()
    beds: list[FakeTestbed] = []

    def on_report(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if len(script.of("go")) == 3 and not beds[0].death.done():
            beds[0].death.set_result(RunFailed("netjoule-link was killed by signal 9", code="link_stopped"))
            raise RunFailed("the flow broke", code="generator_failed")
        return report

    script.on_report = on_report
    with new_campaign(tmp_path / "c") as campaign:
        with raises(RunFailed) as caught:
            run(campaign, script, on_up=beds.append)
        assert caught.value.code == "link_stopped"
    assert script.of("open") == script.of("end")
    with Campaign.open(tmp_path / "c") as campaign:
        # The second run had its closing idle window, the third did not come to its end.
        statuses = [r.status for r in campaign.rows()]
        assert statuses[:2] == ["valid", "valid"]
        assert statuses[3] == "planned"


def test_resume_runs_only_what_is_missing(tmp_path: Path) -> None:
    script = Script()

    def on_report(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if len(script.of("go")) == 4:
            raise asyncio.CancelledError  # as if the process were gone
        return report

    script.on_report = on_report
    path = tmp_path / "c"
    with new_campaign(path, workload(blocks=2)) as campaign:
        with pytest.raises(asyncio.CancelledError):
            run(campaign, script)
        kept = {r.run_id for r in campaign.rows() if r.status == "valid"}
        raw = {i: (campaign.run_dir(i) / "flow.json").read_bytes() for i in kept}
    assert len(kept) == 3
    again = Script(clock=script.clock)
    with Campaign.open(path) as campaign:
        outcome, _ = run(campaign, again)
        assert outcome == runner.Outcome("complete", 8, 0)
        assert not kept & set(again.of("go"))
        assert len(again.of("go")) == 5
        fourth, fifth = (r.run_id for r in campaign.rows()[3:5])
        assert "resumed_mini_block" in [e["event"] for e in events_of(campaign, fourth)]
        assert "resumed_mini_block" not in [e["event"] for e in events_of(campaign, fifth)]
        assert {i: (campaign.run_dir(i) / "flow.json").read_bytes() for i in kept} == raw
        assert all((campaign.run_dir(r.run_id) / "result.json").exists() for r in campaign.rows())
        assert [s["session"] for s in campaign.document["sessions"]] == [1, 2]
        assert campaign.document["sessions"][1]["monotonic_origin_ns"] == START_NS


def test_resume_runs_again_what_was_deleted_or_lost_its_readings(tmp_path: Path) -> None:
    script, path = Script(), tmp_path / "c"
    with new_campaign(path, workload(blocks=2)) as campaign:
        run(campaign, script)
        ids = [row.run_id for row in campaign.rows()]
    shutil.rmtree(path / "runs" / ids[1])
    readings = path / "meters" / "m0.csv"
    lost_from_s = json.loads((path / "runs" / ids[-1] / "run.json").read_text())["windows"]["measure"][
        "t_start_s"
    ]
    lines = readings.read_text().splitlines(keepends=True)
    readings.write_text(lines[0] + "".join(x for x in lines[1:] if float(x.split(",")[0]) < lost_from_s))
    again = Script(clock=script.clock)
    with Campaign.open(path) as campaign:
        assert list(campaign.lost) == [ids[1], ids[-1]]
        outcome, _ = run(campaign, again)
        assert outcome == runner.Outcome("complete", len(ids), 0)
        assert again.of("go") == [ids[1], ids[-1]]
        assert {row.status for row in campaign.rows()} == {"valid"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_says_stopped(tmp_path: Path, number: signal.Signals) -> None:
    script = Script()

    def on_report(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if len(script.of("go")) == 2:
            os.kill(os.getpid(), number)
        return report

    script.on_report = on_report
    with new_campaign(tmp_path / "c", workload(blocks=2)) as campaign:
        outcome, _ = run(campaign, script)
        assert outcome.end == "stopped"
        assert 1 <= outcome.runs_done < 8
        assert "running" not in {r.status for r in campaign.rows()}
        assert campaign.document["sessions"][-1]["end"] == "stopped"
        assert campaign.document["status"] == "interrupted"
    assert script.of("open") == script.of("end")


def test_windows_too_short_for_the_meter_are_refused_before_the_first_packet(tmp_path: Path) -> None:
    script = Script()

    def slow(testbed: FakeTestbed) -> None:
        testbed.passports = [passport(update_interval_s=0.5, lag_s=0.5)]

    with (
        new_campaign(tmp_path / "c") as campaign,
        raises(UsageError),
    ):
        run(campaign, script, on_up=slow)
    assert script.log == []


def test_a_restarted_server_is_an_event_of_the_run(tmp_path: Path) -> None:
    script = Script(server_restarts=1)
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        first, second = (row.run_id for row in campaign.rows()[:2])
        assert "server_restarted" not in [e["event"] for e in events_of(campaign, first)]
        assert "server_restarted" in [e["event"] for e in events_of(campaign, second)]


def test_what_a_meter_says_is_an_event_of_the_run_it_fell_into(tmp_path: Path) -> None:
    script = Script(remarks=[Remark(1.25, "meter", "meter_remark", "m0: no answer for 2 s")])
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        told = [e for r in campaign.rows() for e in events_of(campaign, r.run_id) if e["source"] == "meter"]
    assert [(float(e["t_s"]), e["detail"]) for e in told] == [(1.25, "m0: no answer for 2 s")]


def test_another_instrument_is_refused_on_resume() -> None:
    first = passport()
    runner.require_same_meters([], [first])
    runner.require_same_meters([first], [first | {"accuracy": {}, "firmware": "2"}])
    with raises(UsageError):
        runner.require_same_meters([first], [first | {"identification": "OTHER"}])


def test_intervals_are_in_campaign_time(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        row = next(r for r in campaign.rows() if r.arm == "udp")
        rows = files.read_table(campaign.run_dir(row.run_id) / "intervals.csv", "intervals")
        flow = json.loads((campaign.run_dir(row.run_id) / "flow.json").read_text())
        run_document = document(campaign, row.run_id)
    assert {(r["part"], r["node"]) for r in rows} == {("1", "client")}
    starts_s = (flow["intervals"][0]["start_ns"] - START_NS) / 1e9
    assert float(rows[0]["t_start_s"]) == pytest.approx(starts_s, abs=1e-6)
    (part,) = run_document["work"]["parts"]
    assert part["t_start_s"] == pytest.approx(starts_s, abs=1e-6)


def test_clocks_are_noted_before_every_run(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c") as campaign:
        run(campaign, script)
        rows = files.read_table(campaign.path / "clocks.csv", "clocks")
    assert len(rows) == 4 + 1, "and once more after the last"
    assert {r["method"] for r in rows} == {"same_boot"}
