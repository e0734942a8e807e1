# SPDX-License-Identifier: Apache-2.0
"""A program in a network namespace: its start, its words, its end and the CPU time it took."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from types import TracebackType

from netjoule_bench.sandbox.veth import inside

LONGEST_S = 180.0  # no flow of a bench takes a minute: a program that is still there hangs


@dataclass(frozen=True)
class Ended:
    """What a program wrote to stdout, and its CPU seconds."""

    text: str
    cpu_s: float


class Running:
    """A running program; as a context manager it is killed where it has not ended by itself."""

    def __init__(self, netns: str, command: list[str]) -> None:
        """Start ``command`` in ``netns``."""
        self._command = command
        self._process = subprocess.Popen(
            inside(netns, command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._watchdog = threading.Timer(LONGEST_S, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()
        self._reaped = False

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchdog.cancel()
        if not self._reaped:
            self._process.kill()
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
        cpu_s = self._reap()
        if self._process.returncode != 0 and not tolerate:
            raise RuntimeError(f"{self._name} ended with {self._process.returncode}: {_tail([text])}")
        return Ended(text, cpu_s)

    @property
    def _name(self) -> str:
        return " ".join(self._command)

    def _reap(self) -> float:
        """CPU seconds of the whole thread group, threads that have ended included.

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
        return usage.ru_utime + usage.ru_stime


def _tail(said: list[str]) -> str:
    return "".join(said).strip()[-300:] or "it said nothing"
