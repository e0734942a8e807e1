# SPDX-License-Identifier: Apache-2.0
"""A child program that does not outlive the command which started it, whenever a signal comes."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from netjoule.unwinding import sigterm_unwinds

__all__ = ["held"]


@contextmanager
def held(
    start: Callable[[], subprocess.Popen[str]], ask: Sequence[signal.Signals], grace_s: float
) -> Iterator[subprocess.Popen[str]]:
    """Start a program; where it still runs after the body, it is asked to end, at last by SIGKILL.

    SIGTERM to us raises SystemExit in the body, as Ctrl-C raises KeyboardInterrupt.

    Args:
        start: starts the program; what it raises is passed on.
        ask: signals that ask it to end, the mildest first.
        grace_s: how long each of them is given.
    """
    child: subprocess.Popen[str] | None = None
    with sigterm_unwinds():
        try:
            with _signals_wait():
                child = start()
            yield child
        finally:
            if child is not None:
                with child:  # closes its pipes
                    _end(child, ask, grace_s)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let SIGINT and SIGTERM be felt after the body: in between, a child would run that nobody knows.

    They are not blocked instead, for the child would inherit that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in came[:1]:
            signal.raise_signal(first)


def _end(child: subprocess.Popen[str], ask: Sequence[signal.Signals], grace_s: float) -> None:
    try:
        for number in ask:
            if child.poll() is not None:
                return
            child.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
    finally:
        child.kill()  # also after a second Ctrl-C; nothing to one that has ended
        child.wait()  # the pipes' end leaves this out after Ctrl-C
