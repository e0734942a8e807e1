# SPDX-License-Identifier: Apache-2.0
"""Lines over a file descriptor: what serial ports and TCP connections have in common.

Waiting is done with ``select``, so that another thread can call a wait off (a logger must end within a second
even when an instrument updates every 5 s).
"""

from __future__ import annotations

import os
import select
import termios
from abc import ABC, abstractmethod

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, ReplyTimeout
from netjoule_meters.transports.cancellation import Cancellation
from netjoule_meters.transports.line_framing import LineAssembler, LineEnd

_AT_ONCE = 4096
_LONGEST_DRAIN_S = 3.0


class LineConnection(ABC):
    """Reads and writes lines; a subclass opens and closes.

    Attributes:
        first_byte_ns: CLOCK_MONOTONIC at which the first byte of the line last received arrived.
    """

    def __init__(self, resource: str, line_end: LineEnd, *, clock: Clock) -> None:
        self.resource = resource
        self.first_byte_ns = 0
        self._clock = clock
        self._terminator = line_end.sent
        self._lines = LineAssembler(line_end)
        self._wake = Cancellation()

    @abstractmethod
    def _descriptor(self) -> int:
        """The open descriptor; raise ConnectionLost when there is none."""

    @abstractmethod
    def _send(self, data: bytes) -> None:
        """Send all of ``data``; may raise OSError, and ConnectionLost when it is not open."""

    def write_line(self, line: bytes) -> None:
        """Send one line."""
        try:
            self._send(line + self._terminator)
        except (OSError, termios.error) as error:
            raise ConnectionLost(f"cannot write to {self.resource}: {error}") from error

    def read_line(self, timeout_s: float) -> bytes:
        """Receive one line; CR and LF around it are taken off."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            line = self._lines.take()
            if line is not None:
                self.first_byte_ns = line.first_ns
                return line.text
            remaining_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                what = "no whole line" if self._lines.partial else "no answer"
                raise ReplyTimeout(f"{what} on {self.resource} within {timeout_s:g} s")
            self._lines.add(self._receive(remaining_s), self._clock.monotonic_ns())

    def drain(self, quiet_s: float) -> None:
        """Throw input away until the line is quiet; something that never stops is not waited for."""
        deadline_ns = self._clock.monotonic_ns() + int(max(_LONGEST_DRAIN_S, 2 * quiet_s) * 1e9)
        while self._receive(quiet_s) and self._clock.monotonic_ns() < deadline_ns:
            pass
        self._lines.clear()

    def cancel(self) -> None:
        """Call waits off for good."""
        self._wake.set()

    def _receive(self, timeout_s: float) -> bytes:
        """What arrives within ``timeout_s``; empty when nothing does."""
        descriptor = self._descriptor()
        try:
            readable, _, _ = select.select([descriptor, self._wake.descriptor], [], [], max(0.0, timeout_s))
            if self._wake.descriptor in readable:
                raise Cancelled(f"the wait on {self.resource} was called off")
            if not readable:
                return b""
            data = os.read(descriptor, _AT_ONCE)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise ConnectionLost(f"cannot read from {self.resource}: {error.strerror or error}") from error
        if not data:
            raise ConnectionLost(f"{self.resource} was closed at the other end")
        return data
