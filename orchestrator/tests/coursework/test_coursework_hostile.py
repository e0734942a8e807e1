# SPDX-License-Identifier: Apache-2.0
"""What is handed in may be anything: it is refused in one sentence, and nothing of it is executed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import coursework_folders as folders
import pytest
from golden_sentences import same_sentence

from netjoule.cli.app import run_command
from netjoule.store import folder_limits

ESCAPE = "\x1b[31mred\x1b[0m\u202e"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coursework")
    folders.fly(folder, "envelope", folders.designs()["envelope"])
    return folder


@pytest.fixture
def handed_in(finished, tmp_path):
    folder = tmp_path / "coursework"
    shutil.copytree(finished, folder)
    folders.answer(folder, {"envelope": {"udp_ea_j_per_mbit": 0.1}})
    return folder


def refused(folder, capfd, code=4):
    """The one sentence of a refusal; it holds nothing that a terminal would obey."""
    assert run_command(["coursework", "check", str(folder), "-v"]) == code
    seen = capfd.readouterr()
    assert seen.err.count("\n") == 1
    assert seen.err.rstrip("\n").isprintable()
    assert "defect of netjoule" not in seen.err
    assert "Traceback" not in seen.out + seen.err
    return seen.err


# -- the folder -------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_a_wrong_command(tmp_path, capfd):
    same_sentence(refused(tmp_path / "nowhere", capfd, code=2))
    (tmp_path / "file").write_text("x")
    same_sentence(refused(tmp_path / "file", capfd, code=2))


def test_a_folder_without_answers_is_no_coursework(tmp_path, capfd):
    said = refused(tmp_path, capfd)
    same_sentence(said)


def test_a_link_for_answers_is_not_followed(handed_in, tmp_path, capfd):
    secret = tmp_path / "secret.yaml"
    secret.write_text("topsecret: true\n")
    (handed_in / "answers.yaml").unlink()
    (handed_in / "answers.yaml").symlink_to(secret)
    said = refused(handed_in, capfd)
    same_sentence(said)
    assert "topsecret" not in said


def test_a_dangling_link_is_a_link_too(handed_in, capfd):
    (handed_in / "answers.yaml").unlink()
    (handed_in / "answers.yaml").symlink_to("nowhere")
    same_sentence(refused(handed_in, capfd))


@pytest.mark.parametrize(
    "place",
    [
        "envelope",
        "envelope/campaign.json",
        "envelope/runs",
        "envelope/figures",
    ],
)
def test_links_in_a_campaign_are_not_followed(handed_in, finished, place, capfd):
    path = handed_in / place
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(finished / place)
    said = refused(handed_in, capfd)
    same_sentence(said)
    assert str(path) in said


@pytest.mark.parametrize(
    "place", ["answers.yaml", "envelope/campaign.json", "envelope/runs/pipe", "envelope"]
)
def test_a_pipe_is_not_waited_for(handed_in, place, capfd):
    path = handed_in / place
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    os.mkfifo(path)
    said = refused(handed_in, capfd)
    assert "no plain file" in said or "a FIFO, a socket or a device" in said or "a pipe stands where" in said


def test_a_folder_for_answers_is_refused(handed_in, capfd):
    (handed_in / "answers.yaml").unlink()
    (handed_in / "answers.yaml").mkdir()
    same_sentence(refused(handed_in, capfd))


def test_what_is_too_big_is_not_read(handed_in, capfd):
    with (handed_in / "envelope/meters/client-cpu.csv").open("r+b") as handle:
        handle.truncate(10**9)  # sparse
    same_sentence(refused(handed_in, capfd))
    (handed_in / "answers.yaml").write_bytes(b"#" * 200_000)
    same_sentence(refused(handed_in, capfd))


def test_too_many_files_or_levels_are_refused(handed_in, monkeypatch, capfd):
    deep = handed_in / "envelope/runs" / "/".join("abcdefghijklm")
    deep.mkdir(parents=True)
    same_sentence(refused(handed_in, capfd))
    monkeypatch.setattr(folder_limits, "MOST_FILES", 50)
    shutil.rmtree(handed_in / "envelope/runs/a")
    assert "more than 50 files" in refused(handed_in, capfd)


def test_hostile_names_are_written_out(handed_in, capfd):
    (handed_in / "envelope" / ESCAPE).symlink_to("/")
    said = refused(handed_in, capfd)
    assert r"\x1b[31mred" in said
    assert r"\u202e" in said
    strange = handed_in.with_name(f"cw{ESCAPE}")
    handed_in.rename(strange)
    assert r"\x1b[31mred" in refused(strange, capfd)


def test_a_name_that_is_no_utf_8_is_written_out(handed_in, capfd):
    (handed_in / "envelope" / os.fsdecode(b"\xff\xfe")).symlink_to("/")
    assert r"\udcff" in refused(handed_in, capfd)


# -- answers.yaml -----------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nexercises: *c\n"
HEAD = "schema_version: 1\nkind: coursework_answers\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1\n",
        "a: [",
        BOMB,
        "[" * 10_000,
        "x: " + "1" * 10_000,
        HEAD,
        HEAD + "exercises: 3\n",
        HEAD + "exercises: {swimming: {}}\n",
        HEAD + "exercises: {envelope: {x: 1}}\n",
        HEAD + "exercises: {envelope: {udp_ea_j_per_mbit: .nan}}\n",
        HEAD + "exercises: {envelope: {udp_ea_j_per_mbit: .inf}}\n",
        HEAD + "exercises: {envelope: {udp_ea_j_per_mbit: " + "9" * 400 + "}}\n",
        HEAD + "exercises: {envelope: {udp_ea_j_per_mbit: '0.1'}}\n",
        HEAD + "exercises: {envelope: {udp_ea_j_per_mbit: true}}\n",
        HEAD + "exercises: {envelope: {least_ea_payload_bytes: 65}}\n",
        HEAD + "exercises: {envelope: {dearest_transport: no}}\n",
        HEAD + "exercises: {}\nexercises: {}\n",
        "schema_version: 2\nkind: coursework_answers\nexercises: {}\n",
        "schema_version: 0\nkind: coursework_answers\nexercises: {}\n",
        "schema_version: 1\nkind: campaign\nexercises: {}\n",
        HEAD + "? [a, b]\n: 1\nexercises: {}\n",
        HEAD + "exercises: {}\n2026-11-23: x\n",
        HEAD + 'exercises: {}\n"\\e[31mred\\u202e": 1\n',
        HEAD + 'exercises: {envelope: {dearest_transport: "\\e[2J"}}\n',
    ],
)
def test_answers_that_do_not_fit_are_refused(handed_in, text, capfd):
    (handed_in / "answers.yaml").write_text(text)
    said = refused(handed_in, capfd)
    same_sentence(said)
    assert "answers.yaml" in said


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \xc3\x28\n", HEAD.encode("utf-16")])
def test_answers_of_another_encoding_are_refused(handed_in, content, capfd):
    (handed_in / "answers.yaml").write_bytes(content)
    same_sentence(refused(handed_in, capfd))


def test_control_characters_are_refused(handed_in, capfd):
    (handed_in / "answers.yaml").write_bytes(HEAD.encode() + b"exercises: {} # \x1b]0;x\x07\n")
    same_sentence(refused(handed_in, capfd))


# -- campaigns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("campaign.json", None),
        ("campaign.json", b"[" * 100_000),
        ("campaign.json", b"[]"),
        ("campaign.json", b'{"seed": ' + b"1" * 10_000 + b"}"),
        ("campaign.json", b"\xff"),
        ("campaign.json", b" " * 2_000_000),
        ("campaign.json", b'{"schema_version": 7}'),
        ("plan.csv", None),
        ("plan.csv", b"\xff\xfe"),
        ("runs/*/result.json", None),
        ("runs/*/result.json", b'{"t_a_mbps": NaN}'),
        ("runs/*/result.json", b'{"t_a_mbps": 1e999}'),
        ("runs/*/result.json", b"[" * 100_000),
        ("runs/*/result.json", b'{"x": ' + b"1" * 10_000 + b"}"),
        ("runs/*/flow.json", b"\x80\x03c__builtin__\nprint\n"),
        ("meters/client-cpu.csv", b"t_s\n" + b'"' * 200_000),
        ("datapackage.json", b"{}"),
    ],
)
def test_files_of_a_campaign_that_do_not_fit_are_refused(handed_in, place, content, capfd):
    path = sorted((handed_in / "envelope").glob(place))[0]
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    same_sentence(refused(handed_in, capfd))


def test_texts_of_a_campaign_reach_no_terminal(handed_in, capfd):
    folders.edit(handed_in / "envelope/campaign.json", lambda d: d.update({ESCAPE: 1}))
    assert "red" in refused(handed_in, capfd)


def test_a_plan_without_end_is_not_expanded(handed_in, capfd):
    """Ten thousand modes times a hundred thousand windows would be made before anything is compared."""
    modes = [f"burst:{n}" for n in range(1, 10_001)]
    change = {"pacing": modes, "window_us": list(range(100_000))}
    folders.edit(handed_in / "envelope/campaign.json", lambda d: d["workload"]["factors"].update(change))
    same_sentence(refused(handed_in, capfd))


# -- nothing is executed ----------------------------------------------------------------------------

# Runs a check and fails on any event that starts, loads or writes something; tells which files were opened.
GUARD = """
import json, os, sys
from pathlib import Path
from netjoule.cli import app as cli
from netjoule.coursework import check, cli as coursework_cli, exercises, start
folder, opened, caught = sys.argv[1], [], []
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
          "pickle.find_class", "ctypes.dlopen", "socket.connect", "socket.bind", "os.remove",
          "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "shutil.rmtree")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def guard(event, args):
    if event in STARTS:
        caught.append(event)
        raise RuntimeError(event)
    if event == "open" and isinstance(args[0], str):
        if (args[1] and set(args[1]) & set("wax+")) or (args[2] or 0) & WRITES:
            caught.append(f"write {args[0]}")
            raise RuntimeError(args[0])
        opened.append(args[0])
    if event == "import" and args[1] and args[1].startswith(folder):
        caught.append(f"import {args[1]}")
