# SPDX-License-Identifier: Apache-2.0
"""The file ``meters/<meter_id>.csv`` (contract ``meters``): append-only, flushed row by row.

Each row goes to the kernel in one write, so that a killed process leaves whole rows. The one cut-off row
that a power failure or a full disk can leave is taken off before the file is continued. A file that was
begun before there were energy counters is continued in its own columns.
"""

from __future__ import annotations

import fcntl
import math
import os
from collections.abc import Sequence
from pathlib import Path

from netjoule_meters.clock import campaign_time_s
from netjoule_meters.errors import InvalidLog, LogWriteError
from netjoule_meters.reading import Reading

COLUMNS = ("t_s", "seq", "power_w", "voltage_v", "current_a", "energy_j", "flag")
COLUMNS_BEFORE_COUNTERS = tuple(name for name in COLUMNS if name != "energy_j")
_KNOWN_COLUMNS = (COLUMNS, COLUMNS_BEFORE_COUNTERS)
_TAIL_BYTES = 4096


def header(columns: Sequence[str]) -> bytes:
    """The first line of a file with ``columns``."""
    return (",".join(columns) + "\n").encode("ascii")


def row(seq: int, reading: Reading, origin_ns: int, columns: Sequence[str] = COLUMNS) -> str:
    """One row without its newline; a missing value is an empty cell."""
    cells = [f"{campaign_time_s(reading.t_ns, origin_ns):.6f}", str(seq)]
    for name in columns[2:-1]:
        value: float | None = getattr(reading, name)
        cells.append("" if value is None else f"{value:.12g}")
    return ",".join([*cells, reading.flag.value])


def last_row(tail: bytes, name: str, columns: Sequence[str] = COLUMNS) -> tuple[int, float]:
    """Number and campaign time (s) of the last row in ``tail`` (whole rows), -1 and -inf when there is none.

    Raises:
        InvalidLog: when the last row is not one of this contract.
    """
    lines = tail.splitlines()
    if not lines or lines[-1] + b"\n" == header(columns):
        return -1, -math.inf
    cells = lines[-1].split(b",")
    try:
        if len(cells) != len(columns) or not cells[1].isdigit():
            raise ValueError
        return int(cells[1]), float(cells[0])
    except ValueError:
        raise InvalidLog(
            f"the last row of {name} is not a reading ({lines[-1][:60]!r}): move the file away or repair it"
        ) from None


class ReadingsFile:
    """One open file of readings; the row numbers go on where an earlier session ended."""

    def __init__(self, path: Path, origin_ns: int) -> None:
        self.path = path
        self._origin_ns = origin_ns
        self._columns: tuple[str, ...] = COLUMNS
        self.cut_off_bytes = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            raise LogWriteError(f"cannot open {path}: {error.strerror}") from error
        try:
            self._lock()
            seq, self._last_t_s = self._continue()
            self.next_seq = seq + 1
        except BaseException:
            os.close(self._descriptor)
            raise

    def require_later(self, t_ns: int) -> None:
        """Refuse a session that would begin before the last row of an earlier one.

        Raises:
            InvalidLog: when the instant ``t_ns`` lies before it: times in the file would run twice.
        """
        t_s = campaign_time_s(t_ns, self._origin_ns)
        if t_s < self._last_t_s:
            raise InvalidLog(
                f"{self.path} already holds readings up to {self._last_t_s:.3f} s and this session begins at "
                f"{t_s:.3f} s: log into another folder, or give the --origin-ns of the first session"
            )

    def append(self, reading: Reading) -> None:
        """Write one row.

        Raises:
            LogWriteError: when the disk is full or fails; the rows before it stay whole.
            InvalidLog: when the file has no column for an energy counter.
        """
        if reading.energy_j is not None and "energy_j" not in self._columns:
            raise InvalidLog(
                f"{self.path} was begun without the column energy_j that this meter needs: "
                "log it into a new campaign"
            )
        text = row(self.next_seq, reading, self._origin_ns, self._columns)
        self._write((text + "\n").encode("ascii"))
        self.next_seq += 1

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogWriteError(f"another logger is writing {self.path}: end it first") from None

    def _continue(self) -> tuple[int, float]:
        """Check or write the header, take a cut-off row off; the last row's number and time."""
        size = os.fstat(self._descriptor).st_size
        head = os.pread(self._descriptor, len(header(COLUMNS)), 0)
        first, newline, _ = head.partition(b"\n")
        if not newline and any(header(known).startswith(first) for known in _KNOWN_COLUMNS):
            os.ftruncate(self._descriptor, 0)
            self._write(header(COLUMNS))
            return -1, -math.inf
        known_here = [known for known in _KNOWN_COLUMNS if header(known) == first + newline]
        if not known_here:
            raise InvalidLog(
                f"{self.path} is not a file of readings (its header is {head[:60]!r}): move it away"
            )
        self._columns = known_here[0]
        tail = os.pread(self._descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        whole, newline, cut_off = tail.rpartition(b"\n")
        if cut_off:
            self.cut_off_bytes = len(cut_off)
            os.ftruncate(self._descriptor, size - len(cut_off))
        return last_row(whole + newline, str(self.path), self._columns)

    def _write(self, data: bytes) -> None:
        """All of ``data`` or nothing of it."""
        before = os.fstat(self._descriptor).st_size
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            if written:
                os.ftruncate(self._descriptor, before)
            raise LogWriteError(
                f"cannot write {self.path}: {error.strerror}; the rows before are kept, free space and resume"
            ) from error
