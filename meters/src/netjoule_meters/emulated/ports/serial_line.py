# SPDX-License-Identifier: Apache-2.0
"""The sending side of a serial line: bytes leave one after the other at the line's rate. Pure.

A client of an emulated instrument therefore sees a line in pieces, as it does on a real port. XOFF from the
client holds the output until XON, where the instrument heeds them.
"""

from __future__ import annotations

from collections import deque

XON, XOFF = 0x11, 0x13
_BITS_PER_BYTE = 10
"""Start bit, eight data bits, stop bit."""
_SAME_TIME_S = 1e-9


class SerialLine:
    """Bytes waiting to be sent; times are campaign seconds."""

    def __init__(self, baud_rate: int) -> None:
        self._byte_s = _BITS_PER_BYTE / baud_rate
        self._waiting: deque[tuple[int, float]] = deque()
        self._held = False
        self._free_s = 0.0

    @property
    def idle(self) -> bool:
        """Whether everything has been sent."""
        return not self._waiting

    def put(self, data: bytes, now_s: float, not_before_s: float = 0.0) -> None:
        """Send ``data`` after what is waiting, and not before ``not_before_s``."""
        for byte in data:
            start_s = max(now_s, not_before_s, self._free_s)
            self._free_s = start_s + self._byte_s
            self._waiting.append((byte, self._free_s))

    def heed(self, data: bytes) -> bytes:
        """Obey XON and XOFF in what a client sent; the rest of it."""
        for byte in data:
            if byte in (XON, XOFF):
                self._held = byte == XOFF
        return data.translate(None, bytes((XON, XOFF)))

    def take(self, now_s: float) -> bytes:
        """Bytes that have left by ``now_s``."""
        sent = bytearray()
        while not self._held and self._waiting and self._waiting[0][1] <= now_s + _SAME_TIME_S:
            sent.append(self._waiting.popleft()[0])
        return bytes(sent)

    def wake_s(self) -> float | None:
        """When the next byte leaves; None when none waits or the client holds the line."""
        return self._waiting[0][1] if self._waiting and not self._held else None
