# SPDX-License-Identifier: Apache-2.0
"""One folder as one file, the same bytes from the same folder; it appears whole, or not at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from netjoule.core.errors import RunFailed, UsageError

SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar.xz")
# What a ZIP file can say: its calendar begins in 1980, and counts by two seconds.
_FIRST_DAY, _LAST_DAY = datetime(1980, 1, 1, tzinfo=UTC), datetime(2107, 12, 31, tzinfo=UTC)
_MODE = 0o644
_BLOCK = 1 << 20
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def require_free(path: Path) -> None:
    """Refuse a name that is taken or of no known kind of archive, before any work is done.

    Raises:
        UsageError: with what to do instead.
    """
    if not path.name.endswith(SUFFIXES) or path.name in SUFFIXES:
        raise UsageError(f"{path} is no name of a bundle", next_step=f"end it with {', '.join(SUFFIXES)}")
    if os.path.lexists(path):
        raise _taken(path)
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", next_step="make it, or choose another --out")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a sentence about the bundle that was not made.

    Raises:
        RunFailed: for every ``OSError``, chained.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else (error.strerror or str(error)).lower()
        remedy = "free some space, or choose another --out" if full else "choose another --out"
        raise RunFailed(
            f"cannot write {path}: {reason}", next_step=f"nothing was left behind; {remedy}"
        ) from error


def written(folder: Path, archive: Path, when: datetime) -> None:
    """Write ``folder`` as ``archive``: files sorted by name, one time, no owner, one mode.

    Args:
        folder: what is packed; its own name is the first step of every path.
        archive: file that does not exist; its suffix says the kind.
        when: time of all files.
    """
    when = min(max(when.astimezone(UTC), _FIRST_DAY), _LAST_DAY)
    if archive.name.endswith(".zip"):
        _zip(folder, archive, when)
    else:
        _tar(folder, archive, when)
    with archive.open("rb+") as handle:
        os.fsync(handle.fileno())


def place(temporary: Path, path: Path) -> None:
    """Give a finished file its name, unless that was taken meanwhile.

    Raises:
        UsageError: when something has the name.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _place_without_links(temporary, path)


def file_names(folder: Path) -> list[str]:
    """Paths of all files in a folder, relative to it, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _taken(path: Path) -> UsageError:
    return UsageError(f"{path} exists", next_step="choose another --out, or remove it first")


def _place_without_links(temporary: Path, path: Path) -> None:
    """On a file system without hard links: take the name, then put the file there."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE))
    except FileExistsError:
        raise _taken(path) from None
    try:
        temporary.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _zip(folder: Path, archive: Path, when: datetime) -> None:
    with zipfile.ZipFile(archive, "x") as bundle:
        for name in file_names(folder):
            entry = zipfile.ZipInfo(f"{folder.name}/{name}", when.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whatever it is written on
            entry.external_attr = (0o100000 | _MODE) << 16
            entry.file_size = (folder / name).stat().st_size
            with (folder / name).open("rb") as source, bundle.open(entry, "w") as target:
                shutil.copyfileobj(source, target, _BLOCK)


def _tar(folder: Path, archive: Path, when: datetime) -> None:
    with (
        archive.open("xb") as raw,
        _compressed(raw, archive.name) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as bundle,
    ):
        for name in file_names(folder):
            entry = tarfile.TarInfo(f"{folder.name}/{name}")
            entry.size = (folder / name).stat().st_size
            entry.mtime, entry.mode = int(when.timestamp()), _MODE
            with (folder / name).open("rb") as source:
                bundle.addfile(entry, source)


def _compressed(raw: IO[bytes], name: str) -> gzip.GzipFile | lzma.LZMAFile:
    """A stream into ``raw``; xz sees what runs repeat, which lies too far apart for gzip."""
    if name.endswith(".xz"):
        return lzma.LZMAFile(raw, "wb", preset=6)
    return gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0)
