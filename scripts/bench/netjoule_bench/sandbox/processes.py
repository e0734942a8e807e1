# SPDX-License-Identifier: Apache-2.0
"""A program, in a network namespace or here: its start, its words, its end, its CPU time and memory."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from netjoule_bench.sandbox.veth import inside

LONGEST_S = 180.0  # no flow of a bench takes a minute: a program that is still there hangs


@dataclass(frozen=True)
class Ended:
    """What a program wrote, its exit code, its CPU seconds and the most memory that it had at once, in MB."""

    text: str
    code: int
    cpu_s: float
    peak_mb: float


class Running:
    """A running program; as a context manager it is killed where it has not ended by itself."""

    def __init__(
        self,
        netns: str | None,
        command: list[str],
        *,
        longest_s: float = LONGEST_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start ``command`` in ``netns``, or where this process is."""
        self._name = " ".join(command)
        self._process = subprocess.Popen(
            inside(netns, command) if netns else command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._watchdog = threading.Timer(longest_s, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()
        self._reaped = False

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_error: object) -> None:
        self._watchdog.cancel()
        if not self._reaped:
            # Not by Popen, which would reap one that has ended by itself, and its figures with it.
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def wait_for_line(self, word: str) -> str:
        """Read until a line with ``word``, which is returned.

        Raises:
            RuntimeError: when the program ends before.
        """
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            if word in line:
                return line
            said.append(line)
        raise RuntimeError(f"{self._name} ended before it said {word!r}: {_tail(said)}")

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def finish(self, *, tolerate: bool = False) -> Ended:
        """Wait for its end.

        Raises:
            RuntimeError: when it failed and ``tolerate`` does not allow that.
        """
        assert self._process.stdout is not None
        text = self._process.stdout.read()
        usage = self._reap()
        code = self._process.returncode
        if code != 0 and not tolerate:
            raise RuntimeError(f"{self._name} ended with {code}: {_tail([text])}")
        return Ended(text, code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def cpu_s(self) -> float:
        """Run time of its threads so far, to the nanosecond: ticks would count a few per minute."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return 1e-9 * sum(int(path.read_text(encoding="ascii").split()[0]) for path in threads)

    def _reap(self) -> resource.struct_rusage:
        """What the whole thread group used, threads that have ended included.

        wait4's user plus system time is the scheduler's exact run time, the figure of /proc/PID/schedstat;
        only the split of the two is by ticks (kernel/sched/cputime.c, cputime_adjust). ``ip netns exec``
        replaces itself, so it is the program's own.
        """
        _, status, usage = os.wait4(self._process.pid, 0)
        self._reaped = True
        self._watchdog.cancel()
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return usage


def _tail(said: list[str]) -> str:
    return "".join(said).strip()[-300:] or "it said nothing"
