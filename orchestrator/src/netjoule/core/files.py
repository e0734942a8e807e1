# SPDX-License-Identifier: Apache-2.0
"""How files reach the disk so that a kill -9 or a power cut at any moment leaves them readable.

Documents are written beside their place, flushed and renamed. Tables are appended in whole lines; a
line cut off by a crash is removed before the next append.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netjoule_contracts as contracts
from netjoule.core.errors import InvalidData, RunFailed, UsageError, file_errors
from netjoule.core.words import counted
from netjoule_contracts import reading
from netjoule_contracts.lift import plan as older_plan

if TYPE_CHECKING:
    from netjoule_contracts.documents import Kind


def write_atomic(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` so that a reader sees the old or the new file, never a part."""
    temporary = f".{path.name}.tmp"
    with file_errors("write", path), _folder(path.parent) as folder:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)  # of a crash, or a link
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(
            os.open(temporary, flags, 0o666, dir_fd=folder), "w", encoding="utf-8", newline=""
        ) as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document atomically, indented, in the given order of keys."""
    write_atomic(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InvalidData: when it is not JSON, not an object or beyond a limit of `netjoule_contracts.reading`.
        RunFailed: when the file cannot be read.
    """
    with file_errors("read", path):
        document = reading.document(path)
    if not isinstance(document, dict):
        raise InvalidData("not a JSON object", where=str(path))
    return document


def read_document(path: Path, kind: type[Kind]) -> Kind:
    """Read a document as an object of its type, `kind`.

    Raises:
        InvalidData: when it does not fit its contract, or as `read_json`.
        RunFailed: when the file cannot be read.
    """
    from netjoule_contracts.documents import typed  # here: most commands start without msgspec

    try:
        return typed(kind, read_json(path))
    except contracts.ContractError as error:
        raise InvalidData(str(error), where=str(path)) from error


def table_text(
    table: str, rows: Iterable[Mapping[str, object]], *, header: bool = True, factors: Sequence[str] = ()
) -> str:
    """CSV text of ``rows`` with the columns of Table Schema ``table``; missing values are empty cells.

    ``factors`` are the columns behind them, of a table that has some.

    Raises:
        RunFailed: for a column that the schema does not have or a value that is not finite.
    """
    names = [*(str(f["name"]) for f in contracts.table(table)["fields"]), *factors]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(names)
    for row in rows:
        unknown = sorted(set(row) - set(names))
        if unknown:
            raise RunFailed(f"table '{table}' has no column {', '.join(unknown)}")
        writer.writerow([_cell(name, row.get(name)) for name in names])
    return out.getvalue()