sys.addaudithook(guard)
code = cli.run_command(["coursework", "check", "."])
sys.stderr.write(json.dumps({"code": code, "caught": caught, "opened": opened}) + "\\n")
"""

CODE = "import pathlib; pathlib.Path({canary!r}).touch()\n"


def guarded(handed_in, tmp_path):
    """A check in the folder itself, beside a guard that tells what was opened and started."""
    guard = tmp_path / "guard.py"
    guard.write_text(GUARD)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NETJOULE_CONTRACTS")}
    env |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, str(guard), str(handed_in)],
        cwd=handed_in,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_nothing_of_it_is_executed_and_nothing_else_is_opened(handed_in, tmp_path):
    canary = tmp_path / "canary"
    code = CODE.format(canary=str(canary))
    shell = f"touch {canary}"
    traps = {
        "report.Rmd": f"---\ntitle: x\n---\n```{{r}}\nsystem('{shell}')\n```\n",
        ".Rprofile": f"system('{shell}')\n",
        "netjoule.py": code,
        "yaml.py": code,
        "json.py": code,
        "sitecustomize.py": code,
        "conftest.py": code,
        "workloads/coursework-envelope.yaml": f"!!python/object/apply:os.system ['{shell}']\n",
        "orchestrator/x.py": code,
        "netjoule/__init__.py": code,
        "protocols/contracts/schemas/campaign.schema.json": "{}",
        "analysis-r/exec/analyse.R": f"system('{shell}')\n",
        "envelope/tables/.per-run-pass": "\x80\x04cos\nsystem\n",
        "envelope/tables/ea_summary.csv": f"=cmd|'{shell}'!A0\n",
        "envelope/report.html": f"<script>{shell}</script>",
    }
    for name, text in traps.items():
        (handed_in / name).parent.mkdir(parents=True, exist_ok=True)
        (handed_in / name).write_text(text)
    (handed_in / "answers.pkl").write_bytes(b"cos\nsystem\n(S'" + shell.encode() + b"'\ntR.")
    ended = guarded(handed_in, tmp_path)
    told = json.loads(ended.stderr.splitlines()[-1])
    assert told["caught"] == []
    assert told["code"] == 1, ended.stderr  # most questions are not answered
    assert "missing" in ended.stdout
    assert not canary.exists()
    inside = {
        Path(os.path.relpath(path, handed_in)).as_posix()
        for path in (os.path.normpath(handed_in / name) for name in told["opened"])
        if path.startswith(str(handed_in))
    }
    assert "answers.yaml" in inside
    assert all(name == "answers.yaml" or name.startswith("envelope/") for name in inside), inside
    assert not {name for name in inside if "tables" in name or "figures" in name or "html" in name}


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os.system", "!x"],
)
def test_tags_of_yaml_make_nothing(handed_in, tmp_path, tag, capfd):
    canary = tmp_path / "canary"
    (handed_in / "answers.yaml").write_text(f"{HEAD}exercises: {tag} ['touch {canary}']\n")
    same_sentence(refused(handed_in, capfd))
    assert not canary.exists()


def test_a_folder_that_cannot_be_listed_is_refused_with_what_to_do(handed_in, monkeypatch, capsys):
    def refuse(_folder):
        raise PermissionError(13, "Permission denied")

    (handed_in / "floor").mkdir(exist_ok=True)
    monkeypatch.setattr(os, "scandir", refuse)
    assert folders.checked(handed_in, "--exercise", "floor") == 4
    same_sentence(capsys.readouterr().err)
