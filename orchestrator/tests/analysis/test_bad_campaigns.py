# SPDX-License-Identifier: Apache-2.0
"""What bad files and a bad moment do to `netjoule analyse` and to those that read a campaign beside it."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from netjoule.analysis import analysis
from netjoule.analysis.excluded_runs import exclusion_line
from netjoule.cli.app import run_command
from netjoule.design.run_table import with_repeats
from netjoule.hosts import sandbox
from netjoule.store.planfile import append_status, read_plan, write_plan

READERS = ["check", "analyse", "report", "publish"]


def done(campaign: Path, transport: str) -> str:
    return next(row.run_id for row in read_plan(campaign) if row.arm == transport)


def counting_out(*run_ids: str):
    """R, as far as it says which runs do not count."""

    def fake_r(verb, campaign, sink, **_):
        (campaign / "tables").mkdir(exist_ok=True)
        (campaign / "tables/ea_summary.csv").write_text(
            "meter_id,node,transport,payload_bytes,offered_rate_mbps,ea_j_per_mbit_mean\n"
        )
        rows = "".join(f"{run_id},half_written_run\n" for run_id in run_ids for _ in range(2))
        (campaign / "tables/invalid_runs.csv").write_text("run_id,code\n" + rows)

    return fake_r


# -- runs that are counted out ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"schema_version": 1, "valid": true, "nod',
        '{"schema_version": 1, "valid": true, "nodes": null}',
        '{"schema_version": 1, "valid": true, "nodes": [1]}',
        '{"schema_version": 1, "valid": true, "nodes": [], "reasons": 1}',
        "[" * 100_000,
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_a_broken_result_of_one_run_does_not_end_the_analysis(campaign_dir, monkeypatch, capsys, text, told):
    # Null's result is broken, so udp's must still be told of.
    run_id = done(campaign_dir, "null")
    (campaign_dir / "runs" / run_id / "result.json").write_text(text)
    monkeypatch.setattr(analysis, "run_analysis", counting_out(*[run_id] * told))
    assert run_command(["analyse", str(campaign_dir)]) == 0
    seen = capsys.readouterr()
    assert "grade of meter m: 1 x " in seen.out
    assert ("does not count" in seen.err) == told


def test_a_run_that_was_counted_out_is_in_no_line_of_grades(campaign_dir, monkeypatch, capsys):
    monkeypatch.setattr(analysis, "run_analysis", counting_out(done(campaign_dir, "udp")))
    assert run_command(["analyse", str(campaign_dir)]) == 0
    assert "grade of meter" not in capsys.readouterr().out


def test_how_many_runs_do_not_count_is_told_on_stderr_and_nothing_where_all_do(
    campaign_dir, monkeypatch, capsys
):
    monkeypatch.setattr(analysis, "run_analysis", counting_out())
    assert run_command(["analyse", str(campaign_dir)]) == 0
    assert capsys.readouterr().err == ""
    out = [done(campaign_dir, "udp"), done(campaign_dir, "null")]
    monkeypatch.setattr(analysis, "run_analysis", counting_out(*out))
    assert run_command(["analyse", str(campaign_dir), "--json"]) == 0
    seen = capsys.readouterr()
    reasons = campaign_dir / "tables/invalid_runs.csv"
    assert (
        seen.err == f"netjoule: warning: 2 of 2 finished runs do not count; the reasons stand in {reasons}\n"
    )
    assert all(json.loads(line) for line in seen.out.splitlines())


def test_a_run_that_was_repeated_is_no_loss(campaign_dir):
    rows = read_plan(campaign_dir)
    again = with_repeats([replace(row, status="invalid") for row in rows], 1, 2)
    write_plan(campaign_dir, again)
    settled = [replace(row, status="valid") if row.attempt == 2 else row for row in again]
    append_status(campaign_dir, settled, 1, datetime.now(UTC))
    counting_out(*(row.run_id for row in rows))("analyse", campaign_dir, None)
    assert exclusion_line(campaign_dir) == ""
    counting_out(*(row.run_id for row in again))("analyse", campaign_dir, None)
    assert f"warning: {len(rows)} of {len(rows)} finished runs do not count" in exclusion_line(campaign_dir)


# -- what is neither file nor folder ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["campaign.json", "plan.csv", ".lock", "runs/RUN/flow.json", "tables/x.csv"])
@pytest.mark.parametrize("command", READERS)
def test_a_fifo_is_refused_and_not_waited_for(campaign_dir, monkeypatch, capsys, command, name):
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: pytest.fail("R was started"))
    place = campaign_dir / name.replace("RUN", done(campaign_dir, "udp"))
    place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    signal.alarm(20)  # a FIFO that is opened would be waited for
    try:
        assert run_command([command, str(campaign_dir)]) == 4
    finally:
        signal.alarm(0)
    seen = capsys.readouterr()
    assert "a FIFO, a socket or a device has no place in a campaign" in seen.out + seen.err
    assert place.relative_to(campaign_dir).as_posix() in seen.out + seen.err


@pytest.mark.parametrize("command", READERS)
def test_so_are_a_socket_and_a_link_to_a_device(campaign_dir, tmp_path, monkeypatch, capsys, command):
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: pytest.fail("R was started"))
    with socket.socket(socket.AF_UNIX) as one:
        monkeypatch.chdir(campaign_dir)  # a socket's path has at most 107 bytes
        one.bind("meters/s")
    assert run_command([command, str(campaign_dir)]) == 4
    (campaign_dir / "meters/s").unlink()
    (campaign_dir / "meters/z.csv").symlink_to("/dev/zero")
    assert run_command([command, str(campaign_dir)]) == 4
    seen = capsys.readouterr()
    assert "meters/z.csv" in seen.out + seen.err


@pytest.mark.parametrize(
    "name", ["report.html", "tables/ea_summary.csv", "figures", ".campaign.json.tmp", ".lock"]
)
@pytest.mark.parametrize("command", [*READERS, "resume", "table-iv"])
def test_nothing_is_written_through_a_link(campaign_dir, tmp_path, monkeypatch, capsys, command, name):
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: pytest.fail("R was started"))
    monkeypatch.setattr(sandbox, "run_inside", lambda _argv: pytest.fail("a campaign was begun"))
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "authorized_keys").write_text("ssh-ed25519 ours\n")
    place = campaign_dir / name
    place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(ours if name == "figures" else ours / "authorized_keys")
    assert run_command([command, str(campaign_dir)]) == 4
    seen = capsys.readouterr()
    assert "a symbolic link has no place in a campaign" in seen.out + seen.err
    assert [file.read_text() for file in ours.iterdir()] == ["ssh-ed25519 ours\n"]


# -- a bad moment, a bad place ---------------------------------------------------------------------------


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError as error:
        assert error.errno in (errno.ENOENT, errno.ESRCH)
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("number", "code"), [(n, 128 + n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
)
@pytest.mark.parametrize("deaf", ["", "trap '' INT; "])
def test_r_ends_with_us(campaign_dir, tmp_path, number, code, deaf):
    programs, note = tmp_path / "programs", tmp_path / "pid"
    programs.mkdir()
    script = programs / "Rscript"
    script.write_text(f"#!/bin/sh\n{deaf}echo $$ > '{note}'; exec sleep 60\n")
    script.chmod(0o755)
    os.mkfifo(note)  # to read it is to wait until the program runs
    process = subprocess.Popen(
        [sys.executable, "-m", "netjoule", "analyse", str(campaign_dir)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NETJOULE_BIN_DIR": str(programs)},
    )
    with process:
        signal.alarm(30)  # a program that never starts would be waited for
        child = int(note.read_text())
        signal.alarm(0)
        assert is_there(child)
        process.send_signal(number)
        assert process.wait(30) == code
    assert not is_there(child)


@pytest.mark.parametrize("name", ["", "tables"])
def test_a_read_only_campaign_is_told_before_r_works_for_it(campaign_dir, monkeypatch, capsys, name):
    (campaign_dir / "tables").mkdir()
    folder = campaign_dir / name
    # Permissions do not bind root, as whom tests may run.
    monkeypatch.setattr(analysis.os, "access", lambda path, mode: Path(path) != folder or not mode & os.W_OK)
    monkeypatch.setattr(analysis, "run_analysis", lambda *_, **__: pytest.fail("R was started"))
    assert run_command(["report", str(campaign_dir)]) == 1
    assert capsys.readouterr().err == (
        f"netjoule: tables and figures cannot be written into {folder}: the folder is read-only;"
        " analyse a copy of the campaign in a folder of your own\n"
    )
