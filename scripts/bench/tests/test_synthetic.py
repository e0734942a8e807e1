# SPDX-License-Identifier: Apache-2.0
"""Synthetic campaigns keep every contract, and the real arithmetic finds in them what they say is true."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign
from netjoule.workload.workload import Timing
from netjoule_energy.campaign.compute import compute_run
from netjoule_energy.run.result import document_of
from netjoule_synthetic import LinearPower, Meter, cells, table_i, tiny, write
from netjoule_synthetic.__main__ import main
from netjoule_synthetic.truth import SPOILED, layout

NOISY = {
    "block_sd_ratio": 0.05,
    "mini_block_sd_ratio": 0.02,
    "run_sd_ratio": 0.01,
    "reading_sd_w": 0.01,
    "idle_drift_w_per_h": 0.5,
    "tail_ratio": 0.3,
}
EVERY = ("udp", "tcp", "mptcp", "sctp", "dccp", "dccp-kernel", "quic", "quic-datagram", "null")


def result_of(folder: Path, run_id: str) -> dict:
    return json.loads((folder / "runs" / run_id / "result.json").read_text())


def at_rate(share: float, transport: str = "udp"):
    return lambda name, _payload, _rate: share if name == transport else 0.0


def same(one, other, tolerance=1e-7) -> bool:
    """Both are missing, equal, or numbers that differ by rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return bool(one == other)


CASES = {
    "plain": tiny(),
    "noise": tiny(**NOISY),
    "invalid runs": tiny(blocks=4, invalid_share=0.5, **NOISY),
    "every transport": tiny(transports=EVERY, blocks=1),
    "one transport": tiny(transports=("quic",)),
    "no null": tiny(transports=("udp", "tcp")),
    "device streams": tiny(device_stream=True, **NOISY),
    "two meters": tiny(
        meters=(Meter("a"), Meter("b", idle_w=1.0, update_interval_s=0.5, lag_s=0.71)),
        timing=Timing(2, 0.5, 1, 4, 0.5),
    ),
    "loss": tiny(loss=at_rate(0.4)),
    "held back": tiny(transports=("dccp", "udp", "null"), held_back=at_rate(0.3, "dccp")),
    "power below idle": tiny(meters=(Meter(power=lambda *_: -0.2),)),
    "below resolution": tiny(meters=(Meter(u_delta_p_w=1.0),)),
}
# What a Monte Carlo finds in the readings is not the design's u, nor what follows from it.
COMPUTED = ("p_a_w", "p_i_w", "p_i_before_w", "p_i_after_w", "delta_p_w", "ea_j_per_mbit", "tail_energy_j")


@pytest.mark.parametrize("name", CASES)
def test_a_synthetic_campaign_has_no_defects(tmp_path, name):
    folder = write(tmp_path / "made", CASES[name])
    assert [str(defect) for defect in check_campaign(folder)] == []


@pytest.mark.parametrize("name", [name for name in CASES if "below" not in name])
def test_the_real_arithmetic_finds_the_same_numbers(tmp_path, name):
    folder = write(tmp_path / "made", CASES[name])
    rng = np.random.default_rng(1)
    for row in read_plan(folder):
        ours = result_of(folder, row.run_id)
        found = document_of(compute_run(folder, row.run_id, rng=rng))
        for field in ("run_id", "window", "measures", "valid"):
            assert same(ours[field], found[field], 1e-9), field
        assert same(ours["work"]["work_per_s"], found["work"]["work_per_s"], 1e-9)
        assert [r["code"] for r in ours["reasons"]] == [
            r["code"] for r in found["reasons"] if r["code"] not in ("floor_large", "idle_drift")
        ]
        for one, other in zip(ours["nodes"], found["nodes"], strict=True):
            for field in COMPUTED:
                assert same(one[field], other[field]), (row.run_id, field)
            assert (one["ea_reason"], one["readings"]) == (other["ea_reason"], other["readings"])
            assert one["floor"]["reason"] == other["floor"]["reason"]
            for field in ("run_id", "p_null_w", "floor_w", "ea_above_floor_j_per_mbit"):
                assert same(one["floor"][field], other["floor"][field]), (row.run_id, field)


