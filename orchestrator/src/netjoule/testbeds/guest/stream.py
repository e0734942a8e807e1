# SPDX-License-Identifier: Apache-2.0
"""A byte stream that ends with a mark instead of end-of-file, as a virtual serial port has none."""

from __future__ import annotations

from collections.abc import Callable


class MarkedStream:
    """Passes bytes on as they come and stops at the mark; holds back what may be the mark's beginning."""

    def __init__(self, mark: bytes, sink: Callable[[bytes], None]) -> None:
        self._mark = mark
        self._sink = sink
        self._held = b""
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes; those after the mark are dropped."""
        if self.ended:
            return
        data = self._held + data
        at = data.find(self._mark)
        if at >= 0:
            self.ended = True
            self._held, ready = b"", data[:at]
        else:
            kept = self._begun(data)
            self._held, ready = data[len(data) - kept :], data[: len(data) - kept]
        if ready:
            self._sink(ready)

    def _begun(self, data: bytes) -> int:
        """Length of the longest end of ``data`` that the mark begins with."""
        for length in range(min(len(self._mark) - 1, len(data)), 0, -1):
            if data.endswith(self._mark[:length]):
                return length
        return 0
