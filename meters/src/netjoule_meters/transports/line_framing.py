# SPDX-License-Identifier: Apache-2.0
"""From the pieces that arrive on a serial line to whole lines, each with the time of its first byte.

Pure: bytes and times go in. The first byte's time is the stamp of a message that an instrument sends
unasked, for the rest of it only costs line time.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

_LONGEST = 16_384
"""A part of a line that grows beyond this is noise; it is cut so that memory stays flat."""


@dataclass(frozen=True, slots=True)
class LineEnd:
    """One way to end lines.

    Attributes:
        sent: what is put after a line that is sent.
        ends: each of these bytes ends a received line.
        keeps_empty: whether an empty received line is a line.
    """

    sent: bytes
    ends: bytes
    keeps_empty: bool


LINE_ENDS = {
    "lf": LineEnd(b"\n", b"\n", True),
    "crlf": LineEnd(b"\r\n", b"\n", True),
    # An instrument that wants CR may answer with CR, LF or both; the second of both makes no line.
    "cr": LineEnd(b"\r", b"\r\n", False),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A received line without its end, and when its first byte arrived (ns)."""

    text: bytes
    first_ns: int


class LineAssembler:
    """Puts lines together; a line that is not whole yet is kept."""

    def __init__(self, line_end: LineEnd) -> None:
        self._line_end = line_end
        self._split = re.compile(b"[" + re.escape(line_end.ends) + b"]")
        self._part = bytearray()
        self._part_ns = 0
        self._lines: deque[Line] = deque()

    def add(self, data: bytes, t_ns: int) -> None:
        """Bytes that arrived at ``t_ns``."""
        *whole, rest = self._split.split(data)
        for piece in whole:
            self._append(piece, t_ns)
            self._finish(t_ns)
        self._append(rest, t_ns)

    def take(self) -> Line | None:
        """The oldest whole line; None when there is none."""
        return self._lines.popleft() if self._lines else None

    @property
    def partial(self) -> bool:
        """Whether part of a line has come and its end has not."""
        return bool(self._part)

    def clear(self) -> None:
        """Forget lines and parts of lines."""
        self._lines.clear()
        self._part.clear()

    def _append(self, piece: bytes, t_ns: int) -> None:
        if not piece:
            return
        if not self._part:
            self._part_ns = t_ns
        self._part += piece
        del self._part[:-_LONGEST]

    def _finish(self, t_ns: int) -> None:
        first_ns = self._part_ns if self._part else t_ns
        text = bytes(self._part).strip(b"\r\n")
        self._part.clear()
        if text or self._line_end.keeps_empty:
            self._lines.append(Line(text, first_ns))
