# SPDX-License-Identifier: Apache-2.0
"""Workers of Dask: killed, stopped, left alone by their scheduler. Every block is there exactly once."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import dask
import pytest
import sshd
from test_campaign_run import require_whole, statuses

from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.rigs import cluster

FLY = Path(__file__).parent / "fly.py"
TTL_S = 3.0
RUN_S = 0.15


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETJOULE_LOCKS", str(tmp_path))
    monkeypatch.setenv("FAKE_RUN_S", str(RUN_S))


@contextmanager
def flying(folder: Path, blocks: int = 4, *scheduler: str) -> Iterator[subprocess.Popen[str]]:
    """A campaign under way on two rigs, whose workers are there."""
    words = [sys.executable, str(FLY), str(folder), str(blocks), "2", str(TTL_S), *scheduler]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for its end; what it said."""
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def holder(lock: Path) -> int | None:
    """The process that has a rig; None when it is free."""
    try:
        with lock.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
    except BlockingIOError:
        with suppress(ValueError):
            return int(json.loads(lock.read_text())["pid"])
    except FileNotFoundError:
        pass
    return None


def some_holder(folder: Path, chance: random.Random) -> tuple[Path, int]:
    """A rig that is in use, and the worker that has it."""
    locks = [folder / f"netjoule-emulated-rig{number}.lock" for number in (1, 2)]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lock = chance.choice(locks)
        if (pid := holder(lock)) is not None:
            return lock, pid
        time.sleep(0.02)
    raise AssertionError("no worker has a rig")


def left_over(folder: Path) -> list[str]:
    """Processes that have something to do with a campaign."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words:
                found.append(words)
    return found


def require_nothing_left(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while (found := left_over(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == []


few_or_many = pytest.mark.parametrize(
    "trials", [pytest.param(3, id="few"), pytest.param(50, id="many", marks=pytest.mark.slow)]
)


def require_whole_in_spite_of(
    disturb: Callable[[Path, random.Random], None], tmp_path: Path, trials: int
) -> None:
    """Campaigns come whole to their end, and leave nothing, though one of their workers is disturbed."""
    chance = random.Random(trials)
    for trial in range(trials):
        folder = tmp_path / f"c{trial}"
        with flying(folder, blocks=3) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            disturb(tmp_path, chance)
            finish(process)
        require_whole(folder)
        require_nothing_left(folder)


def kill(locks: Path, chance: random.Random) -> None:
    """Kill a worker at a random moment of its block; its rig is free within a second."""
    time.sleep(chance.uniform(0, 3 * RUN_S))
    while True:
        lock, pid = some_holder(locks, chance)
        with suppress(ProcessLookupError):  # its block ended just now
            os.kill(pid, signal.SIGKILL)
            break
    killed = time.monotonic()
    while holder(lock) == pid:
        assert time.monotonic() - killed < 1.0
        time.sleep(0.01)


def stop_too_long(locks: Path, chance: random.Random) -> None:
    """Stop a worker until it counts as lost, then let it go on."""
    _, pid = some_holder(locks, chance)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(TTL_S + chance.uniform(0, 2))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


@few_or_many
def test_killed_workers_lose_no_block_and_leave_no_lock(tmp_path: Path, trials: int) -> None:
    require_whole_in_spite_of(kill, tmp_path, trials)


@pytest.mark.parametrize(
    "trials", [pytest.param(3, id="few"), pytest.param(20, id="many", marks=pytest.mark.slow)]
)
def test_workers_stopped_for_too_long_lose_no_block(tmp_path: Path, trials: int) -> None:
    require_whole_in_spite_of(stop_too_long, tmp_path, trials)


@pytest.mark.parametrize(
    "trials", [pytest.param(3, id="few"), pytest.param(5, id="many", marks=pytest.mark.slow)]
)
def test_a_campaign_goes_on_after_its_scheduler_died(tmp_path: Path, trials: int) -> None:
    chance = random.Random(trials)
    for trial in range(trials):
        folder = tmp_path / f"c{trial}"
        with flying(folder) as process:
            assert process.stdout is not None
            process.stdout.readline()
            some_holder(tmp_path, chance)
            time.sleep(chance.uniform(0, 6 * RUN_S))
            process.kill()
            process.wait()
            require_nothing_left(folder)
        with flying(folder) as process:
            finish(process)
        require_whole(folder)
        require_nothing_left(folder)


def test_ctrl_c_ends_it_cleanly_and_it_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with flying(folder) as process:
        assert process.stdout is not None
        process.stdout.readline()
        some_holder(tmp_path, random.Random(1))
        os.killpg(process.pid, signal.SIGINT)
        assert "stopping" in finish(process).splitlines()
    require_nothing_left(folder)
    assert json.loads((folder / "campaign.json").read_text())["sessions"][-1]["end"] == "stopped"
    with flying(folder) as process:
        finish(process)
    require_whole(folder)


def tree(pid: int) -> Iterator[int]:
    """A process and those that it has started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from tree(int(child))


def listening(pids: set[int]) -> set[str]:
    """Addresses at which processes listen."""
    inodes = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[9] in inodes:
                digits = bytes.fromhex(cells[1].partition(":")[0])
                words = struct.pack(f">{len(digits) // 4}I", *struct.unpack(f"<{len(digits) // 4}I", digits))
                found.add(socket.inet_ntop(socket.AF_INET if table == "tcp" else socket.AF_INET6, words))
    return found


