# SPDX-License-Identifier: Apache-2.0
"""``netjoule measure``: a command line as a workload; real programs on the emulated testbed to the report."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_sentences import raises
from plans import plan
from tiny_campaign import netjoule, table, until_released, written

from netjoule import loads
from netjoule.cli.measure import document, variables
from netjoule.core import programs
from netjoule.core.errors import HostLacks, UsageError
from netjoule.design.timeline import MeterPace
from netjoule.loads.command.load import CommandLoad
from netjoule.topology import topology

METER = {"meter_id": "cpu", "node": "client", "adapter": "wt210", "resource": "emulated"}
SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}
BUSY_S = 0.2
BUSY = f"import os, time\nt = time.process_time() + {BUSY_S} * int(os.environ['TIMES'])\n"
BUSY += "while time.process_time() < t: pass\nprint('did', os.environ['TIMES'], 'parts')"


def asked(*argv: str, env: tuple[str, ...] = (), **settings: Any) -> dict[str, Any]:
    said = {"run": list(argv), **settings}
    meters = [MeterPace("slow", 1.0, 0.5)]
    return document(said, variables(env), blocks=2, time_s=3.0, seed=7, meters=meters)


def test_the_first_variable_with_several_values_is_the_arm() -> None:
    found = loads.made(asked("x", env=("MODE=fast", "LEVEL=1,9", "THREADS=1,2")), where="test")
    assert (found.load, found.arm, found.arms) == ("command", "LEVEL", ("1", "9"))
    assert {name: len(values) for name, values in found.factors.items()} == {
        "MODE": 1,
        "LEVEL": 2,
        "THREADS": 2,
    }
    assert found.runs == 2 * 2 * 2
    assert found.timing.idle_s >= 3.0, "the slowest meter sees the idle windows"


def test_a_command_alone_has_one_arm() -> None:
    found = loads.made(asked("sleep", "1"), where="test")
    assert (found.arms, found.runs, found.control) == (("command",), 2, None)


@pytest.mark.parametrize("text", ["LEVEL", "level=1", "=1", "A B=1"])
def test_another_form_of_variable_is_refused(text: str) -> None:
    with raises(UsageError):
        variables([text])


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"builds": {"o3": {"run": ["y"]}}}, "command.builds.o3"),
        ({"work_from": {"regex": "("}}, "command.work_from.regex"),
        ({"server": ["x"], "server_ready": "["}, "command.server_ready"),
    ],
)
def test_settings_that_no_run_could_use_are_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        loads.made(asked("x", **settings), where="test")


def test_a_workload_without_a_command_and_one_with_sync_pulses_are_refused() -> None:
    bare = asked("x")
    with raises(UsageError):
        loads.made({name: part for name, part in bare.items() if name != "command"}, where="test")
    with raises(UsageError):
        loads.made({**bare, "sync_pulses": True}, where="test")


def test_a_program_of_any_build_and_of_the_server_is_looked_for(tmp_path: Path) -> None:
    files = written(tmp_path, [METER | {"device": {"model": "laptop-cpu"}, "settings": SETTINGS}])
    here = topology.load(files.topology)
    value = asked("true", server=["no-such-server"], builds={"o3": {"run": ["no-such-build"]}})
    value["factors"]["build"] = ["plain", "o3"]
    load = loads.load_of(loads.made(value, where="test"), here)
    assert isinstance(load, CommandLoad)
    with raises(HostLacks):
        load.require_programs()


def measured(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The command on a testbed with one meter that sees the client's CPU."""
    meter = METER | {"device": {"model": "laptop-cpu"}, "settings": SETTINGS}
    files = written(folder, [meter])
    out = folder / "measure"
    return netjoule("measure", "--testbed", str(files.topology), "--out", str(out), *arguments), out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--", "no-such-program"), 3, "no program no-such-program on this host"),
        (("--work-regex", "x", "--work-json", "y", "--", "true"), 2, "--work-regex or --work-json"),
        (("--env", "lower=1", "--", "true"), 2, "--env"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_does(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done, out = measured(tmp_path, *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert not out.exists()


@pytest.mark.netns
def test_a_command_that_always_fails_leaves_no_valid_run(tmp_path: Path) -> None:
    done, out = measured(tmp_path, "--blocks", "1", "--", "sh", "-c", "echo no disk >&2; exit 3")
    assert done.returncode == 4, done.stderr
    runs = [json.loads(path.read_text()) for path in out.glob("runs/*/run.json")]
    assert runs and {run["status"] for run in runs} == {"failed"}
    assert {run["reasons"][0]["code"] for run in runs} == {"command_failed"}
    assert all("ended with code 3: no disk" in run["reasons"][0]["detail"] for run in runs)
    for path in out.glob("runs/*/events.csv"):
        assert any("no disk" in row["detail"] for row in table(path))
    again = netjoule("resume", str(out))
    assert again.returncode == 4, again.stderr


@pytest.mark.netns
def test_a_testbed_of_one_cpu_gives_a_command_no_more(tmp_path: Path) -> None:
    out = tmp_path / "measure"
    argv = [
        "measure",
        "--testbed",
        str(programs.shipped("testbed/topologies/one-cpu.yaml")),
        "--out",
        str(out),
    ]
    argv += ["--blocks", "1", "-t", "1", "--work-regex", r"(\d+)", "--unit", "CPU", "--"]
    done = netjoule(*argv, "sh", "-c", "sleep 0.5; nproc")
    assert done.returncode == 0, done.stderr
    (run,) = documents_of(out, "run.json")
    assert run["work"]["quantity"] == run["work"]["repeat"] > 1


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose second half ran in another session: the first was killed."""
    folder = tmp_path_factory.mktemp("measure")
    meter = METER | {"device": {"model": "laptop-cpu"}, "settings": SETTINGS}
    files = written(folder, [meter])
    out = folder / "measure"
    argv = ["measure", "--testbed", str(files.topology), "--out", str(out), "--blocks", "2", "-t", "1"]
    argv += ["--env", "TIMES=1,2", "--work-regex", r"did (\d+)", "--unit", "part", "--"]
    first = subprocess.Popen(
        [sys.executable, "-m", "netjoule", *argv, sys.executable, "-c", BUSY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 240
    status = out / "status.csv"
    while not status.exists() or status.read_text().count(",valid,") < 2:
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    until_released(out)
    allow_attempts(out, 10)
    resumed = netjoule("resume", str(out), "--json")
    assert resumed.returncode == 0, resumed.stderr
    return out


def allow_attempts(campaign: Path, attempts: int) -> None:
    """For a busy host may spoil some, and the command has no option for it: a person takes `netjoule run`."""
    file = campaign / "campaign.json"
    value = json.loads(file.read_text())
    value["workload"]["limits"]["max_attempts"] = attempts
    file.write_text(json.dumps(value))


def documents_of(campaign: Path, name: str) -> list[dict[str, Any]]:
    """Of the runs that count; a busy host may have spoilt an attempt of a mini-block."""
    valid = [row["run_id"] for row in plan(campaign) if row["status"] == "valid"]
    return [json.loads((campaign / "runs" / run_id / name).read_text()) for run_id in valid]


@pytest.mark.netns
def test_a_killed_and_resumed_measure_is_whole_and_repeats_as_before(campaign: Path) -> None:
    checked = netjoule("check", str(campaign))
    assert checked.returncode == 0, checked.stdout
    runs = documents_of(campaign, "run.json")
    assert sorted(run["arm"] for run in runs) == ["1", "1", "2", "2"]
    repeats = {arm: {run["work"]["repeat"] for run in runs if run["arm"] == arm} for arm in ("1", "2")}
    assert all(len(found) == 1 for found in repeats.values()), repeats
    for run in runs:
        work = run["work"]
        assert work["quantity"] == work["repeat"] * int(run["arm"])
        assert work["unit"] == "part"
        assert run["measures"]["cpu_s"] >= BUSY_S * int(run["arm"])
        assert run["measures"]["sent_bytes"] is not None


@pytest.mark.netns
def test_work_is_repeated_until_a_meter_sees_it_20_times(campaign: Path) -> None:
    events = [row for path in sorted(campaign.glob("runs/*/events.csv")) for row in table(path)]
    told = [row["detail"] for row in events if row["event"] == "warmed_up"]
    assert told
    for words in told:
        found = re.search(r"took ([\d.e-]+) s: (\d+) back to back", words)
        assert found, words
        # Printed with three digits.
        assert float(found[1]) * int(found[2]) >= 20 * 0.1 * 0.99


@pytest.mark.netns
def test_energy_is_that_of_the_cpu_that_the_command_took(campaign: Path) -> None:
    results = documents_of(campaign, "result.json")
    assert len(results) == 4
    for result in results:
        (node,) = result["nodes"]
        length_s = result["window"]["t_end_s"] - result["window"]["t_start_s"]
        assert node["e_d_j"] == pytest.approx(node["delta_p_w"] * length_s)
        assert node["e_t_j"] == pytest.approx(node["e_d_j"] + node["p_i_w"] * length_s)
        if node["energy_per_work_j"] is not None:
            assert node["energy_per_work_j"] == pytest.approx(node["e_d_j"] / result["work"]["quantity"])
            assert node["u95_energy_per_work_j"] > 0
    # A busy host may leave a gap in a tail, which spoils no run.
    assert any(result["nodes"][0]["tail_energy_j"] is not None for result in results)


@pytest.mark.netns
def test_the_report_tells_energy_per_unit_of_work_of_each_value(campaign: Path) -> None:
    told = netjoule("report", str(campaign))
    assert told.returncode == 0, told.stderr
    assert (campaign / "report.html").exists()
    with (campaign / "tables" / "energy_summary.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["TIMES"] for row in rows} == {"1", "2"}
    assert "E J/" in told.stdout


@pytest.mark.netns
def test_the_workload_that_it_wrote_is_one_to_run_again(campaign: Path) -> None:
    file = campaign.with_name(f"{campaign.name}.yaml")
    assert yaml.safe_load(file.read_text())["load"] == "command"
    planned = netjoule("plan", str(file))
    assert planned.returncode == 0, planned.stderr
