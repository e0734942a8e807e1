# SPDX-License-Identifier: Apache-2.0
"""Files that results are imported from: found, read whole, and what is wrong with one as a sentence."""

from __future__ import annotations

import bz2
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netjoule.errors import InvalidData, UsageError, file_errors

__all__ = ["MOST_BYTES", "Source", "find", "read"]

MOST_BYTES = 1 << 30
_BZ2 = b"BZh"
_STEP_BYTES = 1 << 20


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

    Raises:
        UsageError: for a path where nothing is.
    """
    found: dict[Path, bool] = {}
    for place in places:
        if not place.exists():
            raise UsageError(f"there is no file or folder {place}", next_step="check the path")
        if place.is_dir():
            for path in sorted(place.rglob("*")):
                if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                    found.setdefault(path, False)
        else:
            found[place] = True
    return list(found.items())


def read(path: Path, *, named: bool = True, most_bytes: int = MOST_BYTES) -> Source:
    """Read a file, decompressed when bzip2 compressed it.

    Raises:
        InvalidData: when it is too large, or its compression is broken.
        RunFailed: when the system does not let it be read.
    """
    with file_errors("read", path), path.open("rb") as handle:
        raw = handle.read(most_bytes + 1)
        changed_s = path.stat().st_mtime
    source = Source(path, raw, len(raw), hashlib.sha256(raw).hexdigest(), changed_s, named)
    if len(raw) > most_bytes:
        raise source.refuse(
            f"it holds more than {most_bytes >> 20} MiB",
            next_step="import a part of it",
        )
    if not raw.startswith(_BZ2):
        return source
    data = _decompressed(source, most_bytes)
    return Source(path, data, source.size_bytes, source.sha256, changed_s, named)


def _decompressed(source: Source, most_bytes: int) -> bytes:
    """The whole of a bzip2 file, of several streams when it has them."""
    parts: list[bytes] = []
    size, rest = 0, source.data
    try:
        while rest:
            stream = bz2.BZ2Decompressor()
            while not stream.eof:
                part = stream.decompress(rest, _STEP_BYTES)
                size += len(part)
                parts.append(part)
                rest = b""
                if size > most_bytes:
                    raise source.refuse(f"it unpacks to more than {most_bytes >> 20} MiB")
                if not part and stream.needs_input and not stream.eof:
                    raise source.refuse("its bzip2 compression is cut off")
            rest = stream.unused_data
    except (OSError, ValueError) as error:
        raise source.refuse(f"its bzip2 compression is broken: {error}") from error
    return b"".join(parts)
