# SPDX-License-Identifier: Apache-2.0
"""Gates of real flows on the emulated testbed: a costly sender fails, an unchanged one does not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import costly_sender
import pytest

from netjoule.core import programs

pytestmark = [pytest.mark.slow, pytest.mark.netns]


def copied(folder: Path) -> str:
    """The installed program at a place of its own, as a build would be."""
    folder.mkdir()
    return shutil.copy(programs.find("netjoule-traffic"), folder)


def words_of(out: str, *options: str) -> list[str]:
    words = ["gate", "--workload", "gate", "--base", "base/netjoule-traffic", "--out", out, *options]
    return [sys.executable, "-P", "-m", "netjoule", *words]


def gate(out: str, *options: str) -> dict[str, Any]:
    """Run one to its end; its verdict."""
    done = subprocess.run(words_of(out, *options), capture_output=True, text=True, check=False, timeout=3600)
    assert (Path(out) / "verdict.json").exists(), done.stderr
    found: dict[str, Any] = json.loads((Path(out) / "verdict.json").read_text())
    assert done.returncode == found["exit_code"]
    return found


def piloted() -> None:
    """Have a pilot; the 95 % interval of one in twenty leaves out 0 by chance, and then another is run."""
    said = []
    for number in range(3):
        pilot = gate(f"pilot-{number}", "--pilot")
        if pilot["verdict"] == "pass":
            return
        said.append(pilot["words"])
    pytest.fail(f"no pilot of three is fit: {said}")


def logger_of(campaign: Path) -> int:
    """The process that logs a campaign's meters."""
    (found,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if {"log", str(campaign)} <= set(path.read_bytes().decode(errors="replace").split("\0"))
    ]
    return found


def lose_meter(out: str, *options: str) -> dict[str, Any]:
    """Run one whose meters' logger is killed once a run has begun; its verdict."""
    words = words_of(out, *options, "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if json.loads(line)["event"] == "run_started")
        os.kill(logger_of(Path(out) / "session-1"), signal.SIGKILL)
        assert process.stdout.read()
    assert process.returncode == 4
    found: dict[str, Any] = json.loads((Path(out) / "verdict.json").read_text())
    return found


def test_a_costly_sender_fails_and_an_unchanged_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NETJOULE_LOCKS", str(tmp_path))
    copied(tmp_path / "base")
    same = copied(tmp_path / "head")
    costly = f"LD_PRELOAD={costly_sender.made(tmp_path / 'more')}"
    piloted()
    lost = lose_meter("lost", "--head", same)
    assert (lost["verdict"], lost["reason"]["code"]) == ("skipped", "session_failed")
    assert [gate(f"same-{n}", "--head", same)["verdict"] for n in range(2)].count("fail") == 0
    assert gate("costly", "--head", costly)["verdict"] == "fail"
