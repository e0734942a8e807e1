# SPDX-License-Identifier: Apache-2.0
"""Ends the program between two samples, never inside one, on SIGTERM, SIGINT or SIGHUP."""

from __future__ import annotations

import enum
import select
import signal
import socket
from types import FrameType
from typing import Protocol


class HasFileno(Protocol):
    """Something that select can wait for."""

    def fileno(self) -> int:
        """File descriptor."""


class WaitResult(enum.Enum):
    """Why a wait ended."""

    STOP = enum.auto()
    READY = enum.auto()
    TIME = enum.auto()


class Shutdown:
    """Waits for time or input and catches the signals that end the program; one per process, main thread."""

    def __init__(self) -> None:
        self._requested = False
        self._inner, outer = socket.socketpair()
        self._outer = outer
        outer.setblocking(False)
        signal.set_wakeup_fd(outer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup(1)
                signal.signal(number, self._on_signal)

    def requested(self) -> bool:
        """Return whether a signal has asked to end."""
        return self._requested

    def wait(self, seconds: float, source: HasFileno | None = None) -> WaitResult:
        """Wait until `source` is readable or the time is over, unless the program is to end."""
        if self.requested():
            return WaitResult.STOP
        sources: list[HasFileno] = [self._inner] if source is None else [self._inner, source]
        readable, _, _ = select.select(sources, [], [], max(seconds, 0.0))
        if self.requested():
            return WaitResult.STOP
        return WaitResult.READY if source in readable else WaitResult.TIME

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._requested = True
