# SPDX-License-Identifier: Apache-2.0
"""A gate that was killed, or had no room, leaves no half verdict, and the next one starts clean."""

from __future__ import annotations

import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic
import yaml
from test_gate_command import WORKLOAD

import netjoule_synthetic
from netjoule.gate.history import store

HERE = Path(__file__).parent
GATE = """
import random, sys
sys.path[:0] = sys.argv[1].split(":")
import synthetic
from simulated_rig import Rig
from netjoule.cli import launch
from netjoule.cli.app import run_command
from netjoule.gate import campaign_process
from netjoule.store.fingerprint import host_fingerprint
synthetic.HOST = host_fingerprint()
launch.draw_seed = lambda: 11  # the order of runs is that of the rig's draws: a pilot fails by chance, too
campaign_process.run = Rig(1.0, 0.01, random.Random(int(sys.argv[2])), 0.005).run
sys.exit(run_command(sys.argv[3:]))
"""
FOLDERS = ":".join(map(str, (HERE, HERE.parent, Path(netjoule_synthetic.__file__).parents[1])))
AT_MOST_S = 12.0
"""About what a gate of this rig takes."""


def command(seed: int, *options: str) -> list[str]:
    words = [
        "gate",
        "--base",
        "MODE=old",
        "--workload",
        "workload.yaml",
        "--testbed",
        "rig.yaml",
        "--wait",
        "0",
    ]
    words += ["--pilot"] if "--pilot" in options else ["--head", "MODE=new"]
    rest = [option for option in options if option != "--pilot"]
    return [sys.executable, "-c", GATE, FOLDERS, str(seed), *words, *rest]


@pytest.mark.parametrize(
    "trials", [pytest.param(3, id="few"), pytest.param(50, id="many", marks=pytest.mark.slow)]
)
def test_whatever_ends_a_gate_the_history_is_whole_and_the_next_starts_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NETJOULE_LOCKS", str(tmp_path))
    Path("workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
    Path("rig.yaml").write_text(yaml.safe_dump(synthetic.topology().document))
    subprocess.run(command(1, "--pilot", "--out", "results/pilot"), check=True, timeout=300)
    chance = random.Random(trials)
    for trial in range(trials):
        out = f"results/gate-{trial}"
        ended = (killed, out_of_room)[trial % 3 == 2](command(trial, "--out", out), chance)
        recorded = {Path(row["folder"]).name for row in store.listed()}
        verdict = Path(out) / "verdict.json"
        if f"gate-{trial}" in recorded:  # it had come to its end
            found = json.loads(verdict.read_text())
            without_room = ended == 4 and found["reason"]["code"] == "session_failed"
            assert found["verdict"] in ("pass", "inconclusive") or without_room, found["words"]
        else:
            assert ended != 0
        assert not list(Path(out).glob(".*.tmp")) or f"gate-{trial}" not in recorded
    code = subprocess.run(command(77, "--out", "results/last"), check=False, timeout=300).returncode
    assert code == 0
    assert Path(store.listed()[-1]["folder"]).name == "last"


def killed(words: list[str], chance: random.Random) -> int:
    """Kill it, with all that it started, at a moment of its life; its exit code."""
    process = subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        return process.wait(chance.uniform(0, AT_MOST_S))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def out_of_room(words: list[str], chance: random.Random) -> int:
    """Let no file of it grow over so many bytes, as on a full disk; its exit code."""
    most = int(10 ** chance.uniform(3, 5.5))

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return subprocess.run(
        words, check=False, timeout=300, preexec_fn=limited, stderr=subprocess.DEVNULL
    ).returncode


def test_a_session_ends_with_the_gate_that_is_killed(tmp_path: Path) -> None:
    held = tmp_path / "held"  # its last writer is the session: the end of it is the session's
    os.mkfifo(held)
    session = tmp_path / "session"
    session.write_text(f"#!/bin/sh\nexec 3>{held}\necho began >&3\nexec sleep 600\n")
    session.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; from netjoule.core import programs;"
        "from netjoule.gate import campaign_process; programs.PYTHON = (sys.argv[1],);"
        "campaign_process.run(Path('w'), Path('t'), Path('c'), 1, print)"
    )
    gate = subprocess.Popen([sys.executable, "-c", code, str(session)])
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert told_within(60, reader) == b"began\n"
        gate.kill()
        assert told_within(60, reader) == b""
    finally:
        os.close(reader)
        gate.kill()
        gate.wait()


def told_within(limit_s: float, reader: int) -> bytes:
    """What comes next, nothing at the end; a limit only for a test that fails."""
    assert select.select([reader], [], [], limit_s)[0]
    return os.read(reader, 100)
