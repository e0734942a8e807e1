# SPDX-License-Identifier: Apache-2.0
"""What ends a command: SIGTERM and SIGHUP (a closed terminal) as exceptions, so that it cleans up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


def termination_signals() -> tuple[signal.Signals, ...]:
    """What asks a command to end: SIGINT, SIGTERM and, unless nohup(1) has it ignored, SIGHUP."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,)))


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None], numbers: Iterable[int]) -> Iterator[None]:
    """Signals go to a handler while the body runs; nothing changes in a thread, which none ever reaches."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, other in before.items():
            signal.signal(number, other)


def exit_on_signals() -> AbstractContextManager[None]:
    """SIGTERM and SIGHUP raise SystemExit while the body runs, so that nothing begun here goes on alone."""
    numbers = [number for number in termination_signals() if number != signal.SIGINT]
    return handled_by(lambda number, _frame: sys.exit(128 + number), numbers)
