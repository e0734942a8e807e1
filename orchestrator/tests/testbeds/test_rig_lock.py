# SPDX-License-Identifier: Apache-2.0
"""One gate at a time on a rig, whatever became of the one before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from golden_sentences import same_sentence

from netjoule.core.errors import InvalidData
from netjoule.testbeds import rig_lock

HOLD = """
import sys, time
from pathlib import Path
from netjoule.testbeds import rig_lock
with rig_lock.held(Path(sys.argv[1]), "gate A", 0, print):
    import subprocess
    child = subprocess.Popen(["sleep", "60"])
    print("held", child.pid, flush=True)
    time.sleep(60)
"""


def holder(path: Path) -> tuple[subprocess.Popen[str], int]:
    """A process that has the lock, and a child of it that outlives it."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    with process.stdout as said:  # type: ignore[union-attr]
        return process, int(said.readline().split()[1])


def test_a_second_gate_waits_so_long_and_says_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "rig.lock"
    process, child = holder(path)
    said: list[str] = []
    try:
        began = time.monotonic()
        with pytest.raises(InvalidData) as error, rig_lock.held(path, "gate B", 1.0, said.append):
            pass
        assert 1.0 <= time.monotonic() - began < 10
        assert error.value.code == "rig_busy"
        same_sentence(str(error.value).replace(str(process.pid), "PID"))
        assert said == [f"gate A (process {process.pid})"]
    finally:
        process.kill()
        process.wait()
        os.kill(child, signal.SIGKILL)


def test_the_lock_of_a_killed_gate_is_free_though_its_child_lives(tmp_path: Path) -> None:
    path = tmp_path / "rig.lock"
    process, child = holder(path)
    process.kill()
    process.wait()
    try:
        with rig_lock.held(path, "gate B", 0, pytest.fail):
            assert json.loads(path.read_text())["owner"] == "gate B"
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_file_is_of_this_machine_and_named_for_the_rig(tmp_path: Path) -> None:
    env = {"NETJOULE_LOCKS": str(tmp_path)}
    assert rig_lock.path_of("rack 1/a", env) == tmp_path / "netjoule-rack_1_a.lock"
    assert rig_lock.path_of("a", {"NETJOULE_LOCKS": str(tmp_path / "gone")}).parent != tmp_path / "gone"


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "rig.lock").symlink_to(target)
    with pytest.raises(Exception, match="cannot lock"), rig_lock.held(tmp_path / "rig.lock", "b", 0, print):
        pass
    assert target.read_text() == "mine"
