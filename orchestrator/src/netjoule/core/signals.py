# SPDX-License-Identifier: Apache-2.0
"""What ends a command: SIGTERM and SIGHUP (a closed terminal) as exceptions, so that it cleans up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ending_signals", "ending_unwinds"]


def ending_signals() -> tuple[signal.Signals, ...]:
    """What asks a command to end: SIGINT, SIGTERM and, unless nohup(1) has it ignored, SIGHUP."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,)))


@contextmanager
def ending_unwinds() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit while the body runs, so that nothing begun here goes on alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda number, _frame: sys.exit(128 + number))
        for number in ending_signals()
        if number != signal.SIGINT
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
