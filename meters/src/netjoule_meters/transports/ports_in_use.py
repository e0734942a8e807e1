# SPDX-License-Identifier: Apache-2.0
"""Who has a device file open: proc(5) /proc/PID/fd, and the lock files of serial programs (FHS 5.9).

A port that somebody has open is left alone. A process of another user cannot be looked into without root;
how many there were is told, so that "nobody" is never claimed without having seen. The process behind a
pseudo-terminal holds its end open all the time; it is the instrument, not a user of it.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOCKS = Path("/var/lock")
_MULTIPLEXERS = {"/dev/ptmx", "/dev/pts/ptmx"}


@dataclass(frozen=True, slots=True)
class Use:
    """Who has a device open.

    Attributes:
        pids: processes that have it open.
        locked_by: process of a serial lock file, when there is one of a living process.
        unseen: processes that could not be looked into.
    """

    pids: tuple[int, ...]
    locked_by: int | None
    unseen: int

    @property
    def free(self) -> bool:
        """Whether nobody is known to have it open."""
        return not self.pids and self.locked_by is None

    def text(self) -> str:
        """In words, for a line of the report."""
        if self.pids:
            return f"open in process {', '.join(map(str, self.pids))}: left alone"
        if self.locked_by is not None:
            return f"locked by process {self.locked_by}: left alone"
        if self.unseen:
            return f"free as far as can be seen ({self.unseen} processes of others could not be looked into)"
        return "free"


def use_of(device: str, *, proc: Path = PROC, locks: Path = LOCKS) -> Use:
    """Who has ``device`` (a path; links are followed) open."""
    target = os.path.realpath(device)
    pids, unseen = [], 0
    for folder in proc.iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        found = _has_open(folder / "fd", target)
        unseen += found is None
        if found:
            pids.append(int(folder.name))
    return Use(tuple(sorted(pids)), _locked_by(target, locks, proc), unseen)


def _has_open(folder: Path, target: str) -> bool | None:
    """Whether one of a process's descriptors is ``target``; None when they cannot be seen."""
    try:
        entries = list(folder.iterdir())
    except FileNotFoundError:
        return False  # it has ended meanwhile
    except OSError:
        return None
    links = set()
    for entry in entries:
        with contextlib.suppress(OSError):
            links.add(str(entry.readlink()))
    is_behind_it = target.startswith("/dev/pts/") and not links.isdisjoint(_MULTIPLEXERS)
    return target in links and not is_behind_it


def _locked_by(target: str, locks: Path, proc: Path) -> int | None:
    """Process of the lock file ``LCK..name``; a lock whose process has ended counts for nothing."""
    try:
        text = (locks / f"LCK..{Path(target).name}").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.match(r"\s*(\d+)", text)
    return int(found[1]) if found and (proc / found[1]).exists() else None
