# SPDX-License-Identifier: Apache-2.0
"""What lives in a sandbox, seen from the host: for tests that kill parts of it."""

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path


def pids_in(pid_ns: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str((entry / "ns/pid").readlink()) == pid_ns and "\nState:\tZ" not in status(entry):
                    found.append(int(entry.name))
            except OSError:
                continue
    return sorted(found)


def status(entry: Path) -> str:
    return (entry / "status").read_text()


def pid_inside(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    raise AssertionError("no NSpid")


def parent(pid: int) -> int:
    """Parent of a process; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def wait_gone(pids: list[int], timeout_s: float = 60.0) -> None:
    """Wait on pidfds: woken by each end, no polling."""
    deadline = time.monotonic() + timeout_s
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"process {pid} still runs"
        finally:
            os.close(fd)


def host_state() -> tuple[set[str], set[str]]:
    links = json.loads(subprocess.run(["ip", "-j", "link"], check=True, capture_output=True).stdout)
    folder = Path("/run/netns")
    names = folder.iterdir() if folder.exists() else ()
    return {link["ifname"] for link in links}, {entry.name for entry in names}


def child(pid: int) -> int:
    """The only child of a process."""
    (one,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return one


def first_worker(supervisor: int, timeout_s: float = 60.0) -> int:
    """The worker of a sandbox that comes up, once it catches SIGTERM: its command has begun, not its work."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            worker = child(child(child(supervisor)))
            caught = next(s for s in status(Path(f"/proc/{worker}")).splitlines() if s.startswith("SigCgt:"))
        except (OSError, ValueError):
            continue
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1 and "netjoule" in program(worker):
            return worker
        time.sleep(0.005)
    raise AssertionError("no worker")


def program(pid: int) -> str:
    """Command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