def test_power_below_idle_and_below_resolution_have_the_rules_words(tmp_path):
    below = write(tmp_path / "below", CASES["power below idle"])
    unseen = write(tmp_path / "unseen", CASES["below resolution"])
    for folder, reason, given in ((below, "below_resolution", False), (unseen, None, True)):
        rows = [r for r in read_plan(folder) if r.arm != "null"]
        nodes = [result_of(folder, r.run_id)["nodes"][0] for r in rows]
        assert all(node["below_resolution"] and node["ea_reason"] == reason for node in nodes)
        assert all((node["ea_j_per_mbit"] is not None) == given for node in nodes)
        assert all(node["ea_upper_limit_j_per_mbit"] > 0 for node in nodes)


def test_without_noise_every_run_has_the_truth_of_its_cell(tmp_path):
    meters = (Meter("a", power=LinearPower(0.1, 0.03, 0.01)), Meter("b", idle_w=2.0))
    design = tiny(meters=meters, loss=at_rate(0.25))
    folder = write(tmp_path / "made", design)
    truth = {(c.meter_id, c.transport, c.payload_bytes): c for c in cells(design)}
    for row in read_plan(folder):
        if row.arm == "null":
            continue
        for node in result_of(folder, row.run_id)["nodes"]:
            cell = truth[node["meter_id"], row.arm, row.cell["payload_bytes"]]
            # Readings have four decimals.
            assert node["delta_p_w"] == pytest.approx(cell.delta_p_w, abs=1e-4)
            assert node["ea_j_per_mbit"] == pytest.approx(cell.ea_j_per_mbit, abs=1e-4)
            assert node["floor"]["floor_w"] == pytest.approx(cell.floor_w, abs=1e-4)
    udp = truth["a", "udp", 64]
    assert udp.loss_ratio == pytest.approx(0.25, abs=1e-3)
    assert udp.goodput_mbps == pytest.approx(7.5, rel=1e-3)
    # By hand: 0.1 W + 0.03 W/(Mb/s) x 10 Mb/s + 0.01 mJ x 19531 messages/s.
    assert udp.delta_p_w == pytest.approx(0.1 + 0.3 + 0.1953125)


def test_a_straight_drift_of_idle_power_leaves_the_truth_as_it_is(tmp_path):
    design = tiny(idle_drift_w_per_h=3.0)
    folder = write(tmp_path / "made", design)
    truth = {(c.transport, c.payload_bytes): c for c in cells(design)}
    for row in read_plan(folder):
        if row.arm != "null":
            node = result_of(folder, row.run_id)["nodes"][0]
            assert node["p_i_before_w"] < node["p_i_after_w"]
            expected = truth[row.arm, row.cell["payload_bytes"]].delta_p_w
            assert node["delta_p_w"] == pytest.approx(expected, abs=2e-4)


def test_effects_of_blocks_are_common_to_the_runs_of_a_mini_block(tmp_path):
    design = tiny(blocks=8, block_sd_ratio=0.2, mini_block_sd_ratio=0.1)
    folder = write(tmp_path / "made", design)
    power = {
        (r.mini_block, r.arm): result_of(folder, r.run_id)["nodes"][0]["delta_p_w"]
        for r in read_plan(folder)
        if r.cell["payload_bytes"] == 64
    }
    minis = sorted({mini for mini, _ in power})
    udp = np.array([power[mini, "udp"] for mini in minis])
    ratio = udp / np.array([power[mini, "tcp"] for mini in minis])
    assert udp.std() / udp.mean() > 0.05
    assert ratio.std() / ratio.mean() < 1e-3


def test_invalid_runs_are_repeated_and_off_in_power(tmp_path):
    design = tiny(blocks=6, invalid_share=0.5)
    folder = write(tmp_path / "made", design)
    rows = read_plan(folder)
    invalid = [row for row in rows if row.status == "invalid"]
    assert invalid and {row.reason for row in invalid} == {SPOILED}
    assert {row.mini_block for row in rows if row.attempt == 2} == {row.mini_block for row in invalid}
    assert {r.status for r in rows if r.mini_block == invalid[0].mini_block and r.attempt == 2} == {"valid"}
    superseded = [r for r in rows if r.status == "superseded"]
    assert len(superseded) == len(invalid) * (len(design.transports) - 1)
    spoiled = invalid[0]
    good = next(
        r
        for r in rows
        if (r.arm, r.cell["payload_bytes"]) == (spoiled.arm, spoiled.cell["payload_bytes"])
        and r.status == "valid"
    )
    powers = [result_of(folder, r.run_id)["nodes"][0]["p_a_w"] for r in (spoiled, good)]
    assert powers[0] - powers[1] == pytest.approx(1.0, abs=1e-3)


