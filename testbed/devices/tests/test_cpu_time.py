# SPDX-License-Identifier: Apache-2.0
"""CPU time of a namespace: threads that come, go and change hands, on a made-up /proc and on the real one."""

from __future__ import annotations

import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from golden_sentences import raises

from netjoule_devices.cpu_time import NamespaceCpu
from netjoule_devices.errors import EnvironmentLacks

BURN = """
import sys, threading, time
burnt, over = threading.Barrier(3), threading.Event()
def burn():
    start = time.thread_time()
    while time.thread_time() - start < 0.15:
        pass
    burnt.wait()
    over.wait()
print("ready", flush=True)
sys.stdin.readline()
before = time.process_time()
threads = [threading.Thread(target=burn) for _ in range(2)]
[t.start() for t in threads]
burnt.wait()
print(time.process_time() - before, flush=True)
sys.stdin.readline()
over.set()
"""


class FakeProc:
    """A made-up /proc whose namespaces are plain files."""

    def __init__(self, root: Path) -> None:
        self.root = root / "proc"
        self.inside, self.outside = root / "inside", root / "outside"
        for path in (self.inside, self.outside):
            path.touch()
        (self.root / "self").mkdir(parents=True)
        (self.root / "self" / "schedstat").touch()
        (self.root / "uptime").touch()

    def put(self, pid: int, threads_ns: dict[int, int], *, inside: bool = True) -> None:
        folder = self.root / str(pid)
        (folder / "ns").mkdir(parents=True, exist_ok=True)
        link = folder / "ns" / "net"
        link.unlink(missing_ok=True)
        link.symlink_to(self.inside if inside else self.outside)
        for tid, time_ns in threads_ns.items():
            (folder / "task" / str(tid)).mkdir(parents=True, exist_ok=True)
            (folder / "task" / str(tid) / "schedstat").write_text(f"{time_ns} 77 3\n")

    def remove(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def test_only_time_after_the_start_counts_over_all_threads(proc: FakeProc) -> None:
    proc.put(10, {10: 5_000_000_000, 11: 1_000_000_000})
    cpu = NamespaceCpu(proc.inside, proc.root)
    assert cpu.advance_s() == 0.0
    proc.put(10, {10: 5_100_000_000, 11: 1_020_000_000})
    assert cpu.advance_s() == pytest.approx(0.12)
    assert cpu.advance_s() == 0.0


def test_other_namespaces_do_not_count(proc: FakeProc) -> None:
    cpu = NamespaceCpu(proc.inside, proc.root)
    proc.put(10, {10: 9_000_000_000}, inside=False)
    assert cpu.advance_s() == 0.0


def test_new_process_counts_from_zero_and_a_gone_one_takes_nothing_back(proc: FakeProc) -> None:
    proc.put(10, {10: 1_000_000_000})
    cpu = NamespaceCpu(proc.inside, proc.root)
    proc.put(12, {12: 30_000_000})
    proc.remove(10)
    assert cpu.advance_s() == pytest.approx(0.03)


def test_used_number_under_a_new_process_counts_from_zero(proc: FakeProc) -> None:
    proc.put(10, {10: 1_000_000_000})
    cpu = NamespaceCpu(proc.inside, proc.root)
    proc.put(10, {10: 40_000_000})
    assert cpu.advance_s() == pytest.approx(0.04)


def test_process_that_vanishes_while_it_is_read_is_left_out(proc: FakeProc) -> None:
    proc.put(10, {10: 1_000_000_000})
    cpu = NamespaceCpu(proc.inside, proc.root)
    (proc.root / "11").mkdir()  # gone before its namespace could be read
    shutil.rmtree(proc.root / "10" / "task")  # gone after it
    (proc.root / "10" / "task" / "10").mkdir(parents=True)  # its thread ends while it is read
    assert cpu.advance_s() == 0.0


def test_missing_namespace_and_missing_accounting_are_named(proc: FakeProc, tmp_path: Path) -> None:
    with raises(EnvironmentLacks):
        NamespaceCpu(tmp_path / "nowhere", proc.root)
    (proc.root / "self" / "schedstat").unlink()
    with raises(EnvironmentLacks):
        NamespaceCpu(proc.inside, proc.root)


@pytest.mark.netns
def test_real_threads_in_a_namespace_of_their_own() -> None:
    command = ["unshare", "-Urn", sys.executable, "-c", BURN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        cpu = NamespaceCpu(Path(f"/proc/{child.pid}/ns/net"))
        cpu.advance_s()
        used_s = 0.0
        child.stdin.write("go\n")
        child.stdin.flush()
        while not select.select([child.stdout], [], [], 0.02)[0]:
            used_s += cpu.advance_s()
        # Threads that end are gone from /proc with what they used since the last look: here they wait for it.
        used_s += cpu.advance_s()
        wanted_s = float(child.stdout.readline())
        child.stdin.write("end\n")
    assert wanted_s >= 0.3
    assert used_s == pytest.approx(wanted_s, abs=0.05)
