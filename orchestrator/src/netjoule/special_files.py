# SPDX-License-Identifier: Apache-2.0
"""Finds what is neither file nor folder in a campaign: to open a FIFO waits for a writer, for ever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from netjoule.errors import InvalidData, file_errors

__all__ = ["SPECIAL", "require_none", "special_files"]

SPECIAL = "a FIFO, a socket or a device has no place in a campaign"


def special_files(path: Path) -> Iterator[Path]:
    """FIFOs, sockets and devices in a folder and below it, those that links lead to included."""
    with file_errors("read", path), os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            place = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from special_files(place)
            elif not entry.is_file() and not entry.is_dir() and place.exists():
                yield place


def require_none(campaign: Path) -> None:
    """Refuse a campaign with such a file before anything of it is opened.

    Raises:
        InvalidData: naming the first of them.
    """
    place = next(special_files(campaign), None)
    if place is not None:
        raise InvalidData(SPECIAL, where=str(place), next_step="remove it; nothing was read or written")
