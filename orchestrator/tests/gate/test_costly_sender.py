# SPDX-License-Identifier: Apache-2.0
"""The sender that costs more on purpose does so while it sends, by so much, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import costly_sender
import pytest

# Waits for a word, works for a second of CPU time, waits for another; tells the CPU time of its children.
SENDER = """#!%s -ISE
import os, sys, time
print("ready", *sys.argv[1:], flush=True)
input()
while time.process_time() < 1:
    pass
print("worked", flush=True)
input()
"""


def cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(true: Callable[[], bool]) -> None:
    """Wait for what the kernel tells of a process and nobody signals."""
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real = tmp_path / "real/netjoule-traffic"
    real.parent.mkdir()
    real.write_text(SENDER % sys.executable)
    real.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(real.parent))
    return costly_sender.made(tmp_path / "costly", 0.3)


def started(program: Path, verb: str) -> subprocess.Popen[str]:
    child = subprocess.Popen([program, verb], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == f"ready {verb}\n"
    return child


def test_it_uses_its_share_of_the_senders_time_and_nothing_while_that_waits(program: Path) -> None:
    with started(program, "send") as sender:
        assert sender.stdin is not None and sender.stdout is not None
        (burner,) = children(sender.pid)
        until(lambda: os.getpriority(os.PRIO_PROCESS, burner) == 19)  # what it does before it looks
        before_s, sender_s = cpu_s(burner), cpu_s(sender.pid)
        sender.stdin.write("go\n")
        sender.stdin.flush()
        assert sender.stdout.readline() == "worked\n"
        worked_s = cpu_s(sender.pid) - sender_s
        until(lambda: cpu_s(burner) - before_s > 0.27 * worked_s)  # on a busy host it is behind
        time.sleep(1.0)  # what it would use too much
        used_s = cpu_s(burner) - before_s
        assert 0.25 * worked_s < used_s < 0.4 * worked_s
        idle_s = cpu_s(burner)
        time.sleep(1.0)  # a time in which nothing may be used
        assert cpu_s(burner) - idle_s < 0.02
        sender.stdin.write("end\n")
        sender.stdin.flush()
        assert sender.stdout.read() == "", "nothing holds the sender's pipe when it has ended"
    until(lambda: not Path(f"/proc/{burner}/exe").exists())


def test_a_server_has_none_beside_it(program: Path) -> None:
    with started(program, "serve") as server:
        assert children(server.pid) == []
        server.kill()
