# SPDX-License-Identifier: Apache-2.0
"""What tells of a campaign: `demo`, `quick`, `analyse`, `report`."""

import json
import os
import shutil
from pathlib import Path

import pytest
from golden_sentences import same_sentence
from stand_ins import fake_r, lines, perfect

from netjoule.analysis import analysis
from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks
from netjoule.execution import runner
from netjoule.hosts import sandbox

ROOT = Path(__file__).parents[3]


def test_demo_runs_analyses_and_prints_the_table_and_the_files(tmp_path, inside, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run_campaign", perfect)
    monkeypatch.setattr(analysis, "run_analysis", fake_r)
    monkeypatch.setattr(analysis, "require_r", lambda: None)
    assert run_command(["demo", "--out", str(tmp_path / "demo")]) == 0
    text = capsys.readouterr().out
    assert "90 runs done" in text
    assert "power modelled by device model laptop-cpu" in text
    assert "radio link-model" in text
    udp = next(line for line in text.splitlines() if "udp" in line)
    assert udp.split() == ["udp", "64", "3", "0.123", "0.0034", "0.004", "1.5%", "3"]
    assert "0.05 * °" in text  # one of three runs below resolution, and extrapolated
    assert "< 0.08" in text  # all of them below it: an upper limit
    assert "null" not in text
    assert "In this model" in text
    assert text.splitlines()[-2:] == [
        f"1 figure: {tmp_path / 'demo/figures'}",
        f"report: {tmp_path / 'demo/report.html'}",
    ]


def test_quick_runs_what_was_typed_and_leaves_the_workload_that_does_the_same(
    tmp_path, inside, monkeypatch, capsys
):
    monkeypatch.setattr(runner, "run_campaign", perfect)
    monkeypatch.setattr(analysis, "run_analysis", fake_r)
    monkeypatch.setattr(analysis, "require_r", lambda: None)
    out = tmp_path / "new" / "q"
    typed = ["quick", "udp,tcp", "-b", "6M,500k", "-l", "64,1440", "--blocks", "2", "-t", "3"]
    assert run_command([*typed, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "24 runs, " in text
    assert "E_A of client" in text
    assert text.splitlines()[-1] == f"the same again: netjoule run {out}.yaml"
    first = json.loads((out / "campaign.json").read_text())
    asked = first["workload"]
    factors = asked["factors"]
    assert (factors["transport"], asked["control"]) == (["udp", "tcp"], True)
    assert (factors["offered_rate_mbps"], factors["payload_bytes"]) == ([6.0, 0.5], [64, 1440])
    assert (asked["blocks"], asked["timing"]["measure_s"]) == (2, 3)
    assert run_command(["run", f"{out}.yaml", "--out", str(tmp_path / "again")]) == 0
    again = json.loads((tmp_path / "again" / "campaign.json").read_text())
    assert again["workload"] == asked
    assert again["seed"] == first["seed"]
    assert (tmp_path / "again" / "plan.csv").read_text() == (out / "plan.csv").read_text()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["udp", "-b", "fast"], "-b: 'fast' is no rate; say for example 6M"),
        (["udp", "-b", "0"], "-b: '0' is no rate"),
        (["udp", "-l", "1k"], "-l: '1k' is no number of bytes"),
        (["udp,tpc"], "there is no transport 'tpc', did you mean 'tcp'?"),
        (["dccp", "-l", "1441"], "carries 1440 bytes"),
        (["null"], "no transport but null"),
    ],
)
def test_what_quick_cannot_do_leaves_no_file(typed, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(analysis, "require_r", lambda: None)
    assert run_command(["quick", *typed, "--out", str(tmp_path / "q")]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_run_ends_with_the_table_and_the_next_command(files, tmp_path, monkeypatch, capsys):
    def ran(argv):  # what the process inside the sandbox does
        with monkeypatch.context() as entered:
            entered.setattr(sandbox, "inside", lambda: "rootless")
            return run_command(argv[argv.index("netjoule") + 1 :])

    monkeypatch.setattr(sandbox, "inside", lambda: None)
    monkeypatch.setattr(sandbox, "run_inside", ran)
    monkeypatch.setattr(runner, "run_campaign", perfect)
    monkeypatch.setattr(analysis, "run_analysis", fake_r)
    assert run_command(["run", *files]) == 0
    text = capsys.readouterr().out
    assert text.count("E_A of client") == 1
    assert text.splitlines()[-1] == f"next: netjoule report {tmp_path / 'out'}"

    assert run_command(["report", str(tmp_path / "out")]) == 0
    assert run_command(["analyse", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"next: open {tmp_path / 'out/report.html'}"
    os.utime(tmp_path / "out" / "report.html", (0, 0))  # of what the campaign was before it went on
    assert run_command(["analyse", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"next: netjoule report {tmp_path / 'out'}"

    def lacks(*_, **__):
        raise HostLacks("Rscript is not on this host", next_step="make setup")

    monkeypatch.setattr(analysis, "run_analysis", lacks)
    assert run_command(["resume", str(tmp_path / "out")]) == 0  # the campaign is whole; only its table is not
    seen = capsys.readouterr()
    assert "no table: Rscript is not on this host; make setup" in seen.err
    assert seen.out.splitlines()[-1] == f"next: netjoule analyse {tmp_path / 'out'}"


def test_demo_tries_r_before_it_measures(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(tmp_path))
    (tmp_path / "Rscript").write_text(
        "#!/bin/sh\necho 'The R package netjoule is not installed.' >&2; exit 1\n"
    )
    (tmp_path / "Rscript").chmod(0o755)
    monkeypatch.setattr(sandbox, "run_inside", lambda argv: pytest.fail("nothing is measured without R"))
    assert run_command(["demo", "--out", str(tmp_path / "demo")]) == 3
    same_sentence(capsys.readouterr().err)


def test_demo_with_a_failed_run_is_not_analysed(tmp_path, inside, monkeypatch):
    monkeypatch.setattr(analysis, "require_r", lambda: None)
    monkeypatch.setattr(sandbox, "inside", lambda: None)
    monkeypatch.setattr(sandbox, "run_inside", lambda argv: 1)
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: pytest.fail("nothing to analyse"))
    assert run_command(["demo", "--out", str(tmp_path / "demo")]) == 1


def test_analyse_gives_machines_rows_and_files(campaign_dir, monkeypatch, capsys):
    monkeypatch.setattr(analysis, "run_analysis", fake_r)
    assert run_command(["analyse", str(campaign_dir), "--json"]) == 0
    events = lines(capsys.readouterr().out)
    assert [e["event"] for e in events] == ["table", "warning", "ea", "ea", "ea", "ea", "file"]
    assert (events[1]["code"], events[1]["of_runs"]) == ("floor_large", 1)
    assert events[2]["ea_j_per_mbit_mean"] == 0.1234
    assert events[2]["hollow"] is False
    assert events[2]["ea_upper_limit_j_per_mbit"] is None


def test_two_campaigns_are_laid_over_each_other_in_a_file_named_for_both(
    tmp_path, campaign_dir, monkeypatch, capsys
):
    other = shutil.copytree(campaign_dir, tmp_path / "after")
    asked = []
    monkeypatch.setattr(analysis, "run_overlay", lambda *given: asked.append(given[:3]))
    monkeypatch.chdir(tmp_path)
    assert run_command(["report", str(campaign_dir), str(other)]) == 0
    name = f"report-{campaign_dir.name}-and-after.html"
    assert asked == [(campaign_dir, other, Path(name))]
    assert name in capsys.readouterr().out
    assert run_command(["report", str(campaign_dir), str(other), "--out", "x.html"]) == 0
    assert asked[1][2] == Path("x.html")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["A", "A"], 2, "is given twice"),
        (["A", "./A"], 2, "is given twice"),
        (["A", "B", "C"], 2, "not of 3; name one or two campaigns"),
        (["A", "nowhere"], 2, "nowhere is not a campaign"),
        (["A", "B", "--margin", "5%"], 2, "--margin needs a single campaign"),
        (["A", "--out", "x.html"], 2, "--out needs two campaigns"),
        (["A", "B", "--out", "B"], 2, "B is a folder"),
        (["A", "B", "--out", "none/x.html"], 1, "cannot be written into none"),
    ],
)
def test_what_cannot_be_laid_over_each_other_is_said_before_r_is_started(
    words, code, message, tmp_path, campaign_dir, monkeypatch, capsys
):
    for name in "ABC":
        shutil.copytree(campaign_dir, tmp_path / name)
    monkeypatch.setattr(analysis, "run_overlay", lambda *_: pytest.fail("R is not needed for that"))
    monkeypatch.chdir(tmp_path)
    assert run_command(["report", *words]) == code
    assert message in capsys.readouterr().err
