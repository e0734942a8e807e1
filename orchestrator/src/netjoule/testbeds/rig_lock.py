# SPDX-License-Identifier: Apache-2.0
"""One gate or block at a time on a rig: a lock that is free when its holder dies, and a limit to the wait.

CI services cancel jobs that wait for each other (GitHub's `concurrency` keeps one); a gate waits by itself.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netjoule.core.clock import boot_id
from netjoule.core.errors import InvalidData, file_errors
from netjoule.topology.topology import EMULATED, Topology

FOLDER = "NETJOULE_LOCKS"
"""Variable that names another folder for locks; one that all users of the machine share, else."""


def name_of(of: Topology) -> str:
    """Name of a rig for its lock: an emulated one alone is this machine, whatever its topology is called."""
    name = EMULATED if of.kind == EMULATED else of.name
    return f"{name}-{of.rig}" if "rig" in of.document else name


def path_of(rig: str, env: Mapping[str, str] = os.environ) -> Path:
    """The lock's file: of this machine, and gone with its next start."""
    folders = (env.get(FOLDER, ""), "/run/lock", tempfile.gettempdir())
    folder = next(Path(one) for one in folders if one and os.access(one, os.W_OK | os.X_OK))
    return folder / f"netjoule-{re.sub('[^A-Za-z0-9._-]', '_', rig)}.lock"


@contextmanager
def held(
    path: Path, owner: str, wait_s: float, waiting: Callable[[str], None], longer: str = ""
) -> Iterator[bool]:
    """Have a rig's lock while the body runs; whether who had it before was killed.

    Args:
        path: from `path_of`.
        owner: what takes it, for who waits.
        wait_s: limit of the wait.
        waiting: told once who has it.
        longer: how to wait longer, as a clause.

    Raises:
        InvalidData: `rig_busy`, when another still has it then.
    """
    with file_errors("lock", path):
        descriptor = _opened(path)
    try:
        _take(descriptor, path, wait_s, waiting, longer)
        killed = bool(os.pread(descriptor, 1, 0))
        document = {
            "owner": owner,
            "pid": os.getpid(),
            "boot_id": boot_id(),
            "since_unix_s": int(time.time()),
        }
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, (json.dumps(document) + "\n").encode(), 0)
        try:
            yield killed
        finally:
            os.truncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """Open it, made where it is not there, for whoever uses the rig; Python's descriptors close on exec."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)  # one of another user may be opened in a sticky folder, not created
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
        os.fchmod(descriptor, 0o666)
        return descriptor


def _take(descriptor: int, path: Path, wait_s: float, waiting: Callable[[str], None], longer: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        waiting(_holder(descriptor))
    # flock(1) waits in the kernel, with a limit; the lock that it takes is that of our open file.
    words = ["flock", "--exclusive", "--timeout", f"{wait_s:.3f}", str(descriptor)]
    if subprocess.run(words, pass_fds=(descriptor,), check=False).returncode:
        raise InvalidData(
            f"the rig is in use: {_holder(descriptor)}, after {wait_s:g} s of waiting",
            where=str(path),
            next_step=f"run it again later{longer}",
            code="rig_busy",
        )


def _holder(descriptor: int) -> str:
    """Who has it, in words; it may not have written that yet."""
    try:
        document: Any = json.loads(os.pread(descriptor, 4096, 0))
        return f"{document['owner']} (process {document['pid']})"
    except (ValueError, KeyError, TypeError):
        return "another gate or campaign"
