# SPDX-License-Identifier: Apache-2.0
"""`run` and `resume`: a campaign from its files to its end."""

import json
import re
from pathlib import Path

import pytest
import synthetic
from golden_sentences import same_sentence
from stand_ins import lines, perfect

from netjoule.analysis import analysis, summary
from netjoule.cli import launch
from netjoule.cli.app import run_command
from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.execution import runner
from netjoule.execution.runner import Outcome
from netjoule.hosts import sandbox
from netjoule.store.campaign import Campaign
from netjoule.store.planfile import read_plan

ROOT = Path(__file__).parents[3]


def test_run_makes_a_campaign_and_says_where(files, tmp_path, inside, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run_campaign", perfect)
    assert run_command(["run", *files, "--seed", "5"]) == 0
    seen = capsys.readouterr()
    assert f"2 runs done, 0 invalid: {tmp_path / 'out'}" in seen.out
    assert "E_A 0.0625 ±0.004 J/Mb (modelled)" in seen.err
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["seed"] == 5


def test_run_gives_machines_one_document_per_line(files, inside, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run_campaign", perfect)
    assert run_command(["run", *files, "--json"]) == 0
    seen = capsys.readouterr()
    events = lines(seen.out)
    assert [e["event"] for e in events] == ["run_result", "run_result", "campaign"]
    assert events[0]["nodes"][0]["ea_j_per_mbit"] == 0.0625
    assert events[0]["remaining_s"] == 4.0
    assert seen.err == ""


def test_run_refuses_a_folder_that_holds_something(files, tmp_path, inside, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("")
    assert run_command(["run", *files]) == 2
    same_sentence(capsys.readouterr().err)


def test_a_missing_program_is_named_before_a_folder_is_made(files, tmp_path, inside, monkeypatch, capsys):
    def find(name):
        if name == "netjoule-link":
            raise HostLacks("the program netjoule-link is not on this host", next_step="make setup")
        return name

    monkeypatch.setattr(launch.programs, "find", find)
    assert run_command(["run", *files]) == 3
    same_sentence(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        (
            "capacity-alone",
            "give --testbed testbed/topologies/troubled-marriage-simulated.yaml, which the workload fits",
        ),
        ("capacity-nowhere", ""),
    ],
)
def test_a_workload_of_another_testbed_says_which_shipped_one_it_fits(tmp_path, capsys, name, elsewhere):
    asked = name
    if not elsewhere:
        text = (programs.shipped("workloads/flow/capacity-alone.yaml")).read_text()
        asked = tmp_path / f"{name}.yaml"
        asked.write_text(text.replace("practra-10,", "practra-11,"))
    assert run_command(["run", str(asked), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "emulated has no preset 'none' of scaling" in told
    assert elsewhere in told
    assert ("--testbed" in told) == bool(elsewhere)


def test_run_refuses_a_folder_that_the_sandbox_hides(files, inside, capsys):
    assert run_command(["run", *files[:-1], "/run/x"]) == 2
    same_sentence(capsys.readouterr().err)


def test_outside_the_sandbox_the_same_run_is_started_inside(files, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(sandbox, "run_inside", lambda argv: started.append(argv) or 7)
    assert run_command(["run", *files, "--seed", "5", "--json"]) == 7
    argv = started[0]
    assert argv[1:5] == ["-P", "-m", "netjoule", "run"]
    assert argv[argv.index("--out") + 1] == str(tmp_path / "out")
    assert argv[argv.index("--seed") + 1] == "5"
    assert "--json" in argv
    assert not (tmp_path / "out").exists()  # the campaign's lock belongs to the process inside


def test_a_drawn_seed_is_passed_inside(files, monkeypatch):
    started = []
    monkeypatch.setattr(sandbox, "run_inside", lambda argv: started.append(argv) or 0)
    run_command(["run", *files])
    run_command(["run", *files])
    seeds = [argv[argv.index("--seed") + 1] for argv in started]
    assert seeds[0] != seeds[1]


def test_a_stopped_campaign_says_how_to_go_on_and_does(files, tmp_path, inside, monkeypatch, capsys):
    def stopped(campaign, sink):
        session = synthetic.begin(campaign)
        row = campaign.rows()[0]
        synthetic.run_one(campaign, row, 1.0, [])
        campaign.set_status(row.run_id, "valid")
        campaign.end_session(
            session, end="stopped", monotonic_ns=synthetic.ORIGIN_NS + 10**10, utc=synthetic.START
        )
        return Outcome("stopped", 1, 0)

    monkeypatch.setattr(runner, "run_campaign", stopped)
    out = str(tmp_path / "out")
    assert run_command(["run", *files]) == 1
    assert f"go on with 'netjoule resume {out}'" in capsys.readouterr().err
    kept = {p: p.read_bytes() for p in (tmp_path / "out" / "runs").rglob("run.json")}
    assert len(kept) == 1
    monkeypatch.setattr(runner, "run_campaign", perfect)
    assert run_command(["resume", out]) == 0
    assert "2 runs done" in capsys.readouterr().out
    assert {p: p.read_bytes() for p in kept} == kept


@pytest.mark.parametrize("command", ["check", "analyse", "report"])
def test_whoever_reads_a_campaign_that_is_being_written_is_told(campaign_dir, monkeypatch, capsys, command):
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: None)
    monkeypatch.setattr(summary, "tell", lambda *_: None)
    said = f"another netjoule is writing {campaign_dir}: what follows is of the part that is there by now\n"
    with Campaign.open(campaign_dir):
        assert run_command([command, str(campaign_dir)]) == 0
        assert said in capsys.readouterr().err
    assert run_command([command, str(campaign_dir)]) == 0
    assert "another netjoule" not in capsys.readouterr().err


def test_resume_of_a_finished_campaign_has_nothing_to_do(campaign_dir, inside, capsys):
    assert run_command(["resume", str(campaign_dir)]) == 0
    assert "all 2 runs are finished" in capsys.readouterr().out


def test_resume_says_what_it_cut_and_what_it_runs_again(campaign_dir, inside, monkeypatch, capsys):
    readings = campaign_dir / "meters" / "m.csv"
    readings.write_bytes(readings.read_bytes()[:705])
    torn = 705 - 1 - readings.read_bytes().rfind(b"\n")
    assert torn
    monkeypatch.setattr(runner, "run_campaign", perfect)
    assert run_command(["resume", str(campaign_dir)]) == 0
    said = capsys.readouterr().out
    assert f"{readings}: cut {torn} bytes of an unfinished last line; what is left ends at " in said
    left, until = re.search(r"ends at (\S+) s of (\S+) s\n", said).groups()
    assert float(left) == float(readings.read_text().splitlines()[-1].split(",")[0]) < float(until)
    for row in read_plan(campaign_dir):
        assert f"run {row.run_id} is run again: meter m: readings cover" in said
    assert "are finished" not in said


def test_invalid_runs_that_no_repeat_cured_are_counted_by_reason(files, inside, monkeypatch, capsys):
    def unlucky(campaign, sink):
        while (mini := campaign.next_mini_block()) is not None:
            for row in mini.missing:
                lucky = row.arm == "udp"
                campaign.set_status(row.run_id, "valid" if lucky else "invalid", "" if lucky else "meter_gap")
        return Outcome("complete", 1, 3)

    monkeypatch.setattr(runner, "run_campaign", unlucky)
    assert run_command(["run", *files]) == 0
    assert "1 run done, 1 invalid" in (text := capsys.readouterr().out)
    assert "1 x meter_gap" in text


def test_a_campaign_without_one_valid_run_is_invalid_data(files, inside, monkeypatch, capsys):
    def hopeless(campaign, sink):
        while (mini := campaign.next_mini_block()) is not None:
            for row in mini.missing:
                campaign.set_status(row.run_id, "invalid", "meter_gap")
        return Outcome("complete", 0, 6)

    monkeypatch.setattr(runner, "run_campaign", hopeless)
    assert run_command(["run", *files]) == 4
    same_sentence(capsys.readouterr().err)


def test_a_failed_campaign_exits_1_and_what_the_host_lacks_exits_3(files, inside, monkeypatch, capsys):
    def fails(campaign, sink):
        raise RunFailed("netjoule-link ended", next_step="see events.csv", code="link_stopped")

    monkeypatch.setattr(runner, "run_campaign", fails)
    assert run_command(["run", *files]) == 1
    assert capsys.readouterr().err == "netjoule: netjoule-link ended; see events.csv\n"

    def lacks(argv):
        raise HostLacks("no namespaces")

    monkeypatch.setattr(sandbox, "inside", lambda: None)
    monkeypatch.setattr(sandbox, "run_inside", lacks)
    assert run_command(["run", *files[:-1], files[-1] + "2"]) == 3
