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

    def put(self, pid: int, threads_ns: dict[int, int], *, inside: bool = True, ended_ticks: int = 0) -> None:
        folder = self.root / str(pid)
        (folder / "ns").mkdir(parents=True, exist_ok=True)
        link = folder / "ns" / "net"
        link.unlink(missing_ok=True)
        link.symlink_to(self.inside if inside else self.outside)
        for tid, time_ns in threads_ns.items():
            (folder / "task" / str(tid)).mkdir(parents=True, exist_ok=True)
            (folder / "task" / str(tid) / "schedstat").write_text(f"{time_ns} 77 3\n")
        # The name, then ten fields, utime, stime, cutime, cstime and the rest.
        ended = f"{ended_ticks - 1} 1" if ended_ticks else "0 0"
        (folder / "stat").write_text(f"{pid} (a) b) S {'9 ' * 10}70 80 {ended} 20 0\n")

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


def test_what_a_process_used_until_its_end_counts_once_its_parent_waited_for_it(proc: FakeProc) -> None:
    proc.put(10, {10: 1_000_000_000}, ended_ticks=500)
    cpu = NamespaceCpu(proc.inside, proc.root)
    proc.put(12, {12: 30_000_000, 13: 20_000_000})
    proc.put(14, {14: 0}, ended_ticks=4)  # it has ended children of its own
    assert cpu.advance_s() == pytest.approx(0.05 + 0.04)
    proc.remove(12)
    proc.remove(14)
    proc.put(10, {10: 1_010_000_000}, ended_ticks=500 + 13)
    assert cpu.advance_s() == pytest.approx(0.01 + 0.13 - 0.09)
    assert cpu.advance_s() == 0.0


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


SHORT = """
import subprocess, sys
BURN = "import time\\nwhile time.process_time() < 0.03: pass"
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    subprocess.run([sys.executable, "-ISc", BURN], check=True)
print("done", flush=True)
sys.stdin.readline()
"""


def used_and_told(program: str, look_s: float) -> tuple[float, str]:
    """CPU seconds of a program in a namespace of its own, looked at so often; what it says of its work."""
    command = ["unshare", "-Urn", sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        cpu = NamespaceCpu(Path(f"/proc/{child.pid}/ns/net"))
        cpu.advance_s()
        used_s = 0.0
        child.stdin.write("go\n")
        child.stdin.flush()
        while not select.select([child.stdout], [], [], look_s)[0]:
            used_s += cpu.advance_s()
        used_s += cpu.advance_s()
        told = child.stdout.readline()
        child.stdin.write("end\n")
    return used_s, told


@pytest.mark.netns
def test_processes_shorter_than_the_time_between_two_looks_count_whole() -> None:
    used_s, _ = used_and_told(SHORT, 0.1)
    assert used_s > 20 * 0.03 - 0.02  # two counters of 10 ms


@pytest.mark.netns
def test_real_threads_in_a_namespace_of_their_own() -> None:
    # Threads that end are gone from /proc with what they used since the last look: here they wait for it.
    used_s, told = used_and_told(BURN, 0.02)
    wanted_s = float(told)
    assert wanted_s >= 0.3
    assert used_s == pytest.approx(wanted_s, abs=0.05)
