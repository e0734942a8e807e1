# SPDX-License-Identifier: Apache-2.0
"""The lines of a time-ordered text file that lie in a stretch of time, without reading the rest of it.

A campaign's power files grow for days; the numbers of one run need seconds of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from netjoule_contracts.reading import bounded_line, opened

PROBE_BYTES = 4096

TimeOf = Callable[[bytes], float | None]
"""Time of a line in campaign seconds, or None when the line carries none (a header, a torn line)."""


def lines_between(path: Path, t_from_s: float, t_to_s: float, time_of: TimeOf) -> Iterator[bytes]:
    """Yield the complete lines whose time lies in [t_from_s, t_to_s], in file order.

    A last line without its newline is still being written and is left out.

    Raises:
        Unreadable: at a line that is longer than any of ours.
    """
    with opened(path) as handle:
        _seek_before(handle, path.stat().st_size, t_from_s, time_of)
        while line := bounded_line(handle):
            if not line.endswith(b"\n"):
                return
            t_s = time_of(line)
            if t_s is None or t_s < t_from_s:
                continue
            if t_s > t_to_s:
                return
            yield line


def _seek_before(handle: BinaryIO, size: int, t_from_s: float, time_of: TimeOf) -> None:
    """Leave `handle` at a line start at or before the first line of t_from_s, by bisection over bytes."""
    low, high = 0, size
    while high - low > PROBE_BYTES:
        middle = (low + high) // 2
        handle.seek(middle)
        bounded_line(handle)
        start = handle.tell()
        if start >= high or _starts_late(handle, t_from_s, time_of):
            high = middle
        else:
            low = start
    handle.seek(low)


def _starts_late(handle: BinaryIO, t_from_s: float, time_of: TimeOf) -> bool:
    """Return whether the next line that carries a time lies at or after t_from_s (or there is none)."""
    while line := bounded_line(handle):
        t_s = time_of(line)
        if t_s is not None:
            return t_s >= t_from_s
    return True
