# SPDX-License-Identifier: Apache-2.0
"""What may be a campaign's folder: free for a new one, within the limits for one that is read.

Limits are looked at before anything is opened: to open a FIFO waits for a writer, for ever; a file of
gigabytes where a document belongs, a line without end or a thousand folders in each other take all memory of
whoever reads them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from netjoule.core.errors import InvalidData, UsageError, file_errors
from netjoule.hosts import sandbox
from netjoule_contracts import reading

LINK = "a symbolic link has no place in a campaign"  # it leads anywhere, and is written through
SPECIAL = "a FIFO, a socket or a device has no place in a campaign"
MOST_FILES = 2_000_000  # in all: a run has about ten
MOST_LEVELS = 12  # of folders; a campaign's own are three
_DEEP = f"a folder more than {MOST_LEVELS} levels deep; what is in it is not looked at"
_GROWING = frozenset({"meters", "radio", "devices"})
"""Folders of files that grow for days; their readers hold a line at a time."""


class Entry(NamedTuple):
    """What a folder holds.

    Attributes:
        found: of itself, not of what a link leads to.
        level: 1 for what stands in the folder itself.
    """

    place: Path
    found: os.stat_result
    level: int


def walk(folder: Path) -> Iterator[Entry]:
    """Everything in a folder and below it, in order; no link is followed.

    Folders more than MOST_LEVELS deep are named and not entered. One more than MOST_FILES of a folder are
    looked at, which is enough to refuse it.

    Raises:
        OSError: for a folder that the system does not let be read.
    """
    rest = [(folder, 1)]
    while rest:
        here, level = rest.pop()
        with os.scandir(here) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_FILES + 1))
        inner = []
        for name in names:
            place = here / name
            found = place.lstat()
            yield Entry(place, found, level)
            if stat.S_ISDIR(found.st_mode) and level <= MOST_LEVELS:
                inner.append((place, level + 1))
        rest += reversed(inner)


def beyond_limits(campaign: Path) -> Iterator[tuple[Path, str]]:
    """Places of a campaign that are not to be opened, with a sentence each."""
    for count, (place, found, level) in enumerate(walk(campaign), start=1):
        if count > MOST_FILES:
            yield campaign, f"more than {MOST_FILES} files; the rest is not looked at"
            return
        if stat.S_ISLNK(found.st_mode):
            yield place, LINK
        elif stat.S_ISDIR(found.st_mode):
            if level > MOST_LEVELS:
                yield place, _DEEP
        elif not stat.S_ISREG(found.st_mode):
            yield place, SPECIAL
        elif _is_document(place.relative_to(campaign)) and found.st_size > reading.MOST_DOCUMENT_BYTES:
            yield place, f"longer than {reading.MOST_DOCUMENT_BYTES // 10**6} MB; it is not read"


def _is_document(place: Path) -> bool:
    """Whether somebody reads it whole."""
    within = place.parts[2:] if place.parts[0] == "blocks" else place.parts
    return place.suffix in (".json", ".csv") and within[:1] != () and within[0] not in _GROWING


def require_readable(campaign: Path) -> None:
    """Refuse a campaign that cannot be read within the limits, before anything of it is opened.

    Raises:
        InvalidData: naming the first place.
    """
    for place, what in beyond_limits(campaign):
        raise InvalidData(what, where=str(place), next_step="remove it; nothing was read or written")
    for pattern in ("meters/*.csv", "radio/*.csv", "devices/*.ndjson"):
        for path in sorted((*campaign.glob(pattern), *campaign.glob(f"blocks/*/{pattern}"))):
            with file_errors("read", path):
                reading.require_lines(path)


def require_free(out: Path) -> None:
    """Refuse a folder that already holds something, or that the sandbox would hide.

    Raises:
        UsageError: with what to do instead.
    """
    if sandbox.hidden_by_sandbox(out):
        raise UsageError(
            f"{out} lies under /run, which the emulated testbed covers", next_step="choose another --out"
        )
    require_empty(out)


def require_empty(out: Path) -> None:
    """Refuse a folder that already holds something, or a file.

    Raises:
        UsageError: with what to do instead.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            f"{out} exists and is not empty",
            next_step="choose another --out, or continue it with 'netjoule resume'",
        )


def require_campaign(path: Path) -> None:
    """Refuse a folder that is no campaign's.

    Raises:
        UsageError: with what to name instead.
    """
    if not (path / "campaign.json").exists():
        raise UsageError(
            f"{path} is not a campaign: it has no campaign.json",
            next_step="name a folder that 'netjoule run' made, e.g. results/NAME",
        )
