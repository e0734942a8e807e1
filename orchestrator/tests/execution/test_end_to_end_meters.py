# SPDX-License-Identifier: Apache-2.0
"""Real campaigns on other meters than the usual one: emulated instruments, faults, ranging, alignment."""

import json
from pathlib import Path
from typing import Any

import pytest
from plans import plan
from tiny_campaign import SEED, netjoule, table, written

pytestmark = pytest.mark.netns

P0_CONSTANT_W = 8.0
WT210 = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.05}
SLOW = {"idle_s": 5.0, "settle_s": 1.0, "warm_up_s": 4.0, "measure_s": 5.0, "tail_s": 1.0}


def meter(meter_id: str, adapter: str, settings: dict[str, Any], model: str, **more: Any) -> dict[str, Any]:
    known = {"meter_id": meter_id, "node": "client", "adapter": adapter, "resource": "emulated"}
    return {**known, "settings": settings, "device": {"model": model}, **more}


def campaign(folder: Path, meters: list[dict[str, Any]], **load: Any) -> Path:
    """Run a tiny campaign on these meters; its folder."""
    files = written(folder, meters, **load)
    done = netjoule(*files.run, "--seed", str(SEED))
    assert done.returncode == 0, done.stdout + done.stderr
    checked = netjoule("check", str(files.out))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return files.out


def events(out: Path) -> list[dict[str, str]]:
    return [row for path in sorted(out.glob("runs/*/events.csv")) for row in table(path)]


def test_every_kind_of_emulated_instrument_reads_the_device(tmp_path: Path) -> None:
    meters = [
        meter(
            "wt310", "wt310", {"model": "WT310E", "voltage_range_v": 300, "current_range_a": 0.5}, "constant"
        ),
        meter("hm8115", "hm8115", {"voltage_range_v": 500, "current_range_a": 0.16}, "constant"),
        meter("shelly", "socket", {"preset": "shelly2", "update_interval_s": 0.5, "lag_s": 1.0}, "constant"),
        meter("ptd", "ptd", {"voltage_range_v": 300, "current_range_a": 0.1}, "constant"),
    ]
    out = campaign(tmp_path, meters, timing=SLOW, transports=["udp"])
    result = json.loads(next(out.glob("runs/*/result.json")).read_text())
    nodes = {node["meter_id"]: node for node in result["nodes"]}
    assert set(nodes) == {"wt310", "hm8115", "shelly", "ptd"}
    for name, node in nodes.items():
        assert node["power_source"] == "modelled"
        assert node["p_a_w"] == pytest.approx(P0_CONSTANT_W, abs=0.25), name
    passports = {p["meter_id"]: p for p in json.loads((out / "campaign.json").read_text())["meters"]}
    assert all(p["emulated"] for p in passports.values())
    assert passports["hm8115"]["provisional"], "what no document confirms stands in the passport"
    assert nodes["shelly"]["grade"] in (None, "C", "below_resolution"), (
        "an unknown accuracy is no tight number"
    )


def test_a_pulled_cable_and_a_frozen_display_are_events_and_their_runs_are_repeated(tmp_path: Path) -> None:
    faults = [
        {"t_s": 2.5, "fault": "disconnect", "with": {"seconds": 1}},
        {"t_s": 12.5, "fault": "freeze", "with": {"seconds": 4}},
    ]
    settings = {**WT210, "stuck_after_s": 2}
    out = campaign(
        tmp_path,
        [meter("m", "wt210", settings, "laptop-cpu", faults=faults)],
        blocks=3,
        offered_rate_mbps=[30],
    )
    rows = plan(out)
    reasons = [row["reason"] for row in rows if row["status"] == "invalid"]
    assert "meter_gap" in reasons and "meter_frozen" in reasons
    latest = {row["mini_block"]: row["attempt"] for row in rows}
    assert all(row["status"] == "valid" for row in rows if row["attempt"] == latest[row["mini_block"]])
    seen = {row["event"] for row in events(out)}
    assert {"fault_asked", "meter_gap", "meter_reconnect", "meter_stuck", "run_invalid"} <= seen
    readings = table(out / "meters/m.csv")
    assert [int(row["seq"]) for row in readings] == list(range(len(readings)))
    asked = [row for row in events(out) if row["event"] == "fault_asked"]
    pulled_s = float(asked[0]["t_s"])
    gap = [row for row in readings if pulled_s + 0.3 < float(row["t_s"]) < pulled_s + 0.9]
    assert all(row["power_w"] == "" for row in gap), "no sample is invented while the cable is out"


def test_ranges_are_found_under_load_and_the_lag_in_a_load_pulse(tmp_path: Path) -> None:
    settings = {"update_interval_s": 0.1, "voltage_range_v": "auto", "current_range_a": "auto"}
    pulses = {"rate_mbps": 60, "payload_bytes": 1440}
    out = campaign(
        tmp_path, [meter("m", "wt210", settings, "linear")], load_pulses=pulses, transports=["udp"]
    )
    document = json.loads((out / "campaign.json").read_text())
    fixed = document["topology"]["meters"][0]["settings"]
    assert fixed["voltage_range_v"] == 300 and fixed["current_range_a"] in (0.02, 0.05)
    assert document["meters"][0]["range"]["voltage_v"] == 300
    assert any(row["event"] == "range_fixed" for row in events(out))
    assert len(document["load_pulses"]) == 2
    (found,) = document["alignment"]
    # One update of display, a question on the line, and the grain of the device's own samples.
    assert found["confidence"] >= 0.9 and 0.0 <= found["lag_s"] <= 0.35
