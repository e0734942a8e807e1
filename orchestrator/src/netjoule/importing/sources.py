# SPDX-License-Identifier: Apache-2.0
"""Files that results are imported from: found, read whole, and what is wrong with one as a sentence."""

from __future__ import annotations

import bz2
import hashlib
import io
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netjoule.core.errors import InvalidData, UsageError, file_errors
from netjoule.store.folder_limits import MOST_LEVELS, walk
from netjoule_contracts import reading

MOST_BYTES = 128_000_000
"""Of one file, unpacked: what its lines become takes several times as much memory."""
MOST_BYTES_TOGETHER = 256_000_000
_BZ2 = b"BZh"


@dataclass(frozen=True, slots=True)
class Source:
    """One file.

    Attributes:
        data: what is in it, decompressed.
        size_bytes: of the file as it lies there.
        sha256: likewise.
        changed_s: when it was last changed, seconds since 1970.
        named: the user named it, rather than a folder that it is in.
    """

    path: Path
    data: bytes
    size_bytes: int
    sha256: str
    changed_s: float
    named: bool = True

    @classmethod
    def unread(cls, path: Path, *, named: bool) -> Source:
        """A file of which nothing is known yet."""
        return cls(path, b"", 0, "", 0.0, named)

    @property
    def name(self) -> str:
        """Name of the file without its folder, and without .bz2."""
        return self.path.name.removesuffix(".bz2")

    @property
    def text(self) -> str:
        """What is in it; bytes that are no UTF-8 become question marks."""
        return self.data.decode("utf-8", errors="replace")

    def refuse(self, what: str, place: str = "", next_step: str = "") -> InvalidData:
        """The error for what is wrong at a place of this file."""
        where = f"{self.path}, {place}" if place else str(self.path)
        return InvalidData(what, where=where, next_step=next_step)


def find(places: Sequence[Path]) -> list[tuple[Path, bool]]:
    """Files to read, each once, and whether the user named it: those named, and all below named folders.

    A folder that lies too deep stands for what is in it; to read it says so.

    Raises:
        UsageError: for a path where nothing is.
    """
    found: dict[Path, bool] = {}
    for place in places:
        if not place.exists():
            raise UsageError(f"there is no file or folder {place}", next_step="check the path")
        if place.is_dir():
            for entry in walk(place):
                plain = stat.S_ISREG(entry.found.st_mode) and not entry.place.name.startswith(".")
                too_deep = stat.S_ISDIR(entry.found.st_mode) and entry.level > MOST_LEVELS
                if plain or too_deep:
                    found.setdefault(entry.place, False)
        else:
            found[place] = True
    return list(found.items())


def read(path: Path, *, named: bool = True) -> Source:
    """Read a file, decompressed when bzip2 compressed it.

    Raises:
        InvalidData: when it is too large or no plain file, or its compression is broken.
        RunFailed: when the system does not let it be read.
    """
    if path.is_dir():
        raise Source.unread(path, named=named).refuse(f"a folder more than {MOST_LEVELS} levels deep")
    try:
        with file_errors("read", path):
            raw = reading.content(path, MOST_BYTES)
            changed_s = path.stat().st_mtime
    except InvalidData as error:
        next_step = "import a part of it" if path.is_file() else "name a file, or a folder of files"
        raise InvalidData(error.what, where=error.where, next_step=next_step) from error
    source = Source(path, raw, len(raw), hashlib.sha256(raw).hexdigest(), changed_s, named)
    if not raw.startswith(_BZ2):
        return source
    data = _decompressed(source)
    return Source(path, data, source.size_bytes, source.sha256, changed_s, named)


def _decompressed(source: Source) -> bytes:
    """The whole of a bzip2 file, of several streams when it has them."""
    try:
        with bz2.open(io.BytesIO(source.data)) as packed:
            data = packed.read(MOST_BYTES + 1)
    except EOFError:
        raise source.refuse("its bzip2 compression is cut off") from None
    except (OSError, ValueError) as error:
        raise source.refuse(f"its bzip2 compression is broken: {error}") from error
    if len(data) > MOST_BYTES:
        raise source.refuse(f"it unpacks to more than {MOST_BYTES / 1e6:g} MB")
    return data