def test_the_seed_decides_everything(tmp_path):
    def files(folder: Path) -> dict:
        return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    design = tiny(invalid_share=0.5, **NOISY)
    one, other = (files(write(tmp_path / place / "made", design)) for place in "ab")
    assert one == other
    third = files(write(tmp_path / "c" / "made", replace(design, seed=2)))
    assert third[Path("meters/client-supply.csv")] != one[Path("meters/client-supply.csv")]


def test_readings_come_at_their_interval_with_six_decimals(tmp_path):
    folder = write(tmp_path / "made", tiny(meters=(Meter(lag_s=0.137412),), reading_sd_w=0.01))
    with (folder / "meters" / "client-supply.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert [int(row["seq"]) for row in rows] == list(range(len(rows)))
    assert rows[0]["t_s"] == "0.237412"
    steps = np.diff([float(row["t_s"]) for row in rows])
    assert np.allclose(steps, 0.1, atol=1e-6)
    power = np.array([float(row["power_w"]) for row in rows])
    idle = power[: layout(tiny()).idle]
    assert 0.005 < idle.std() < 0.02
    assert abs(idle.mean() - 8.0) < 0.01


def test_the_whole_shape_is_9600_runs_in_500_hours():
    design = table_i()
    assert design.runs == 9600
    assert design.runs * layout(design).period / 36_000 == 500
    assert len(design.meters) == 2
    assert {meter.update_interval_s for meter in design.meters} == {0.1}
    assert all(cell.ea_j_per_mbit > 0 for cell in cells(design))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"loss": lambda *_: 1.0}, "loss of .* a share from 0 to below 1"),
        ({"held_back": lambda *_: -0.1}, "held_back of"),
        ({"timing": Timing(2, 0.5, 0.6, 2.05, 0.5)}, "timing.measure_s is 2.05 s, no multiple"),
        ({"timing": Timing(2, 0.5, 0.6, 2, 0)}, "timing.tail_s is 0 s"),
        ({"meters": (Meter(update_interval_s=0.5),)}, "timing.warm_up_s of 0.6 s is no multiple"),
        ({"meters": (Meter(update_interval_s=0.3),)}, "must divide a second"),
    ],
)
def test_a_design_without_a_closed_form_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        tiny(**changes)


def test_a_cell_of_which_nothing_arrives_is_refused(tmp_path):
    with pytest.raises(ValueError, match="take a longer one"):
        write(tmp_path / "made", tiny(offered_rate_mbps=(0.001,)))


def test_null_alone_is_no_workload(tmp_path):
    with pytest.raises(UsageError, match=r"factors\.transport: the list is too short"):
        write(tmp_path / "made", tiny(transports=("null",)))


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        write(tmp_path / "made", tiny())


def test_the_command_writes_a_campaign_and_its_truth(tmp_path, capsys):
    truth = tmp_path / "truth.csv"
    arguments = ["--transports", "udp,null", "--offered-rate-mbps", "5", "--blocks", "1"]
    arguments += ["--truth", str(truth)]
    assert main([str(tmp_path / "made"), *arguments]) == 0
    assert "4 runs in" in capsys.readouterr().out
    with truth.open() as handle:
        rows = list(csv.DictReader(handle))
    assert [(row["transport"], row["payload_bytes"]) for row in rows] == [("udp", "64"), ("udp", "1440")]
    expected = cells(tiny(transports=("udp", "null"), offered_rate_mbps=(5.0,), blocks=1))[0].ea_j_per_mbit
    assert float(rows[0]["ea_j_per_mbit"]) == pytest.approx(expected)
    assert main([str(tmp_path / "other"), "--timing", "1,2,3"]) == 2
    assert "netjoule_synthetic:" in capsys.readouterr().err


def test_a_device_stream_has_the_terms_of_the_model_that_is_recorded(tmp_path):
    folder = write(tmp_path / "made", tiny(device_stream=True))
    document = json.loads((folder / "campaign.json").read_text())
    assert [model["meter_id"] for model in document["device_models"]] == ["client-supply"]
    vectors = contracts.root() / "vectors" / "device_terms.json"
    terms = json.loads(vectors.read_text())["forms"]["linear"]
    for line in (folder / "devices" / "client-supply.ndjson").read_text().splitlines():
        sample = json.loads(line)
        assert sample["terms"].keys() == terms.keys()
        assert sum(sample["terms"].values()) == pytest.approx(sample["power_w"], abs=1e-5)
