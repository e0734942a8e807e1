# SPDX-License-Identifier: Apache-2.0
import errno
import json
import shutil
import signal
from pathlib import Path

import pytest
import runner_fakes
import synthetic
import yaml
from golden_sentences import same_sentence
from stand_ins import lines
from typer.testing import CliRunner

from netjoule.cli import app, launch
from netjoule.cli.app import run_command
from netjoule.core import programs
from netjoule.core.errors import RunFailed
from netjoule.design import run_table
from netjoule.hosts import sandbox
from netjoule.store.planfile import read_plan

ROOT = Path(__file__).parents[3]
COMMANDS = ["demo", "quick", "measure", "plan", "run", "resume", "check", "analyse", "report"]
COMMANDS += ["compare", "gate", "history", "table-iv", "import", "publish"]
COMMANDS += ["meters", "provision", "doctor", "selftest", "savings", "glossary", "coursework", "guest"]


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
    assert len(text.splitlines()) < (50 if command == "gate" else 25)  # it has 24 options


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
        (["run", "demo", "--sede", "3"], "No such option: --sede (Possible options: --scheduler, --seed"),
        (["plan", "dmo"], "no workload 'dmo', did you mean 'demo'? name a YAML file"),
        (["run", "demo", "--seed", "x"], "Invalid value for '--seed'"),
        (["compares"], "No such command 'compares'. Did you mean 'compare'?"),
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
    same_sentence(capsys.readouterr().err)


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
    expected = run_table.expand(launch.load_inputs("demo", None).workload, 3)
    assert [r["run_id"] for r in rows] == [r.run_id for r in expected]


def test_a_missing_generator_is_answered_with_exit_3_and_its_package(tmp_path, monkeypatch, capsys):
    document = synthetic.workload(transports=["udp", "null"], generator="ditg").document
    (tmp_path / "w.yaml").write_text(json.dumps(document))
    monkeypatch.setattr(programs.shutil, "which", lambda _name, path=None: None)
    assert run_command(["run", str(tmp_path / "w.yaml"), "--out", str(tmp_path / "out")]) == 3
    same_sentence(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_plan_knows_how_much_dccp_carries(tmp_path, capsys):
    document = synthetic.workload(transports=["dccp"], payload_bytes=[1441]).document
    (tmp_path / "w.yaml").write_text(json.dumps(document))
    assert run_command(["plan", str(tmp_path / "w.yaml")]) == 2
    same_sentence(capsys.readouterr().err)


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


def test_check_of_a_campaign_in_which_nothing_went_well_says_so(tmp_path, capsys):
    def on_open(_spec):
        raise RunFailed("no answer", code="generator_failed")

    script, once = runner_fakes.Script(on_open=on_open), {"max_attempts": 1}
    load = runner_fakes.workload(offered_rate_mbps=[1], limits=once)
    with runner_fakes.new_campaign(tmp_path / "c", load) as campaign:
        runner_fakes.run(campaign, script)
    (tmp_path / "c" / "devices").mkdir()
    (tmp_path / "c" / "devices" / "m0.ndjson").touch()
    assert run_command(["check", str(tmp_path / "c")]) == 4
    seen = capsys.readouterr()
    assert seen.out == ""
    same_sentence(seen.err)
    assert run_command(["check", str(tmp_path / "c"), "--json"]) == 4
    (told,) = lines(capsys.readouterr().out)
    assert (told["defects"], told["valid"]) == (0, 0)


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
