# SPDX-License-Identifier: Apache-2.0
"""The toy load on a simulated testbed: blocks in place of folders of runs, on as many cores as are asked."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_campaign import table
from toy_netjoule import Program, with_toy, workload

from netjoule.rigs.campaign_run import batch_size

TESTBED = """\
schema_version: 1
name: waiting
kind: simulated
hosts: {client: {roles: [client]}, server: {roles: [server]}}
meters: []
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(with_toy(tmp_path / "contracts"))


@pytest.fixture
def testbed(tmp_path: Path) -> Path:
    file = tmp_path / "simulated.yaml"
    file.write_text(TESTBED)
    return file


def run_words(file: Path, testbed: Path, out: Path, *more: str) -> list[str]:
    words = ["-m", "netjoule", "run", str(file), "--testbed", str(testbed), "--out", str(out), "--json"]
    return [*words, *more]


def lines(campaign: Path, name: str) -> list[dict[str, Any]]:
    """Documents of all blocks, in order."""
    blocks = sorted((campaign / "blocks").iterdir(), key=lambda block: int(block.name))
    return [json.loads(line) for block in blocks for line in (block / name).read_text().splitlines()]


def exit_code(program: Program, *words: str, **env: str) -> tuple[int, str]:
    process = program.start(*words, **env)
    said = "".join(process.communicate(timeout=600))
    return process.returncode, said


def require_whole(campaign: Path, program: Program, runs: int) -> None:
    assert "no defects" in program.netjoule("check", str(campaign))
    assert len({run["run_id"] for run in lines(campaign, "runs.ndjson")}) == runs
    last = {row["run_id"]: row["status"] for row in table(campaign / "status.csv")}
    assert Counter(last.values()) == {"valid": runs}
    assert not (campaign / ".blocks").exists()


def test_each_run_is_in_a_time_of_its_own_and_r_reads_it(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    said = program.netjoule("plan", str(workload(tmp_path)), "--testbed", str(testbed))
    assert "4 s of simulated time" in said
    program.done(*run_words(workload(tmp_path), testbed, out))
    require_whole(out, program, runs=4)
    for run in lines(out, "runs.ndjson"):
        assert run["window"] == {"kind": "until_done", "t_start_s": 0, "t_end_s": 1, "clock_limit_s": 0}
        assert run["windows"]["idle_before"] is None
        assert run["radio_source"] == "simulated"
    for result in lines(out, "results.ndjson"):
        [node] = result["nodes"]
        wait_s = int(result["arm"]) / 1000
        assert node["p_a_w"] == pytest.approx(2 + wait_s, rel=0.01)
        assert node["e_d_j"] == pytest.approx(node["delta_p_w"] * 1.0)
        assert node["energy_per_work_j"] == pytest.approx(wait_s / 1000, rel=0.01)
        assert (node["power_source"], node["u95_energy_per_work_j"], node["grade"]) == (
            "modelled",
            None,
            None,
        )
        assert node["tail_energy_j"] == 0
    intervals = table(out / "blocks" / "1" / "intervals.csv")
    assert list(intervals[0]) == ["run_id", "part", "node", "t_start_s", "t_end_s", "work"]
    program.netjoule("report", str(out))
    summary = table(out / "tables" / "energy_summary.csv")
    assert [(row["wait_ms"], row["n"], row["radio_source"]) for row in summary] == [
        ("20", "2", "simulated"),
        ("50", "2", "simulated"),
    ]
    assert "In this model" in (out / "report.html").read_text()
    assert table(out / "tables" / "ea_drift.csv") == []


def test_rigs_simulate_what_one_does_and_a_killed_campaign_goes_on(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    file, busy = workload(tmp_path, blocks=40), {"TOY_WORK_S": "0.02"}
    program.done(*run_words(file, testbed, tmp_path / "one"))
    two = program.start(*run_words(file, testbed, tmp_path / "two", "--rigs", "2"), **busy)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "two").glob("blocks/*")):
        assert time.monotonic() < deadline
        assert two.poll() is None, two.communicate()
        time.sleep(0.05)
    two.kill()
    two.communicate()
    before = {path.name for path in (tmp_path / "two" / "blocks").iterdir()}
    program.netjoule("resume", str(tmp_path / "two"), "--json")
    require_whole(tmp_path / "two", program, runs=80)
    assert len(before) < 40
    assert lines(tmp_path / "one", "results.ndjson") == lines(tmp_path / "two", "results.ndjson")
    assert {row["rig"] for row in table(tmp_path / "two" / "status.csv")} == {"rig1", "rig2"}