def test_everything_listens_on_loopback_and_metrics_are_there(tmp_path: Path) -> None:
    with flying(tmp_path / "c") as process:
        assert process.stdout is not None
        dashboard = process.stdout.readline().strip()
        some_holder(tmp_path, random.Random(1))
        found = listening(set(tree(process.pid)))
        assert found
        assert all(ip_address(one).is_loopback for one in found)
        with urllib.request.urlopen(dashboard.replace("/status", "/metrics"), timeout=10) as page:
            assert b"dask_scheduler_workers" in page.read()
        with urllib.request.urlopen(dashboard, timeout=10) as page:
            assert page.status == 200
        finish(process)


@contextmanager
def by_hand(
    address: str, elsewhere: Mapping[str, tuple[str, Sequence[str]]] | None = None
) -> Iterator[list[subprocess.Popen[str]]]:
    """A scheduler at this address and a worker per rig, started with the words of docs/rigs.md.

    Args:
        address: of the scheduler, protocol and port included.
        elsewhere: address of a rig's own host and what a command there begins with, by rig.
    """
    protocol, _, place = address.partition("://")
    host, _, port = place.rpartition(":")
    quiet = ["--dashboard-address", "127.0.0.1:0"]
    dask_scheduler = ["scheduler", "--protocol", protocol, "--port", port, "--host", host, *quiet]
    rig = ["--nthreads", "1", "--resources", "rig=1", *quiet]
    commands = [((), dask_scheduler)]
    for name in ("rig1", "rig2"):
        own, there = (elsewhere or {}).get(name, (host, ()))
        commands.append((there, ["worker", address, "--name", name, "--host", f"{protocol}://{own}", *rig]))
    program = str(Path(sys.executable).parent / "dask")
    started = [
        subprocess.Popen([*there, program, *words], stderr=subprocess.DEVNULL, text=True)
        for there, words in commands
    ]
    try:
        yield started
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def made_certificate(folder: Path) -> dict[str, str]:
    """One certificate for all, which is its own authority, as settings of Dask."""
    certificate, key = folder / "rigs.pem", folder / "rigs.key"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=rigs"
    made = [*words.split(), "-days", "2", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(made, check=True, capture_output=True)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    ends = ("SCHEDULER", "WORKER", "CLIENT")
    found = {f"{tls}CA_FILE": str(certificate)}
    found |= {f"{tls}{end}__CERT": str(certificate) for end in ends}
    return found | {f"{tls}{end}__KEY": str(key) for end in ends}


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_a_scheduler_that_was_started_by_hand_takes_the_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    for name, value in (made_certificate(tmp_path) if protocol == "tls" else {}).items():
        monkeypatch.setenv(name, value)
    address = f"{protocol}://127.0.0.1:{sshd.free_port()}"
    with by_hand(address) as started:
        with flying(tmp_path / "c", 4, address) as campaign:
            finish(campaign)
        if protocol == "tls":
            plain = cluster.workers(["rig1"], tmp_path, print, scheduler=address.replace("tls", "tcp"))
            with pytest.raises(RunFailed, match="no Dask scheduler answers"), plain:
                pytest.fail("it was let in without TLS")
        assert all(process.poll() is None for process in started)  # they are others', and stay
        found = listening({pid for process in started for pid in tree(process.pid)})
        assert found == {"127.0.0.1"}
    require_whole(tmp_path / "c")
    require_nothing_left(tmp_path)


@pytest.mark.netns
def test_a_worker_whose_network_is_cut_loses_no_block(tmp_path: Path) -> None:
    script = [sys.executable, str(Path(__file__).parent / "cut_network.py"), str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    require_whole(tmp_path / "c")
    had = [(row["run_id"], row["rig"], row["owner_token"], row["status"]) for row in statuses(tmp_path / "c")]
    of_rack = {run_id for run_id, rig, *_ in had if rig == "rig2"}
    assert of_rack
    assert {(rig, token, status) for run_id, rig, token, status in had if run_id in of_rack} == {
        ("rig2", "1", "running"),
        ("rig1", "2", "running"),
        ("rig1", "2", "valid"),
    }
    require_nothing_left(tmp_path)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786", "localhost:8786", "tcp://[::1]:1"]
)
def test_a_scheduler_on_loopback_needs_no_tls(address: str) -> None:
    assert cluster.security_of(address) is None


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:8786", "rack:8786", "0.0.0.0:1"])
def test_any_other_scheduler_needs_tls(address: str) -> None:
    with pytest.raises(UsageError, match="needs TLS"):
        cluster.security_of(address)


def test_files_for_tls_are_named_where_they_are_missing(tmp_path: Path) -> None:
    address = "tls://192.0.2.1:8786"
    settings = {}
    for name in cluster.TLS_FILES:
        with dask.config.set(settings), pytest.raises(UsageError, match=f"tls.{name} is empty"):
            cluster.security_of(address)
        file = tmp_path / name
        settings[f"distributed.comm.tls.{name}"] = str(file)
        with dask.config.set(settings), pytest.raises(HostLacks, match="no file"):
            cluster.security_of(address)
        file.write_text("")
    with dask.config.set(settings):
        assert cluster.security_of(address).require_encryption


def test_without_dask_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HostLacks, match=r"requirements-rigs\.txt") as error:
        cluster.require()
    assert error.value.exit_code == 3
