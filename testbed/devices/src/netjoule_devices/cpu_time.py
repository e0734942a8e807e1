# SPDX-License-Identifier: Apache-2.0
"""CPU time of all processes in one network namespace, without root, control groups or traces left behind.

The kernel keeps each thread's time on a CPU in nanoseconds in /proc/PID/task/TID/schedstat. The file of
the process itself (/proc/PID/schedstat) holds its first thread only. What a process used until its end is
added to its parent's sum of ended children, cutime and cstime of /proc/PID/stat (proc(5)).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from netjoule_devices.errors import EnvironmentLacks

Identity = tuple[int, int]
"""Device and inode of a namespace."""
_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Times:
    """CPU time in ns, by process: of each of its threads, and of its children that ended."""

    threads: Mapping[str, Mapping[str, int]]
    ended_children: Mapping[str, int]

    def used_since(self, before: _Times) -> int:
        """What was used since then; what is new counts from zero."""
        used = sum(
            _grown(time, before.threads.get(pid, {}).get(tid, 0))
            for pid, threads in self.threads.items()
            for tid, time in threads.items()
        )
        ended = sum(
            _grown(time, before.ended_children.get(pid, 0)) for pid, time in self.ended_children.items()
        )
        # A process that ended comes whole into its parent's sum, and was counted as far as it was seen.
        seen = sum(
            before.ended_children.get(pid, 0) + sum(threads.values())
            for pid, threads in before.threads.items()
            if pid not in self.threads
        )
        return used + max(0, ended - seen)


class NamespaceCpu:
    """Adds up CPU time of the processes whose network namespace is `netns`.

    What ran before the first call to `advance_s` does not count. A process that appears later counts from
    zero; what one used between the last call and its end counts once its parent, of the same namespace, has
    waited for it. A thread that ends before its process takes with it what it used since the last call.
    """

    def __init__(self, netns: Path, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._identity = _identity_of(netns)
        if not (proc / "self" / "schedstat").exists():
            raise EnvironmentLacks(f"{proc}/self/schedstat is missing: this kernel does not account CPU time")
        self._seen = self._read()

    def advance_s(self) -> float:
        """Return the CPU seconds used since the call before (or since the start)."""
        before, self._seen = self._seen, self._read()
        return self._seen.used_since(before) * 1e-9

    def _read(self) -> _Times:
        """Return what the processes inside have used; those that vanish while they are read are left out."""
        threads: dict[str, dict[str, int]] = {}
        ended_children: dict[str, int] = {}
        for pid in os.listdir(self._proc):  # noqa: PTH208 - ten times a second, names are all it needs
            if not pid.isdigit() or not self._is_inside(pid):
                continue
            folder = f"{self._proc}/{pid}"
            try:
                names = os.listdir(f"{folder}/task")  # noqa: PTH208
            except OSError:
                continue
            times = {name: _on_cpu_ns(f"{folder}/task/{name}/schedstat") for name in names}
            threads[pid] = {name: time for name, time in times.items() if time is not None}
            ended_children[pid] = _ended_children_ns(f"{folder}/stat")
        return _Times(threads, ended_children)

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


def _grown(now: int, before: int) -> int:
    """A smaller count is another thread under a used number: it counts from zero too."""
    return now - before if now >= before else now


def _on_cpu_ns(path: str) -> int | None:
    content = _content(path, 64)
    return int(content.split(b" ", 1)[0]) if content else None


def _ended_children_ns(path: str) -> int:
    """Of /proc/PID/stat, whose second field, a name in brackets, may hold anything."""
    fields = _content(path, 1024).rpartition(b")")[2].split()
    return (int(fields[13]) + int(fields[14])) * _TICK_NS if len(fields) > 14 else 0


def _content(path: str, most: int) -> bytes:
    """Return the beginning of a file; nothing of one that is gone."""
    try:
        with open(path, "rb", buffering=0) as handle:  # noqa: PTH123
            return handle.read(most)
    except OSError:
        return b""
