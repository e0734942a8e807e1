# SPDX-License-Identifier: Apache-2.0
"""CPU time of all processes in one network namespace, without root, control groups or traces left behind.

The kernel keeps each thread's time on a CPU in nanoseconds in /proc/PID/task/TID/schedstat. The file of
the process itself (/proc/PID/schedstat) holds its first thread only.
"""

from __future__ import annotations

import os
from pathlib import Path

from netjoule_devices.errors import EnvironmentLacks

Identity = tuple[int, int]
"""Device and inode of a namespace."""


class NamespaceCpu:
    """Adds up CPU time of the processes whose network namespace is `netns`.

    What ran before the first call to `advance_s` does not count. A thread that appears later counts from
    zero; one that ends takes with it what it used since the last call.
    """

    def __init__(self, netns: Path, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._identity = _identity_of(netns)
        if not (proc / "self" / "schedstat").exists():
            raise EnvironmentLacks(f"{proc}/self/schedstat is missing: this kernel does not account CPU time")
        self._seen_ns = self._read_ns()

    def advance_s(self) -> float:
        """Return the CPU seconds used since the call before (or since the start)."""
        now_ns = self._read_ns()
        used_ns = 0
        for thread, total_ns in now_ns.items():
            before_ns = self._seen_ns.get(thread, 0)
            # A smaller count is another thread under a used number: it counts from zero too.
            used_ns += total_ns - before_ns if total_ns >= before_ns else total_ns
        self._seen_ns = now_ns
        return used_ns * 1e-9

    def _read_ns(self) -> dict[str, int]:
        """Return time on a CPU in ns by "PID/task/TID"; threads that vanish while reading are left out."""
        times: dict[str, int] = {}
        for pid in os.listdir(self._proc):  # noqa: PTH208 - ten times a second, names are all it needs
            if not pid.isdigit() or not self._is_inside(pid):
                continue
            task = f"{self._proc}/{pid}/task"
            try:
                threads = os.listdir(task)  # noqa: PTH208
            except OSError:
                continue
            for thread in threads:
                time_ns = _on_cpu_ns(f"{task}/{thread}/schedstat")
                if time_ns is not None:
                    times[f"{pid}/task/{thread}"] = time_ns
        return times

    def _is_inside(self, pid: str) -> bool:
        try:
            found = os.stat(f"{self._proc}/{pid}/ns/net")  # noqa: PTH116 - the hot path of this process
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


def _identity_of(netns: Path) -> Identity:
    try:
        found = netns.stat()
    except OSError as error:
        raise EnvironmentLacks(f"network namespace {netns} cannot be opened: {error.strerror}") from None
    return found.st_dev, found.st_ino


def _on_cpu_ns(path: str) -> int | None:
    try:
        with open(path, "rb", buffering=0) as handle:  # noqa: PTH123
            return int(handle.read(64).split(b" ", 1)[0])
    except (OSError, ValueError):
        return None
