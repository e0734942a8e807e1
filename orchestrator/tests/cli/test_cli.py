# SPDX-License-Identifier: Apache-2.0
import errno
import json
import re
import shutil
import signal
from pathlib import Path

import pytest
import synthetic
import yaml
from typer.testing import CliRunner

from netjoule.analysis import analysis, summary
from netjoule.cli import app, launch, plan
from netjoule.cli.app import run_command
from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.execution import runner
from netjoule.execution.progress import ProgressEvent
from netjoule.execution.runner import Outcome
from netjoule.hosts import sandbox
from netjoule.store.campaign import Campaign
from netjoule.store.planfile import read_plan

ROOT = Path(__file__).parents[3]
COMMANDS = ["demo", "quick", "measure", "plan", "run", "resume", "check", "analyse", "report"]
COMMANDS += ["table-iv", "import", "publish"]
COMMANDS += ["meters", "provision", "doctor", "selftest", "savings", "glossary", "coursework", "guest"]


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


# -- signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_any_moment_ends_the_command_and_is_told(capsys, monkeypatch, number):
    monkeypatch.setattr(launch, "resume", lambda *_, **__: signal.raise_signal(number))
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended:
        app.main(["resume", "x"])
    assert (ended.value.code, capsys.readouterr().err) == (
        128 + number,
        f"netjoule: stopped by {number.name}\n",
    )
    assert signal.getsignal(number) is before


def test_the_end_of_the_command_in_the_sandbox_is_told_once(capsys, monkeypatch):
    monkeypatch.setattr(launch, "resume", lambda *_, **__: 128 + signal.SIGKILL)
    for inside, said in (("root", ""), (None, "netjoule: stopped by SIGKILL\n")):
        monkeypatch.setattr(sandbox, "inside", lambda inside=inside: inside)
        with pytest.raises(SystemExit):
            app.main(["resume", "x"])
        assert capsys.readouterr().err == said


# -- help and usage ---------------------------------------------------------------------------------


