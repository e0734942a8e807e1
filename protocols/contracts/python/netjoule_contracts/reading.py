# SPDX-License-Identifier: Apache-2.0
"""Reads files that anybody may have made, with the limits that all readers share.

Nothing but plain files is opened, none is waited for, and memory is bounded: documents are as large as
`MOST_DOCUMENT_BYTES`, tables and streams are read line by line. What is beyond a limit is `Unreadable`, with
the place; a row of a table that cannot be read leaves those behind it.
"""

from __future__ import annotations

import csv
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

MOST_DOCUMENT_BYTES = 192_000_000  # the 400,000 intervals that a flow report may have, 0.4 kB each
MOST_LINE_BYTES = 1 << 20
MOST_DIGITS = 100  # of a number; a float holds 308
MOST_LEVELS = 50  # of lists and objects; ours have about ten
_NOT_PLAIN = "it is no plain file"


class Unreadable(ValueError):
    """A file, or a part of one, is not what it must be.

    Attributes:
        place: line or field; empty for the whole.
        what: one sentence.
    """

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}" if place else what)
        self.place = place
        self.what = what


@contextmanager
def opened(path: Path, *, follow: bool = True) -> Iterator[BinaryIO]:
    """A plain file for reading.

    Args:
        path: the file.
        follow: whether it may be a link.

    Raises:
        Unreadable: for a folder, FIFO, socket or device, of which nothing is read.
        OSError: when the system does not open it.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("", _NOT_PLAIN)
        with os.fdopen(descriptor, "rb", closefd=False) as handle:
            yield handle
    finally:
        os.close(descriptor)


def content(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES, *, follow: bool = True) -> bytes:
    """The whole of a plain file.

    Raises:
        Unreadable: when it is longer, of which nothing is read then, or no plain file.
        OSError: when the system does not let it be read.
    """
    with opened(path, follow=follow) as handle:
        if os.fstat(handle.fileno()).st_size <= most_bytes:
            # A file of /proc or one that grows has more than its size says.
            whole = handle.read(most_bytes + 1)
            if len(whole) <= most_bytes:
                return whole
    raise Unreadable("", f"longer than {_size(most_bytes)}")


def _size(most_bytes: int) -> str:
    return f"{most_bytes // 1_000_000} MB" if most_bytes >= 2_000_000 else f"{most_bytes // 1000} kB"


def document(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES, *, follow: bool = True) -> Any:
    """The JSON value that a file holds.

    Raises:
        Unreadable: when it is none, or beyond a limit.
        OSError: when the system does not let it be read.
    """
    return value_of(content(path, most_bytes, follow=follow))


def value_of(text: bytes | str) -> Any:
    """A JSON text's value; its numbers are finite and short, its levels few.

    Raises:
        Unreadable: naming the line where it is not.
    """
    plain = text if isinstance(text, str) else _utf_8(text)
    try:
        value = _STRICT.decode(plain)
    except json.JSONDecodeError as error:
        raise Unreadable(f"line {error.lineno}", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise Unreadable("", _DEEP) from None
    if plain.count("[") + plain.count("{") > MOST_LEVELS:
        _require_shallow(value)
    return value


def _utf_8(data: bytes, first: int = 1) -> str:
    """Bytes as text; ``first`` is the number of their first line."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        raise Unreadable(f"line {line}", "not UTF-8") from None


_DEEP = f"not JSON of ours: nested more than {MOST_LEVELS} levels deep"


def _require_shallow(value: Any) -> None:
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        if not level:
            return
        level = [child for one in level for child in _held(one) if isinstance(child, (dict, list))]
    raise Unreadable("", _DEEP)


def _held(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Unreadable("", f"a number of {len(text)} digits; {MOST_DIGITS} are the most")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable("", f"{text[:40]} is not finite; a number that does not exist is null")
    return value


_STRICT = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=_finite)


def lines(path: Path, most_bytes: int | None = None) -> Iterator[bytes]:
    """The lines of a file, each with its end; the last one may have none.

    Args:
        path: the file.
        most_bytes: of the file; None for one that may grow and is not held as a whole.

    Raises:
        Unreadable: when the file is longer, or at a line over `MOST_LINE_BYTES`: whatever that is, nothing
            behind it is read.
        OSError: when the system does not let it be read.
    """
    with opened(path) as handle:
        if most_bytes is not None and os.fstat(handle.fileno()).st_size > most_bytes:
            raise Unreadable("", f"longer than {_size(most_bytes)}")
        number = 0
        while line := bounded_line(handle, number := number + 1):
            yield line


def require_lines(path: Path) -> None:
    """Refuse a file that has a line far over `MOST_LINE_BYTES`, which others would hold whole.

    Raises:
        Unreadable: as `lines`, here without the line's number.
        OSError: when the system does not let it be read.
    """
    with opened(path) as handle:
        while block := handle.read(MOST_LINE_BYTES):
            if len(block) == MOST_LINE_BYTES and b"\n" not in block:
                raise _too_long()


def bounded_line(handle: BinaryIO, number: int = 0) -> bytes:
    """The next line of a file; empty at its end.

    Raises:
        Unreadable: when it is over `MOST_LINE_BYTES`; ``number`` names it, where that is known.
    """
    line = handle.readline(MOST_LINE_BYTES + 1)
    if len(line) > MOST_LINE_BYTES:
        raise _too_long(f"line {number}" if number else "")
    return line


def _too_long(place: str = "") -> Unreadable:
    return Unreadable(place, f"a line longer than {MOST_LINE_BYTES >> 20} MiB; nothing behind it is read")


def _said(error: csv.Error) -> str:
    """Why a row cannot be read; the limit of a cell in words of ours."""
    most = csv.field_size_limit()
    return f"a cell of more than {most} characters" if "field limit" in str(error) else str(error)


class Row(NamedTuple):
    """A row of a table: the line where it ends, and its cells, or none and why it cannot be read."""

    line: int
    cells: list[str]
    defect: str = ""


def rows(path: Path, most_bytes: int | None = None, *, whole_lines: bool = False) -> Iterator[Row]:
    """The rows of a CSV, the header first; one that cannot be read by itself is there with its defect.

    Args:
        path: the file.
        most_bytes: as `lines`.
        whole_lines: leave out a last line without its end, which a crash left.

    Raises:
        Unreadable: as `lines`, and for what is not UTF-8.
        OSError: when the system does not let it be read.
    """
    reader = csv.reader(
        _utf_8(line, number)
        for number, line in enumerate(lines(path, most_bytes), start=1)
        if line.endswith(b"\n") or not whole_lines
    )
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(reader.line_num, [], _said(error))
        else:
            yield Row(reader.line_num, cells)
