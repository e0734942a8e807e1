# SPDX-License-Identifier: Apache-2.0
"""The command on simulated rigs whose truth is known; verdicts are computed a second time from raw files."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boundaries
import pytest
import synthetic
import yaml
from simulated_rig import Rig
from test_worktrees import BUILD, git
from tiny_campaign import table

from netjoule.cli import launch
from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks, InvalidData
from netjoule.gate import campaign_process, worktrees
from netjoule.gate.history import store, trend
from netjoule.store.fingerprint import host_fingerprint
from netjoule.testbeds import rig_lock

WORKLOAD = {
    "schema_version": 2,
    "name": "simulated",
    "load": "flow",
    "factors": {"transport": "udp", "payload_bytes": 1000, "offered_rate_mbps": 8},
    "blocks": 4,
    "timing": {"idle_s": 1, "settle_s": 0.2, "warm_up_s": 1, "measure_s": 2, "tail_s": 0.3},
}


@pytest.fixture
def rig_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a workload and a topology; the lock and the history are in it."""
    return prepared(tmp_path, monkeypatch)


def prepared(folder: Path, patched: pytest.MonkeyPatch) -> Path:
    """The same of any folder."""
    (folder / "workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
    (folder / "rig.yaml").write_text(yaml.safe_dump(synthetic.topology().document))
    patched.chdir(folder)
    patched.setenv("NETJOULE_LOCKS", str(folder))
    patched.setattr(synthetic, "HOST", host_fingerprint())
    return folder


@pytest.fixture(scope="module")
def pilots_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a history has once a rig whose blocks scatter by 1.4 % had its pilot."""
    folder = tmp_path_factory.mktemp("pilot")
    with pytest.MonkeyPatch.context() as patched:
        prepared(folder, patched)
        rig = Rig(1.0, 0.014, random.Random(1), 0.005)
        code, verdict = gate(rig, patched, "pilot", "--pilot")
    assert (code, verdict["verdict"]) == (0, "pass"), verdict["words"]
    return folder / "results/history.sqlite"


@pytest.fixture
def rig(rig_folder: Path, pilots_history: Path) -> Rig:
    """Such a rig, unchanged."""
    return with_pilot(rig_folder, pilots_history, 1)


def with_pilot(folder: Path, history: Path, seed: int) -> Rig:
    """A rig that scatters by 1 %, with the pilot of that history."""
    (folder / "results").mkdir()
    shutil.copy(history, folder / "results")
    return Rig(1.0, 0.01, random.Random(seed), 0.005)


def gate(rig: Rig, monkeypatch: pytest.MonkeyPatch, out: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Run the command on a rig; its exit code and verdict.json."""
    monkeypatch.setattr(campaign_process, "run", rig.run)
    monkeypatch.setattr(launch, "draw_seed", lambda: 11)  # the order of runs is that of the rig's draws
    words = ["gate", "--base", "MODE=old", "--workload", "workload.yaml", "--testbed", "rig.yaml"]
    if "--pilot" not in options and "--head" not in options:
        words += ["--head", "MODE=new"]
    code = run_command([*words, "--out", out, *options])
    return code, json.loads((Path(out) / "verdict.json").read_text())


def test_an_unchanged_head_passes_and_says_one_line(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code, verdict = gate(rig, monkeypatch, "gate")
    assert (code, verdict["verdict"], len(verdict["sessions"])) == (0, "pass", 1)
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    require_the_same_anew(Path("gate"), verdict)


def test_a_regression_is_confirmed_and_written_in_every_format(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.effect = 1.05
    files = ("junit", "markdown", "openmetrics", "benchstat", "bencher")
    capsys.readouterr()
    options = [word for name in files for word in (f"--{name}", f"out.{name}")]
    code, verdict = gate(rig, monkeypatch, "gate", *options, "--annotations")
    assert (code, verdict["verdict"], len(verdict["sessions"])) == (1, "fail", 2)
    assert all(Path(f"out.{name}").stat().st_size for name in files)
    said = capsys.readouterr().out
    assert "::error" in said
    assert "rig tiny: no gate with the same base and head yet" in said
    require_the_same_anew(Path("gate"), verdict)
    assert run_command(["history", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"].split("-")[0] for row in rows if row.get("event") == "gate"] == ["pilot", "gate"]


def test_a_regression_that_only_warns_ends_with_0(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.effect = 1.05
    code, verdict = gate(rig, monkeypatch, "gate", "--warn-only")
    assert (code, verdict["verdict"], verdict["exit_code"]) == (0, "fail", 1)


def test_what_each_commit_hides_shows_against_a_release(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.anchor = 1 / 1.05
    code, verdict = gate(rig, monkeypatch, "gate", "--anchor", "MODE=release")
    assert (code, verdict["verdict"], verdict["reason"]["code"]) == (1, "fail", "anchor")
    assert verdict["ratio_low"] < 1 < verdict["ratio_high"]
    assert verdict["anchor"]["verdict"] == "fail"
    assert verdict["anchor"]["ratio_low"] > 1.01


def test_commits_are_built_and_nothing_of_them_is_left(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    git(Path(), "init", "-q", "-b", "main")
    for tag in ("v1", "v2"):
        Path("source").write_text(tag)
        git(Path(), "add", "source")
        git(Path(), "commit", "-q", "-m", tag)
        git(Path(), "tag", tag)
    code, verdict = gate(rig, monkeypatch, "gate", "--base", "v1", "--head", "main", "--build", BUILD)
    assert (code, verdict["verdict"], verdict["same_arms"]) == (0, "pass", False)
    hashes = [arm["sha256"] for arm in verdict["arms"]]
    assert {hashlib.sha256(source).hexdigest() for source in (b"v1", b"v2")} <= set(hashes)
    assert len(git(Path(), "worktree", "list").splitlines()) == 1


def test_a_setting_of_the_load_is_an_arm(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--base", "transport=udp", "--head", "transport=quic-datagram")
    code, verdict = gate(rig, monkeypatch, "gate", *options)
    assert (code, verdict["verdict"]) == (0, "pass")
    assert [arm["text"] for arm in verdict["arms"]] == [options[1], options[3]]
    assert {row["arm"] for row in table(Path("gate/session-1/plan.csv"))} == {"udp", "quic-datagram"}


def test_a_gate_without_a_pilot_is_skipped(rig_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(1.0, 0.01, random.Random(3))
    code, verdict = gate(rig, monkeypatch, "gate")
    assert (code, verdict["verdict"], verdict["reason"]["code"]) == (4, "skipped", "no_pilot")
    assert rig.sessions == []


def test_a_rig_that_scatters_too_much_gets_no_pilot(
    rig_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(1.0, 0.08, random.Random(4))
    code, verdict = gate(rig, monkeypatch, "pilot", "--pilot")
    assert (code, verdict["reason"]["code"], verdict["pilot"]["blocks"]) == (4, "pilot_too_wide", 24)
    code, verdict = gate(rig, monkeypatch, "gate")
    assert (code, verdict["reason"]["code"]) == (4, "pilot_too_wide")


def test_a_reference_workload_that_scatters_more_than_in_the_pilot_skips(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.reference_sd = 0.05
    code, verdict = gate(rig, monkeypatch, "gate")
    assert (code, verdict["verdict"], verdict["reason"]["code"]) == (4, "skipped", "rig_noisy")


def test_a_verdict_that_the_history_cannot_take_is_told_all_the_same(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "record", refuse)
    capsys.readouterr()
    code, verdict = gate(rig, monkeypatch, "gate", "--junit", "out.xml")
    assert (code, verdict["verdict"]) == (0, "pass")
    said = capsys.readouterr()
    assert "no regression" in said.out
    assert "netjoule history --record gate" in said.err
    assert Path("out.xml").exists()


def refuse(*_: object) -> bool:
    raise HostLacks("there is no room")


def test_a_rig_in_use_is_a_verdict_too(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with rig_lock.held(rig_lock.path_of("emulated"), "another", 0, print):
        code, verdict = gate(rig, monkeypatch, "gate", "--wait", "0", "--junit", "out.xml")
    assert (code, verdict["verdict"], verdict["reason"]["code"]) == (4, "skipped", "rig_busy")
    assert "another" in verdict["words"]
    assert Path("out.xml").exists()
    assert rig.sessions == []


def test_a_meter_that_is_lost_decides_nothing_and_the_next_gate_starts_clean(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rig.run

    def lost(*_: object) -> None:
        raise InvalidData("meter m stopped answering", code="session_failed")

    monkeypatch.setattr(rig, "run", lost)
    code, verdict = gate(rig, monkeypatch, "lost")
    assert (code, verdict["verdict"], verdict["reason"]["code"]) == (4, "skipped", "session_failed")
    assert "meter m stopped answering" in verdict["words"]
    monkeypatch.setattr(rig, "run", run)
    code, verdict = gate(rig, monkeypatch, "next")
    assert (code, [Path(row["folder"]).name for row in store.listed()]) == (0, ["pilot", "lost", "next"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--objective", "p99_delay", "--workload", "command.yaml"], "command does not measure it"),
        (["--junit", "out", "--markdown", "out"], "name one file"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_is_made(
    rig_folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    command = {name: WORKLOAD[name] for name in ("schema_version", "name", "blocks", "timing")}
    command |= {"load": "command", "factors": {}, "command": {"run": ["true"]}}
    Path("command.yaml").write_text(yaml.safe_dump(command))
    words = ["gate", "--base", "A=1", "--head", "A=2", "--workload", "workload.yaml", "--testbed", "rig.yaml"]
    assert run_command([*words, "--out", "gate", *options]) == 2
    assert said in capsys.readouterr().err
    assert not Path("gate").exists()


def test_the_history_of_another_program_is_refused_before_anything_is_measured(
    rig_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.sqlite").write_text("no database")
    words = ["gate", "--base", "A=1", "--head", "A=2", "--workload", "workload.yaml", "--testbed", "rig.yaml"]
    assert run_command([*words, "--out", "gate", "--history", "other.sqlite"]) == 3
    assert "no database of netjoule's history" in capsys.readouterr().err
    assert not Path("gate").exists()


def test_other_ranges_than_the_pilots_decide_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    passport = synthetic.passport()
    passport["range"] |= {"current_a": 2.0, "power_w": 30.0}
    monkeypatch.setattr(synthetic, "passport", lambda: passport)
    code, verdict = gate(rig, monkeypatch, "gate")
    assert (code, verdict["verdict"], verdict["reason"]["code"]) == (4, "skipped", "unlike_pilot")


def test_a_gate_of_one_program_counts_for_the_rate_of_false_alarms(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, verdict = gate(rig, monkeypatch, "same", "--head", "MODE=old")
    assert (code, verdict["same_arms"]) == (0, True)
    code, verdict = gate(rig, monkeypatch, "other")
    assert (code, verdict["same_arms"]) == (0, False)
    known = store.false_alarms("tiny")
    assert (known.fails, known.gates) == (0, 1)


def test_numbers_that_would_take_a_thousand_blocks_are_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_process, "run", rig.run)
    words = ["gate", "--base", "MODE=old", "--head", "MODE=new", "--workload", "workload.yaml"]
    assert run_command([*words, "--testbed", "rig.yaml", "--out", "gate", "--tolerance", "2.98"]) == 2
    assert rig.sessions == []


def test_a_gate_longer_than_allowed_is_refused_before_anything_runs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_process, "run", rig.run)
    before = list(rig.sessions)
    words = ["gate", "--base", "MODE=old", "--head", "MODE=new", "--workload", "workload.yaml"]
    words += ["--testbed", "rig.yaml", "--out", "gate"]
    assert run_command([*words, "--max-time", "0.1"]) == 2
    monkeypatch.setattr(worktrees, "ready", refuse)  # nothing is built for a gate that is too long
    assert run_command([*words, "--max-blocks", "5"]) == 2
    assert rig.sessions == before


def test_a_trend_that_cannot_be_found_is_told_and_the_verdict_stands(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trend, "is_there", lambda: True)
    monkeypatch.setattr(trend, "warnings_of", refuse)
    code, verdict = gate(rig, monkeypatch, "gate")
    assert (code, verdict["verdict"]) == (0, "pass")
    assert "netjoule: there is no room" in capsys.readouterr().err


@pytest.mark.parametrize(
    "trials", [pytest.param(2, id="few"), pytest.param(50, id="many", marks=pytest.mark.slow)]
)
def test_verdicts_are_those_of_a_second_computation_from_raw_files(
    rig_folder: Path, pilots_history: Path, monkeypatch: pytest.MonkeyPatch, trials: int
) -> None:
    for trial in range(trials):
        folder = rig_folder / str(trial)
        folder.mkdir()
        for name in ("workload.yaml", "rig.yaml"):
            (folder / name).write_text((rig_folder / name).read_text())
        monkeypatch.chdir(folder)
        rig = with_pilot(folder, pilots_history, trial)
        rig.sd = (0.01, 0.014)[trial % 2]
        rig.effect = (1.0, 1.03, 1.02, 1.06)[trial % 4]
        _, verdict = gate(rig, monkeypatch, "gate")
        require_the_same_anew(Path("gate"), verdict)


# --- the second computation -----------------------------------------------------------------------


def require_the_same_anew(folder: Path, verdict: dict[str, Any]) -> None:
    """Every session's looks, ratios and verdict out of plan.csv, run.json, meter and interval tables."""
    for session in verdict["sessions"]:
        campaign = folder / session["campaign"]
        document = json.loads((campaign / "campaign.json").read_text())
        asked = document["workload"]["gate"]
        ratios = list(block_ratios(campaign))
        found = boundaries.decide(ratios, asked["looks"], 1.03, 1.01)
        assert [look["verdict"] for look in session["looks"]] == [look.verdict for look in found]
        for told, own in zip(session["looks"], found, strict=True):
            assert told["critical_value"] == pytest.approx(own.critical_value, abs=1e-3)
            assert told["ratio"] == pytest.approx(own.ratio, rel=1e-6)
            assert told["ratio_low"] == pytest.approx(own.low, rel=1e-4)
            assert told["ratio_high"] == pytest.approx(own.high, rel=1e-4)
        assert session["verdict"] == found[-1].verdict
    wanted = [session["verdict"] for session in verdict["sessions"]]
    regression = wanted == ["fail", "fail"]
    assert (verdict["verdict"] == "fail") == regression
    assert (verdict["verdict"] == "pass") == (wanted == ["pass"])


def block_ratios(campaign: Path) -> Iterator[float]:
    """E_A of the head over that of the base of each block that ran, as definitions have it."""
    with (campaign / "plan.csv").open() as opened:
        plan = list(csv.DictReader(opened))
    with (campaign / "meters" / "m.csv").open() as opened:
        readings = [(float(row["t_s"]), float(row["power_w"])) for row in csv.DictReader(opened)]
    for block in sorted({int(row["block"]) for row in plan}):
        runs = {row["arm"]: campaign / "runs" / row["run_id"] for row in plan if int(row["block"]) == block}
        if all((folder / "run.json").exists() for folder in runs.values()):
            yield energy(runs["head"], readings) / energy(runs["base"], readings)


def energy(run: Path, readings: list[tuple[float, float]]) -> float:
    """E_A = (P_A - P_I) / T_A of a run, from readings that lie wholly in its windows."""
    windows = json.loads((run / "run.json").read_text())["windows"]

    def mean_w(name: str) -> float:
        # A reading covers the update before it was taken, and is told one update later.
        span = (windows[name]["t_start_s"], windows[name]["t_end_s"])
        inside = [w for t, w in readings if span[0] + 0.1 - 1e-6 <= t - 0.1 <= span[1] + 1e-6]
        return math.fsum(inside) / len(inside)

    with (run / "intervals.csv").open() as opened:
        rows = list(csv.DictReader(opened))
    start, end = windows["measure"]["t_start_s"], windows["measure"]["t_end_s"]
    work = math.fsum(
        float(row["work"])
        for row in rows
        if start - 1e-6 <= float(row["t_start_s"]) and float(row["t_end_s"]) <= end + 1e-6
    )
    idle_w = (mean_w("idle_before") + mean_w("idle_after")) / 2
    return (mean_w("measure") - idle_w) / (work / (end - start))
