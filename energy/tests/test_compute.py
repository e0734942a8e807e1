# SPDX-License-Identifier: Apache-2.0
"""From campaign files to result.json: closed forms, invalid runs, several meters, damaged files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import netjoule_contracts
from netjoule_contracts.types.result import Result
from netjoule_energy import CampaignError, compute_and_write, compute_run
from netjoule_energy.__main__ import main
from netjoule_energy.campaign.files import as_in_run, invalidating_codes
from netjoule_energy.campaign.series import lines_between

Build = Callable[..., Any]


def codes(result: Result) -> set[str]:
    return {reason.code for reason in result.reasons}


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def only(campaign: Any) -> Result:
    return compute_and_write(campaign.folder, campaign.run_ids[:1])[0]


def test_linear_device_meets_its_closed_form(build: Build, flow: Any) -> None:
    # 1 mJ a frame at 1000 frames/s and 5 W x 10 % air time: 1.5 W over 10 Mb/s.
    extra_w = 1e-3 * 1000 + 5.0 * 0.1
    result = only(build(flows=[flow(extra_w={"m1": extra_w})]))
    node = result.nodes[0]
    assert (result.valid, codes(result)) == (True, set())
    assert result.work.work_per_s == pytest.approx(10.0, rel=1e-9)
    assert node.energy_per_work_j == pytest.approx(extra_w / 10.0, abs=node.u95_energy_per_work_j)
    assert node.energy_per_work_j == pytest.approx(extra_w / 10.0, rel=1e-6)
    assert node.p_i_w == pytest.approx(8.0)
    assert (node.grade, node.below_resolution, node.hollow) == ("A", False, False)
    assert node.floor.reason == "no_null_run"


def test_constant_device_is_below_resolution_with_an_upper_limit(build: Build, flow: Any) -> None:
    result = only(build(flows=[flow(extra_w={"m1": 0.0})]))
    node = result.nodes[0]
    assert result.valid
    assert codes(result) == {"below_resolution"}
    assert (node.grade, node.below_resolution) == ("below_resolution", True)
    assert node.delta_p_w == pytest.approx(0.0, abs=1e-6)
    assert 0 < node.upper_limit_energy_per_work_j < 0.001


def test_negative_difference_is_empty_with_reason_and_limit(build: Build, flow: Any) -> None:
    result = only(build(flows=[flow(extra_w={"m1": -0.2})]))
    node = result.nodes[0]
    assert (node.energy_per_work_j, node.ea_reason) == (None, "below_resolution")
    assert node.delta_p_w == pytest.approx(-0.2)
    assert node.upper_limit_energy_per_work_j > 0
    assert result.valid


def test_linear_drift_is_corrected_and_a_large_one_invalidates(build: Build, meter: Any) -> None:
    result = only(build(meters=[meter(drift_w_per_s=0.005)]))
    assert result.valid
    assert result.nodes[0].energy_per_work_j == pytest.approx(0.15, rel=1e-4)
    assert result.nodes[0].u95_components.idle_drift > 0


def test_large_drift_invalidates(build: Build, meter: Any) -> None:
    result = only(build(meters=[meter(drift_w_per_s=0.1)]))
    assert not result.valid
    assert "idle_drift" in codes(result)
    assert result.nodes[0].energy_per_work_j is not None


def test_several_meters_are_assessed_apart(build: Build, meter: Any, flow: Any) -> None:
    meters = [
        meter(),
        meter(meter_id="m2", idle_w=2.2, update_interval_s=0.25, lag_s=0.0, power_source="measured"),
    ]
    result = only(build(meters=meters, flows=[flow(extra_w={"m1": 1.5, "m2": 0.4})]))
    first, second = result.nodes
    assert (first.meter_id, second.meter_id) == ("m1", "m2")
    assert second.energy_per_work_j == pytest.approx(0.04, rel=1e-3)
    assert (second.power_source, second.device_model, second.extrapolated_ratio) == ("measured", None, None)
    assert second.readings < 10
    assert second.grade == "C"


def test_a_run_has_the_device_that_its_meter_read_in_it() -> None:
    own = {"device_model": "linear-test, galaxy-s5", "device_form": None}
    device = {"model": "galaxy-s5", "form": "phone", "status": "vendor_declared", "meters": ["m1"]}
    found = as_in_run({"meter_id": "m1", **own}, {"in_force": {"path": {}, "device": device}})
    assert found == {"meter_id": "m1", "device_model": "galaxy-s5", "device_form": "phone"}
    for meter_id, run in (
        ("m2", {"in_force": {"device": device}}),
        ("m1", {"in_force": {"path": {}}}),
        ("m1", {}),
    ):
        assert as_in_run({"meter_id": meter_id, **own}, run) == {"meter_id": meter_id, **own}


def test_unknown_accuracy_caps_the_grade(build: Build, meter: Any) -> None:
    result = only(build(meters=[meter(status="unknown", reading_ratio=None, range_ratio=None)]))
    assert result.nodes[0].grade == "C"
    assert result.nodes[0].u95_components.gain == 0.0


def test_hwsim_has_no_air_time_and_no_energy_per_megabit(build: Build, flow: Any) -> None:
    result = only(build(flows=[flow(changes={"radio_source": "hwsim"})]))
    node = result.nodes[0]
    assert (node.energy_per_work_j, node.ea_reason) == (None, "radio_without_air_time")
    assert (node.u95_energy_per_work_j, node.u95_components, node.grade) == (None, None, None)
    assert node.delta_p_w == pytest.approx(1.5)
    assert "radio_without_air_time" in codes(result)


@pytest.mark.parametrize(("share", "hollow"), [(0.0, False), (0.05, False), (0.1, True)])
def test_extrapolated_share_over_five_percent_is_hollow(
    build: Build, flow: Any, share: float, hollow: bool
) -> None:
    result = only(build(flows=[flow(extrapolated=share)]))
    assert result.nodes[0].extrapolated_ratio == pytest.approx(share, abs=1e-3)
    assert result.nodes[0].hollow is hollow
    assert ("extrapolated_model" in codes(result)) is hollow
    assert result.valid


def test_bookkeeping_mismatch_invalidates(build: Build) -> None:
    campaign = build()
    path = campaign.folder / "runs" / campaign.run_ids[0] / "flow.json"
    edit(path, lambda doc: doc["receiver"].update(messages_lost=7))
    result = only(campaign)
    assert not result.valid
    assert "bookkeeping_mismatch" in codes(result)


def test_gap_in_the_readings_invalidates(build: Build) -> None:
    campaign = build()
    path = campaign.folder / "meters" / "m1.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:28] + lines[35:]))
    result = only(campaign)
    assert not result.valid
    assert "meter_gap" in codes(result)
    assert result.nodes[0].coverage < 0.9


def test_overrange_invalidates(build: Build) -> None:
    campaign = build()
    path = campaign.folder / "meters" / "m1.csv"
    lines = path.read_text().splitlines()
    lines[30] = ",".join([*lines[30].split(",")[:2], "", "", "", "overrange"])
    path.write_text("\n".join(lines) + "\n")
    result = only(campaign)
    assert "meter_overrange" in codes(result)
    assert not result.valid


def test_missing_idle_after_invalidates_and_leaves_energy_empty(build: Build) -> None:
    campaign = build()
    path = campaign.folder / "runs" / campaign.run_ids[0] / "run.json"
    edit(path, lambda doc: doc["windows"].update(idle_after=None))
    result = only(campaign)
    assert (result.valid, result.nodes[0].ea_reason) == (False, "idle_missing")
    assert result.nodes[0].p_a_w == pytest.approx(9.5)
    assert result.nodes[0].p_i_w is None
    assert result.work.u95_work_per_s > 0


def test_run_that_reached_no_measure_window_has_no_nodes(build: Build, flow: Any) -> None:
    reason = {"code": "generator_failed", "detail": "connection refused"}
    windows = dict.fromkeys(("idle_before", "warm_up", "measure", "tail", "idle_after"))
    changes = {"windows": windows, "reasons": [reason], "status": "failed", "t_first_packet_s": None}
    campaign = build(flows=[flow(changes=changes)])
    (campaign.folder / "runs" / campaign.run_ids[0] / "flow.json").unlink()
    result = only(campaign)
    assert (result.valid, result.nodes, result.window) == (False, (), None)
    assert codes(result) == {"generator_failed"}


def test_what_invalidates_is_named_first_and_a_result_computed_anew_is_the_same(
    build: Build, flow: Any
) -> None:
    held, late = {"code": "transport_held_back", "detail": ""}, {"code": "pacing_uncertified", "detail": ""}
    campaign = build(flows=[flow(changes={"reasons": [held, late], "status": "invalid"})])
    first = only(campaign)
    assert [reason.code for reason in first.reasons][:2] == ["pacing_uncertified", "transport_held_back"]
    edit(campaign.folder / "runs" / campaign.run_ids[0] / "run.json", lambda run: run["reasons"].reverse())
    assert only(campaign) == first


def test_flow_that_stops_early_is_short(build: Build) -> None:
    campaign = build()
    path = campaign.folder / "runs" / campaign.run_ids[0] / "intervals.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-8]))
    result = only(campaign)
    assert "flow_short" in codes(result)
    assert not result.valid


def test_nothing_received_leaves_energy_empty(build: Build) -> None:
    campaign = build()
    (campaign.folder / "runs" / campaign.run_ids[0] / "intervals.csv").unlink()
    result = only(campaign)
    assert (result.work.work_per_s, result.nodes[0].ea_reason, result.valid) == (
        None,
        "nothing_received",
        False,
    )


def test_written_result_fits_its_contract_and_is_the_same_again(build: Build, meter: Any) -> None:
    campaign = build(meters=[meter(sigma_w=0.02)])
    only(campaign)
    path = campaign.folder / "runs" / campaign.run_ids[0] / "result.json"
    first = path.read_bytes()
    netjoule_contracts.validate("result", json.loads(first))
    only(campaign)
    assert path.read_bytes() == first
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []


def test_noise_is_reported_and_truth_lies_within(build: Build, meter: Any) -> None:
    campaign = build(meters=[meter(sigma_w=0.02)], seed=11)
    node = compute_run(campaign.folder, campaign.run_ids[0], rng=np.random.default_rng(1)).nodes[0]
    assert node.energy_per_work_j == pytest.approx(0.15, abs=node.u95_energy_per_work_j)
    assert node.u95_components.noise > node.u95_components.gain > 0
    assert 5 <= node.effective_readings <= node.readings


INTERVALS = "end,t_start_s,t_end_s,bytes\n"


@pytest.mark.parametrize(
    ("victim", "text", "message"),
    [
        ("campaign.json", None, "campaign.json is missing"),
        ("campaign.json", '{"meters": [], "seed": "one"}', "must hold a list 'meters' and an integer 'seed'"),
        ("campaign.json", '{"meters": [{"meter_id": "../x"}], "seed": 1}', "does not fit the contract"),
        ("meters/m1.csv", None, "m1.csv is missing"),
        ("meters/m1.csv", "t_s,seq,flag\n", "lacks the column power_w"),
        ("devices/m1.ndjson", None, "m1.ndjson is missing"),
        ("runs/b01m001-udp-a1/run.json", "{}", "does not fit the contract 'run'"),
        ("runs/b01m001-udp-a1/flow.json", "[1]", "must hold a JSON object"),
        ("runs/b01m001-udp-a1/flow.json", '{"sender":', "cannot be read as JSON"),
        ("runs/b01m001-udp-a1/flow.json", '{"sender": [1]}', "sender must be an object or null"),
        ("runs/b01m001-udp-a1/intervals.csv", "end,bytes\n", "lacks the column t_start_s, t_end_s"),
        ("runs/b01m001-udp-a1/intervals.csv", INTERVALS + "receiver,0.0\n", "line 2: cells: 2, not 4"),
        ("runs/b01m001-udp-a1/intervals.csv", INTERVALS + "receiver,0,1,nan\n", "is not a finite number"),
        ("runs/b01m001-udp-a1/intervals.csv", "\udc8a\udcff", "cannot be read: line 1: not UTF-8"),
        ("meters/m1.csv", "\udc8a\udcff", "cannot be read: line 1: not UTF-8"),
        ("devices/m1.ndjson", '{"t_end_s": 3.0}\n', "does not fit the contract 'device_stream'"),
    ],
)
def test_damaged_files_are_named(
    build: Build, victim: str, text: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = build()
    path = campaign.folder / victim
    path.unlink() if text is None else path.write_text(text, errors="surrogateescape")
    with pytest.raises(CampaignError, match=message.replace(".", r"\.")):
        only(campaign)
    assert main([str(campaign.folder), campaign.run_ids[0]]) == 4
    assert message in capsys.readouterr().err


def test_run_id_cannot_leave_the_campaign(build: Build) -> None:
    with pytest.raises(CampaignError, match="is not a run id"):
        compute_and_write(build().folder, ["../../etc"])


def test_command_line_computes_all_runs(build: Build, flow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = build(flows=[flow(), flow(transport="null", extra_w={"m1": 0.5})])
    assert main([str(campaign.folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "b01m001-udp-a1  valid  m1: 0.15 +-" in lines[1]
    assert "modelled, link-model" in lines[1]
    assert all((campaign.folder / "runs" / run / "result.json").exists() for run in campaign.run_ids)


def test_command_line_names_an_empty_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 4
    assert "holds no runs" in capsys.readouterr().err


def test_reason_codes_of_this_package_are_in_the_contract() -> None:
    document = json.loads((netjoule_contracts.root() / "reasons.json").read_text())
    known = {reason["code"]: reason["invalidates"] for reason in document["reasons"]}
    invalidating = {"idle_drift", "idle_missing", "meter_gap", "meter_overrange", "bookkeeping_mismatch"}
    invalidating |= {"generator_failed", "flow_short", "nothing_received", "interrupted"}
    informing = {"below_resolution", "extrapolated_model", "radio_without_air_time", "null_has_no_throughput"}
    informing |= {"no_null_run", "null_run_invalid", "floor_achieved_low", "floor_spinning"}
    informing |= {"floor_core_busy", "floor_large", "floor_wake_ups_differ", "took_no_part"}
    assert invalidating | informing <= known.keys()
    assert invalidating <= invalidating_codes()
    assert not informing & invalidating_codes()


def test_lines_between_finds_a_stretch_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("t_s,x\n" + "".join(f"{k / 10:.6f},{k}\n" for k in range(50_000)) + "5000.0,torn")

    def time_of(line: bytes) -> float | None:
        head = line.split(b",")[0]
        return None if head == b"t_s" else float(head)

    def at(low: float, high: float) -> list[bytes]:
        return [line.split(b",")[1] for line in lines_between(path, low, high, time_of)]

    assert at(3210.0, 3210.25) == [b"32100\n", b"32101\n", b"32102\n"]
    assert at(-5.0, 0.1) == [b"0\n", b"1\n"]
    assert at(4999.8, 9999.0) == [b"49998\n", b"49999\n"]
    assert at(6000.0, 7000.0) == []