def simulators() -> list[int]:
    """The programs that simulate, by their processes."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"toy/bin/netjoule-simulate" in (proc / "cmdline").read_bytes():
                found.append(int(proc.name))
    return found


def test_a_worker_that_is_killed_leaves_no_simulator_and_its_blocks_run_again(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    file = workload(tmp_path, blocks=60)
    flying = program.start(*run_words(file, testbed, out, "--rigs", "2"), TOY_WORK_S="0.03")
    deadline = time.monotonic() + 120
    while not list(out.glob("blocks/*")) or not simulators():
        assert time.monotonic() < deadline
        assert flying.poll() is None, flying.communicate()
        time.sleep(0.05)
    child = simulators()[0]
    worker = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    while child in simulators():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    said = "".join(flying.communicate(timeout=120))
    assert flying.returncode == 0, said
    require_whole(out, program, runs=120)
    assert simulators() == []


def test_what_cannot_be_simulated_is_invalid_after_its_attempts(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    file = workload(tmp_path, factors={"wait_ms": [13, 20]}, limits={"max_attempts": 2})
    code, said = exit_code(program, *run_words(file, testbed, out))
    assert code == 0, said
    assert "no defects" in program.netjoule("check", str(out))
    last = {row["run_id"]: (row["status"], row["reason"]) for row in table(out / "status.csv")}
    assert len(last) == 8
    assert {last[one] for one in last if "-13-" in one} == {("invalid", "simulation_failed")}
    assert {last[one] for one in last if "-20-" in one} == {("valid", "")}
    assert "nobody waits for 13 ms" in (out / "blocks" / "1" / "runs.ndjson").read_text()
    always = workload(tmp_path, factors={"wait_ms": [13, 20], "pause_ms": [0]}, arm="wait_ms", blocks=1)
    assert exit_code(program, *run_words(always, testbed, tmp_path / "d"))[0] == 2


def test_a_simulator_that_dies_now_and_then_costs_attempts_alone(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    file = workload(tmp_path, blocks=20)
    code, said = exit_code(program, *run_words(file, testbed, out), TOY_DIES="0.1")
    assert code == 0, said
    assert "no defects" in program.netjoule("check", str(out))
    died = [run for run in lines(out, "runs.ndjson") if run["status"] == "failed"]
    assert died
    assert {run["reasons"][0]["detail"] for run in died} == {"netjoule-simulate ended: it died"}
    again = [row for row in table(out / "plan.csv") if row["attempt"] != "1"]
    assert len(again) >= len(died)


WRONG = {
    "nan": "is not read",
    "garbage": "is not read",
    "other": "is not read",
    "huge": "is not read",
    "overlap": "not told in steps",
    "negative": "not told in steps",
    "short": "is told for 0.5 s",
    "twice": "is told twice",
    "stranger": "which is no host",
    "missing": "end_ns",
    "long": "netjoule-simulate: xxx",
}


@pytest.mark.parametrize("mode", WRONG)
def test_a_wrong_answer_is_no_outcome(tmp_path: Path, program: Program, testbed: Path, mode: str) -> None:
    out = tmp_path / "c"
    file = workload(tmp_path, blocks=1, limits={"max_attempts": 1})
    code, said = exit_code(program, *run_words(file, testbed, out), TOY_MODE=mode)
    assert code == 4, said
    assert "defect of netjoule" not in said
    reasons = [run["reasons"][0] for run in lines(out, "runs.ndjson")]
    assert {reason["code"] for reason in reasons} == {"simulation_failed"}
    assert all(WRONG[mode] in reason["detail"] for reason in reasons), reasons
    assert "no run" in exit_code(program, "-m", "netjoule", "check", str(out))[1]


@pytest.mark.parametrize("rigs", [(), ("--rigs", "2")], ids=["alone", "rigs"])
def test_a_simulation_that_takes_for_ever_is_stopped(
    tmp_path: Path, program: Program, testbed: Path, rigs: tuple[str, ...]
) -> None:
    out = tmp_path / "c"
    words = run_words(workload(tmp_path), testbed, out, *rigs)
    process = program.start(*words, TOY_MODE="hang")
    deadline = time.monotonic() + 60
    while not simulators():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = "".join(process.communicate(timeout=30))
    assert process.returncode == 1, said
    assert "go on with 'netjoule resume" in said
    program.netjoule("resume", str(out), "--json")
    require_whole(out, program, runs=4)


def test_what_a_full_disk_or_a_power_cut_leaves_goes_on(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    program.done(*run_words(workload(tmp_path), testbed, out))
    whole = lines(out, "results.ndjson")
    (out / "status.csv").write_text("")
    (out / "blocks" / "README").write_text("a stranger's")
    program.netjoule("resume", str(out), "--json")
    (out / "blocks" / "README").unlink()
    assert lines(out, "results.ndjson") == whole
    (out / "blocks" / "README").write_text("a stranger's")
    # Committed, but neither its lines nor its status reached the disk.
    document = (out / "campaign.json").read_text()
    (out / "campaign.json").write_text(document.replace('"status": "complete"', '"status": "running"'))
    rows = (out / "status.csv").read_text().splitlines(keepends=True)
    cut = [row for row in rows if not row.split(",")[1].startswith("b02") or ",valid," not in row]
    (out / "status.csv").write_text("".join(cut))
    (out / "blocks" / "2" / "runs.ndjson").write_text('{"run_id": "b02m002-20-a1"}\n')
    program.netjoule("resume", str(out), "--json")
    (out / "blocks" / "README").unlink()
    require_whole(out, program, runs=4)
    assert lines(out, "results.ndjson") == whole


def test_a_run_is_written_out_in_full_and_only_as_it_was(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    program.done(*run_words(workload(tmp_path), testbed, out))
    run_id = lines(out, "runs.ndjson")[0]["run_id"]
    program.netjoule("resume", str(out), "--write-out", run_id)
    folder = out / "runs" / run_id
    names = {"run.json", "result.json", "intervals.csv", "events.csv", "power.csv"}
    assert {path.name for path in folder.iterdir()} == names
    assert [row["event"] for row in table(folder / "events.csv")] == ["waits"]
    assert json.loads((folder / "result.json").read_text()) == lines(out, "results.ndjson")[0]
    assert [row["power_w"] for row in table(folder / "power.csv")][-1] == "2.0"
    assert "no defects" in program.netjoule("check", str(out))
    code, said = exit_code(program, "-m", "netjoule", "resume", str(out), "--write-out", "nobody")
    assert (code, "the plan has no such run" in said) == (2, True)
    stored = out / "blocks" / "1" / "results.ndjson"
    stored.write_text(stored.read_text().replace('"p_a_w":2.0', '"p_a_w":3.0'))
    code, said = exit_code(program, "-m", "netjoule", "resume", str(out), "--write-out", run_id)
    assert (code, "p_a_w" in said) == (4, True)


def test_check_names_what_blocks_lack_and_resume_simulates_it_again(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    out = tmp_path / "c"
    program.done(*run_words(workload(tmp_path), testbed, out))
    whole = lines(out, "results.ndjson")
    file = out / "blocks" / "2" / "runs.ndjson"
    first, second = file.read_text().splitlines(keepends=True)
    file.write_text(first + second[: len(second) // 2])  # as a power cut leaves it
    code, said = exit_code(program, "-m", "netjoule", "check", str(out))
    assert (code, "blocks/2" in said) == (4, True)
    program.netjoule("resume", str(out), "--json")
    require_whole(out, program, runs=4)
    assert lines(out, "results.ndjson") == whole
    results = out / "blocks" / "1" / "results.ndjson"
    results.write_text(results.read_text().replace('"e_d_j"', '"e_x_j"', 1))
    code, said = exit_code(program, "-m", "netjoule", "check", str(out))
    assert (code, "blocks/1/results.ndjson, run " in said) == (4, True)


def test_what_no_simulated_testbed_has_is_refused(tmp_path: Path, program: Program, testbed: Path) -> None:
    asked = ["-m", "netjoule", "plan", str(workload(tmp_path)), "--testbed", str(testbed)]
    meter = "meters: [{meter_id: a, node: client, adapter: wt210, resource: emulated}]"
    for more, named in (("wifi: {channel: 36}", "wifi"), (meter, "meters"), ("cpus: 1", "cpus")):
        text = TESTBED.replace("meters: []\n", "") if named == "meters" else TESTBED
        testbed.write_text(f"{text}{more}\n")
        code, said = exit_code(program, *asked)
        assert code == 2
        assert named in said
    testbed.write_text(TESTBED)
    assert exit_code(program, "-m", "netjoule", "doctor", "--testbed", str(testbed))[0] == 2
    assert exit_code(program, "-m", "netjoule", "quick", "--testbed", str(testbed))[0] == 2


def test_a_host_without_the_program_that_simulates_is_told(
    tmp_path: Path, program: Program, testbed: Path
) -> None:
    # As where nothing was built: no folder but PATH's is looked into.
    bare = "from netjoule.core import programs; programs._folders = list\n"
    bare += "from netjoule.cli.app import main; main()"
    _, _, *words = run_words(workload(tmp_path), testbed, tmp_path / "c")
    code, said = exit_code(program, "-c", bare, *words)
    assert (code, "the program netjoule-simulate is not on this host" in said) == (3, True), said
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("runs_of_block", "waiting", "rigs", "size"),
    [(2, 5000, 2, 250), (2, 10, 2, 3), (2, 1, 2, 1), (1000, 10, 2, 1), (1, 100000, 2, 500)],
)
def test_a_batch_shrinks_with_what_is_left(runs_of_block: int, waiting: int, rigs: int, size: int) -> None:
    assert batch_size(runs_of_block, waiting, rigs) == size
