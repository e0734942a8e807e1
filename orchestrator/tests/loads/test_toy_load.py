# SPDX-License-Identifier: Apache-2.0
"""A load that stands in no file of the program goes all the way; so does a factor that is added to it.

What it takes: entries in loads.json and factors.json, the contract of its part of a result, its class.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan
from tiny_campaign import table, until_released, written
from toy_netjoule import ALTITUDE, FAKE_TIME, MORE, WORKLOAD, Program, add, with_toy, workload


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    return with_toy(tmp_path / "contracts")


@pytest.fixture
def program(contracts: Path) -> Program:
    return Program(contracts)


def run_documents(campaign: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(campaign.glob("runs/*/run.json"))]


def results(campaign: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(campaign.glob("runs/*/result.json"))]


def assert_all_of_it_is_there(campaign: Path, program: Program) -> None:
    """Every run once and valid, as planned, and nothing that `check` finds fault with."""
    assert "no defects" in program.netjoule("check", str(campaign))
    valid = {row["run_id"] for row in plan(campaign) if row["status"] == "valid"}
    runs = [run for run in run_documents(campaign) if run["run_id"] in valid]
    assert Counter((run["load"], run["arm"]) for run in runs) == {("wait", "20"): 2, ("wait", "50"): 2}
    for run in runs:
        assert run["window"]["kind"] == "until_done"
        assert run["arm"] in ("20", "50")
        assert run["factors"] == {}, "the arm is none of its cell"
        work = run["work"]
        assert work["quantity"] == pytest.approx(work["repeat"] * int(run["arm"]))
        assert work["unit"] == "ms"
        length_s = run["window"]["t_end_s"] - run["window"]["t_start_s"]
        # It waits its time out, and longer only where the host is busy.
        assert -1e-5 <= length_s - work["quantity"] / 1000 < 5
        assert run["measures"]["late_ms"] == pytest.approx(1000 * length_s - work["quantity"], abs=0.01)
    assert all(result["valid"] for result in results(campaign) if result["run_id"] in valid)


def until(lines: int, file: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a table has so many lines."""
    deadline = time.monotonic() + 120
    while not file.exists() or len(file.read_text().splitlines()) < lines:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.05)


@pytest.mark.netns
def test_the_load_goes_through_an_emulated_campaign_that_is_killed_half_way(
    tmp_path: Path, program: Program
) -> None:
    meter = {"meter_id": "constant", "node": "client", "adapter": "wt210", "resource": "emulated"}
    settings = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.05}
    files = written(tmp_path, [meter | {"device": {"model": "constant"}, "settings": settings}])
    files.workload.write_text(yaml.safe_dump(WORKLOAD))
    assert "4 = 2 mini-blocks x 2" in program.netjoule(
        "plan", str(files.workload), "--testbed", str(files.topology)
    )
    first = program.start("-m", "netjoule", *files.run)
    until(4, files.out / "status.csv", first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    until_released(files.out)
    program.netjoule("resume", str(files.out), "--json")
    assert_all_of_it_is_there(files.out, program)
    sessions = json.loads((files.out / "campaign.json").read_text())["sessions"]
    assert [session["end"] for session in sessions] == ["killed", "complete"]
    # A run that is not valid, as on a busy host, may have no tail that was read.
    valid = [result for result in results(files.out) if result["valid"]]
    assert len(valid) >= 4
    for result in valid:
        assert result["nodes"][0]["tail_energy_j"] is not None
    program.netjoule("report", str(files.out))
    assert (files.out / "report.html").exists()


def test_a_factor_is_added_by_two_entries_and_its_reader(tmp_path: Path, contracts: Path) -> None:
    file = workload(tmp_path, factors={"wait_ms": [20, 50], "pause_ms": [0, 3]})
    refused = Program(contracts).start("-m", "netjoule", "plan", str(file))
    assert "pause_ms" in refused.communicate()[1]
    assert refused.returncode == 2
    add(contracts, "factors", MORE)
    loads = json.loads((contracts / "loads.json").read_text())
    loads["loads"][-1]["factors"].append("pause_ms")
    (contracts / "loads.json").write_text(json.dumps(loads))
    program, out = Program(contracts), tmp_path / "campaign"
    program.done(str(FAKE_TIME), str(file), str(out))
    assert "no defects" in program.netjoule("check", str(out))
    rows = table(out / "plan.csv")
    assert Counter(row["pause_ms"] for row in rows) == {"0": 4, "3": 4}
    for run in run_documents(out):
        pause_ms = run["factors"]["pause_ms"] * run["work"]["repeat"]
        assert run["measures"]["late_ms"] == pytest.approx(pause_ms, abs=0.01)
    assert Counter(result["factors"]["pause_ms"] for result in results(out)) == {0: 4, 3: 4}


def test_what_no_running_testbed_can_change_has_sessions_of_its_own(tmp_path: Path, contracts: Path) -> None:
    add(contracts, "factors", ALTITUDE)
    program, out = Program(contracts), tmp_path / "campaign"
    factors = {"wait_ms": [20, 50], "altitude_m": [0, 300]}
    arm = program.start("-m", "netjoule", "plan", str(workload(tmp_path, factors=factors, arm="altitude_m")))
    assert "altitude_m cannot be the arm" in arm.communicate()[1]
    assert arm.returncode == 2
    file = workload(tmp_path, factors=factors)
    said = program.netjoule("plan", str(file))
    assert "altitude_m 0; 300" in said
    assert "sessions   4" in said
    program.done(str(FAKE_TIME), str(file), str(out))
    assert "no defects" in program.netjoule("check", str(out))
    for run in run_documents(out):
        held = {"altitude_m": run["factors"]["altitude_m"]}
        assert run["in_force"] == {"altitude_m": {"value": held["altitude_m"], "since_start": held}}
    sessions = json.loads((out / "campaign.json").read_text())["sessions"]
    assert [session["end"] for session in sessions] == ["complete"] * 4
    document = min(out.glob("runs/*/run.json"))
    document.write_text(json.dumps({k: v for k, v in run_documents(out)[0].items() if k != "in_force"}))
    check = program.start("-m", "netjoule", "check", str(out))
    assert "it does not have altitude_m, which the run asks of its testbed" in "".join(check.communicate())
    assert check.returncode == 4
    blocks = [(int(row["block"]), row["altitude_m"]) for row in table(out / "plan.csv")]
    assert len(blocks) == 8
    assert blocks[0] == blocks[1] != blocks[2] == blocks[3]
