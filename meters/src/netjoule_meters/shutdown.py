# SPDX-License-Identifier: Apache-2.0
"""How long-running commands end: SIGTERM, SIGINT, SIGHUP, or the end of standard input when it is a pipe.

A pipe or socket on standard input is the lifeline of the process that started this one. A terminal or
/dev/null is not: a logger started in the background must go on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def end_signals() -> Iterator[int]:
    """Descriptor that becomes readable when SIGTERM, SIGINT or SIGHUP has come; with nohup(1) not SIGHUP."""
    read_end, write_end = os.pipe()

    def note(_number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):
            os.write(write_end, b"x")

    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield read_end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)


@contextlib.contextmanager
def on_end_signal(action: Callable[[], object]) -> Iterator[None]:
    """Call ``action`` from a thread of its own when one of the `end_signals` has come."""
    with end_signals() as signalled:

        def wait() -> None:
            with contextlib.suppress(OSError):
                if os.read(signalled, 1):
                    action()

        threading.Thread(target=wait, daemon=True).start()
        yield


def on_lifeline_end(action: Callable[[], object]) -> None:
    """Call ``action`` from a thread of its own when the other side closes the lifeline, if there is one."""
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(descriptor, 4096):
                pass
        action()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