def append_table(
    path: Path,
    table: str,
    rows: Iterable[Mapping[str, object]],
    *,
    factors: Sequence[str] = (),
    flush: bool = False,
) -> None:
    """Append ``rows`` to the CSV ``path``, with the header first when the file is new.

    All rows go out in one write, so that a crash leaves at most one cut line at the end.

    Args:
        path: the file.
        table: its Table Schema.
        rows: to be appended.
        factors: as `table_text`.
        flush: they are on disk when this returns.
    """
    with file_errors("append to", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as handle:
            new = handle.seek(0, os.SEEK_END) == 0
            _append_whole(handle, table_text(table, rows, header=new, factors=factors).encode())
            if flush:
                os.fsync(handle.fileno())


def read_table(path: Path, table: str, *, torn: bool = False) -> list[dict[str, str]]:
    """Rows of a CSV as texts by column; a column that is younger than the file has its default.

    Args:
        path: the file.
        table: its Table Schema.
        torn: leave out an unfinished last line, as a crash leaves it.

    Raises:
        InvalidData: when the header is not the one of Table Schema ``table``, a row has another number of
            cells, or it is beyond a limit of `netjoule_contracts.reading`.
    """
    rows = _whole_rows(path, torn=torn)
    header = next(rows, [])
    if contracts.fields_of(table, header) is None:
        what = f"the header is {','.join(header)[:200]!r}, not that of '{table}'"
        raise InvalidData(what, where=f"{path}, line 1")
    known = contracts.table(older_plan.contract_of(table, header))["fields"]
    younger = {f["name"]: str(f["default"]) for f in known if "default" in f}
    return [younger | dict(zip(header, cells, strict=True)) for cells in rows]


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of any CSV as texts by column, such as R writes.

    Raises:
        InvalidData: as `read_table`, for any header.
    """
    rows = _whole_rows(path)
    header = next(rows, [])
    return [dict(zip(header, cells, strict=True)) for cells in rows]


def header_of(path: Path) -> list[str]:
    """The header of a CSV; nothing of an empty file, or where there is none."""
    return next(reading.rows(path), reading.Row(1, [])).cells if path.is_file() else []


def _whole_rows(path: Path, *, torn: bool = False) -> Iterator[list[str]]:
    """The header and the rows of a CSV, which have as many cells."""
    width = None
    with file_errors("read", path):
        for line, cells, defect in reading.rows(path, reading.MOST_DOCUMENT_BYTES, whole_lines=torn):
            width = len(cells) if width is None else width
            if defect or len(cells) != width:
                what = defect or f"{counted(len(cells), 'cell')} instead of {width}"
                raise InvalidData(what, where=f"{path}, line {line}")
            yield cells


def cut_torn_line(path: Path) -> int:
    """Remove an unfinished last line, as a crash leaves it.

    Returns:
        How many bytes were cut; 0 when the file ends with a newline or is empty.
    """
    with file_errors("repair", path), _opened(path, os.O_RDWR) as handle:
        size = handle.seek(0, os.SEEK_END)
        keep = size
        while keep:
            start = max(0, keep - 4096)
            handle.seek(start)
            newline = handle.read(keep - start).rfind(b"\n")
            if newline >= 0:
                keep = start + newline + 1
                break
            keep = start
        if keep < size:
            handle.truncate(keep)
        return size - keep


def take_lock(path: Path, *, shared: bool = False) -> int:
    """Lock a folder against a second writer; the kernel releases it when the process dies.

    Args:
        path: the folder.
        shared: against any writer, for somebody who reads; the folder must have its lock file.

    Raises:
        UsageError: when another process holds it.
    """
    flags, kind = (os.O_RDONLY, fcntl.LOCK_SH) if shared else (os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
    # Anybody may have made the folder: a FIFO is not waited for.
    descriptor = os.open(path / ".lock", flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise UsageError(
            f"another netjoule is writing {path}", next_step="wait for it to end, or stop it first"
        ) from None
    return descriptor


def being_written(path: Path) -> str:
    """What is to be said to somebody who reads a folder while another process writes it; else nothing."""
    try:
        os.close(take_lock(path, shared=True))
    except UsageError as error:
        return f"{error.what}: what follows is of the part that is there by now"
    except OSError:  # it has no lock file
        pass
    return ""


def _cell(name: str, value: object) -> str:
    """One CSV cell; times get 6 decimals, other numbers their shortest exact form."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RunFailed(f"column {name}: {value} cannot be stored; a missing value is None")
        is_time = name == "t_s" or (name.startswith("t_") and name.endswith("_s"))
        return f"{value:.6f}" if is_time else repr(value)
    return str(value)


def _append_whole(handle: io.FileIO, data: bytes) -> None:
    """Append all of ``data`` or, when the disk refuses, nothing of it."""
    before = handle.seek(0, os.SEEK_END)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[handle.write(rest) :]
    except OSError:
        handle.truncate(before)
        raise


def _opened(path: Path, flags: int) -> io.FileIO:
    """A file, unbuffered, that is none of another place: a link is not followed."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    return io.FileIO(descriptor, "rb+" if flags & os.O_RDWR else "ab")


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """A folder, made when it is missing, as a descriptor: it stays the one it was, whoever renames it."""
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