def test_the_commands_are_those_of_this_build(capsys):
    assert run_command(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2].split("\n")
    assert [line.split()[0] for line in listed if line.strip()] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_short_help_with_an_example(command, capsys):
    assert run_command([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Example: netjoule {command}" in text
    assert len(text.splitlines()) < 25


@pytest.mark.parametrize("command", COMMANDS)
def test_help_also_works_through_typer_itself(command):
    assert CliRunner().invoke(app.app, [command, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--seed", "3"], "Missing argument 'WORKLOAD'"),
        (["run", "demo", "--speed", "3"], "No such option: --speed"),
        (["fly"], "No such command 'fly'"),
        (["analyze"], "No such command 'analyze'. Did you mean 'analyse'? see 'netjoule --help'"),
        (["run", "demo", "--sede", "3"], "No such option: --sede (Possible options: --seed"),
        (["plan", "dmo"], "no workload 'dmo', did you mean 'demo'? name a YAML file"),
        (["run", "demo", "--seed", "x"], "Invalid value for '--seed'"),
        (["compare"], "No such command 'compare'"),
        (["plan", "nope"], "no workload 'nope'"),
        (["check", "nowhere"], "nowhere is not a campaign"),
        (["resume", "nowhere"], "nowhere is not a campaign"),
        (["analyse", "nowhere"], "nowhere is not a campaign"),
        (["glossary", "xyzzy"], "the glossary has no 'xyzzy'"),
    ],
)
def test_usage_errors_are_one_line_on_stderr_and_exit_2(words, message, capsys):
    assert run_command(words) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    assert message in seen.err


@pytest.mark.parametrize("group", [[], ["coursework"], ["guest"]])
def test_a_bare_command_prints_its_help(group, capsys):
    assert run_command(group) == 0
    seen = capsys.readouterr()
    assert seen.out.startswith(f"Usage: {' '.join(['netjoule', *group])} [OPTIONS] COMMAND")
    assert seen.err == ""


@pytest.mark.parametrize(
    "words",
    [
        *([name] for name in ("plan", "run", "resume", "check", "analyse", "report", "import", "publish")),
        *([name] for name in ("table-iv", "quick")),
        ["coursework", "check"],
        ["guest", "run"],
    ],
)
def test_a_command_that_needs_an_argument_prints_its_help_without_any(words, capsys):
    assert run_command(words) == 0
    seen = capsys.readouterr()
    assert seen.out.startswith(f"Usage: {' '.join(['netjoule', *words])} [OPTIONS]")
    assert seen.err == ""


def test_v_shows_what_caused_an_error_wherever_it_stands(tmp_path, capsys):
    (tmp_path / "campaign.json").write_text("{")
    for words in (["-v", "resume", str(tmp_path)], ["resume", str(tmp_path), "-v"]):
        assert run_command(words) == 4
        seen = capsys.readouterr().err.splitlines()
        assert "campaign.json, line 1: not JSON" in seen[0]
        assert seen[1].startswith("  caused by Unreadable")
    assert run_command(["resume", str(tmp_path)]) == 4
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_defect_of_our_own_is_one_line_too(monkeypatch, capsys):
    monkeypatch.setattr(launch, "load_inputs", lambda *_: 1 / 0)
    assert run_command(["plan", "demo"]) == 1
    assert "ZeroDivisionError: division by zero; this is a defect of netjoule" in capsys.readouterr().err


def test_a_folder_that_is_not_ours_to_look_into_is_no_defect_of_ours(monkeypatch, capsys):
    def closed(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "/somewhere/x")

    monkeypatch.setattr(launch, "load_inputs", closed)
    assert run_command(["-v", "plan", "demo"]) == 1
    first, *causes = capsys.readouterr().err.splitlines()
    assert first.startswith("netjoule: cannot use /somewhere/x: permission denied; check who owns")
    assert causes[0].startswith("  caused by PermissionError")


def test_version(capsys):
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out == "netjoule 0.1.0\n"


# -- plan, check, glossary --------------------------------------------------------------------------


def test_plan_says_runs_time_and_least_p(capsys):
    assert run_command(["plan", "table-i"]) == 0
    text = capsys.readouterr().out
    assert "9600 = 1920 mini-blocks x 5 transports, 40 blocks" in text
    assert "days" in text
    assert "1.82e-12 possible with 40 blocks (sign-flip test); 1.09e-11 after Holm over 6 tests" in text


def test_a_plan_of_one_run_has_no_plural(tmp_path, capsys):
    asked = yaml.safe_load((ROOT / "workloads/flow/skype.yaml").read_text())
    one = {"control": False, "blocks": 1, "flow": {}}
    factors = {"transport": "udp", "payload_bytes": 300, "offered_rate_mbps": 1}
    (tmp_path / "w.yaml").write_text(yaml.safe_dump(asked | one | {"factors": factors}))
    assert run_command(["plan", str(tmp_path / "w.yaml")]) == 0
    assert "1 = 1 mini-block x 1 transport, 1 block\n" in capsys.readouterr().out


def test_plan_rows_are_those_that_run_will_execute(capsys):
    assert run_command(["plan", "demo", "--seed", "3", "--rows", "--json"]) == 0
    first, *rows = lines(capsys.readouterr().out)
    assert first["event"] == "plan"
    assert first["runs"] == 90
    expected = plan.plan_rows(launch.load_inputs("demo", None), 3)
    assert [r["run_id"] for r in rows] == [r.run_id for r in expected]


def test_a_missing_generator_is_answered_with_exit_3_and_its_package(tmp_path, monkeypatch, capsys):
    document = synthetic.workload(transports=["udp", "null"], generator="ditg").document
    (tmp_path / "w.yaml").write_text(json.dumps(document))
    monkeypatch.setattr(programs.shutil, "which", lambda _name: None)
    assert run_command(["run", str(tmp_path / "w.yaml"), "--out", str(tmp_path / "out")]) == 3
    assert "ITGSend is not on this host; install the package d-itg" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_plan_knows_how_much_dccp_carries(tmp_path, capsys):
    document = synthetic.workload(transports=["dccp"], payload_bytes=[1441]).document
    (tmp_path / "w.yaml").write_text(json.dumps(document))
    assert run_command(["plan", str(tmp_path / "w.yaml")]) == 2
    assert "dccp (ccid 3, carrier udp) over IPv4, MTU 1500, carries 1440 bytes" in capsys.readouterr().err


def test_check_exits_0_or_4(campaign_dir, capsys):
    assert run_command(["check", str(campaign_dir)]) == 0
    assert capsys.readouterr().out == f"{campaign_dir}: no defects\n"
    (campaign_dir / "datapackage.json").unlink()
    assert run_command(["check", str(campaign_dir)]) == 4
    seen = capsys.readouterr()
    assert seen.out == "datapackage.json: the file is missing\n"
    assert "1 defect" in seen.err
    assert run_command(["check", str(campaign_dir), "--json"]) == 4
    assert [e["event"] for e in lines(capsys.readouterr().out)] == ["defect", "checked"]


def test_check_of_a_campaign_that_is_not_whole_says_how_much_is_there(campaign_dir, capsys):
    table = campaign_dir / "status.csv"
    first = read_plan(campaign_dir)[0].run_id
    lines_of_others = [x for x in table.read_text().splitlines(keepends=True) if first not in x]
    table.write_text("".join(lines_of_others))
    document = json.loads((campaign_dir / "campaign.json").read_text())
    (campaign_dir / "campaign.json").write_text(json.dumps(document | {"status": "interrupted"}))
    for run in (campaign_dir / "runs").iterdir():
        if run.name == first:
            shutil.rmtree(run)
            (campaign_dir / "datapackage.json").unlink()
    assert run_command(["check", str(campaign_dir)]) == 4
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "incomplete: 1 of 2 runs; 'netjoule resume" in seen.err
    assert run_command(["check", str(campaign_dir), "--json"]) == 4
    (told,) = lines(capsys.readouterr().out)
    assert (told["defects"], told["unfinished"]) == (0, "incomplete: 1 of 2 runs")


@pytest.mark.parametrize(
    "name",
    [
        *("analysis-r/exec/analyse.R", ".Rprofile", "tables/json.py", "devices/sitecustomize.py"),
        *("group_vars/all.yml", "meters/wt210.csv.sh", "tab\tname"),
    ],
)
def test_check_names_files_that_are_none_of_a_campaigns(campaign_dir, capsys, name):
    (campaign_dir / name).parent.mkdir(parents=True, exist_ok=True)
    (campaign_dir / name).write_text("")
    assert run_command(["check", str(campaign_dir)]) == 0
    shown = name.replace("\t", "\\t")
    assert f"{shown}: none of a campaign's files: netjoule never reads it\n" in capsys.readouterr().out
    run_command(["check", str(campaign_dir), "--json"])
    assert [(e["event"], e.get("file")) for e in lines(capsys.readouterr().out)][-2:] == [
        ("foreign_file", name),
        ("checked", None),
    ]


def test_glossary_explains_words_with_units(capsys):
    assert run_command(["glossary", "floor_w"]) == 0
    assert "generator floor (floor_w) [W]" in capsys.readouterr().out


# -- run, resume ------------------------------------------------------------------------------------


@pytest.fixture
def inside(monkeypatch):
    """As if the sandbox were entered already; the testbed itself is replaced by each test."""
    monkeypatch.setattr(sandbox, "inside", lambda: "rootless")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "t.yaml").write_text(json.dumps(synthetic.topology().document))
    (tmp_path / "w.yaml").write_text(json.dumps(synthetic.workload().document))
    return [str(tmp_path / "w.yaml"), "--testbed", str(tmp_path / "t.yaml"), "--out", str(tmp_path / "out")]


def perfect(campaign, sink):
    """A runner whose runs are all done at once."""
    session = synthetic.begin(campaign)
    t_s = 1.0
    total = len(campaign.rows())
    node = {"meter_id": "m", "ea_j_per_mbit": 0.0625, "u95_ea_j_per_mbit": 0.004, "power_source": "modelled"}
    for done, row in enumerate(campaign.rows(), start=1):
        if row.status != "valid":
            t_s = synthetic.run_one(campaign, row, t_s, [])
            campaign.set_status(row.run_id, "valid")
            sink(ProgressEvent("run_result", t_s, done, total, 4.0, row, "valid", [node]))
    campaign.end_session(
        session, end="complete", monotonic_ns=synthetic.ORIGIN_NS + 10**11, utc=synthetic.START
    )
    return Outcome("complete", total, 0)


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
    assert "exists and is not empty; choose another --out" in capsys.readouterr().err


def test_a_missing_program_is_named_before_a_folder_is_made(files, tmp_path, inside, monkeypatch, capsys):
    def find(name):
        if name == "netjoule-link":
            raise HostLacks("the program netjoule-link is not on this host", next_step="make setup")
        return name

    monkeypatch.setattr(launch.programs, "find", find)
    assert run_command(["run", *files]) == 3
    assert "the program netjoule-link is not on this host; make setup" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_run_refuses_a_folder_that_the_sandbox_hides(files, inside, capsys):
    assert run_command(["run", *files[:-1], "/run/x"]) == 2
    assert "lies under /run" in capsys.readouterr().err


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
    assert "no run of the campaign is valid" in capsys.readouterr().err


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


# -- demo, analyse, report --------------------------------------------------------------------------

SUMMARY = (
    "node,meter_id,device_model,power_source,radio_source,transport,payload_bytes,offered_rate_mbps,n,"
    "ea_j_per_mbit_mean,ea_ci95_low,ea_ci95_high,u95_meter,loss_ratio,below_resolution_n,hollow,"
    "ea_upper_limit_j_per_mbit\n"
    "client,m,laptop-cpu,modelled,link-model,udp,64,3,3,0.1234,0.12,0.1268,0.004,0.015,0,FALSE,\n"
    "client,m,laptop-cpu,modelled,link-model,quic,1440,30,3,0.05,0.04,0.06,0.01,0,1,TRUE,0.08\n"
    "client,m,laptop-cpu,modelled,link-model,tcp,64,1,3,0.05,0.04,0.06,0.03,0,3,FALSE,0.08\n"
    "client,m,laptop-cpu,modelled,link-model,null,64,3,3,,,,,,0,FALSE,\n"
)


def fake_r(verb, campaign, sink, *, margin_percent):
    """Stands for the R program: writes what it would."""
    for name, text in (("tables/ea_summary.csv", SUMMARY), ("figures/ea.svg", "<svg/>")):
        (campaign / name).parent.mkdir(exist_ok=True)
        (campaign / name).write_text(text)
    if verb == "report":
        (campaign / "report.html").write_text("<html>")
    sink({"event": "table", "path": "tables/ea_summary.csv"})


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
        (["udp,tpc"], "'tpc' is not one of"),
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
    assert "R: The R package netjoule is not installed; run 'make setup'" in capsys.readouterr().err


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


# -- meters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "handed"),
    [
        (["meters", "probe", "--host", "plug", "--json"], ["probe", "--host", "plug", "--json"]),
        (["meters", "read", "--help"], ["read", "--help"]),
        (["meters"], ["--help"]),
    ],
)
def test_meters_becomes_netjoule_meters(words, handed, monkeypatch):
    became = []
    monkeypatch.setattr(programs, "find", lambda name: f"/bin/{name}")
    monkeypatch.setattr("os.execv", lambda program, argv: became.append((program, argv)))
    assert run_command(words) == 0
    assert became == [("/bin/netjoule-meters", ["/bin/netjoule-meters", *handed])]
