# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and the exit code each kind ends with.

::

    NetjouleError            1  (base; never raised itself)
    |-- RunFailed            1  a campaign, a process or a file operation failed
    |-- UsageError           2  the command line, a workload or a topology asks for something impossible
    |-- HostLacks            3  this host has no such program, right or device
    `-- InvalidData          4  files that do not fit their contract, or data that decide nothing

Every message says what happened, where, and what to do next.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class NetjouleError(Exception):
    """Base of all errors that end a command with one clear line.

    Attributes:
        what: what happened, without a full stop.
        where: file, line, field, host or run; empty when ``what`` already says it.
        next_step: what the user can do; empty when nothing is known.
        code: reason code of protocols/contracts/reasons.json, when the error is one of them.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", next_step: str = "", code: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next_step = next_step
        self.code = code

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        end = " " if text.endswith("?") else "; "
        return f"{text}{end}{self.next_step}" if self.next_step else text


class RunFailed(NetjouleError):
    """Something that should have worked did not (exit 1)."""


class UsageError(NetjouleError):
    """The request cannot be carried out as written (exit 2)."""

    exit_code = 2


class HostLacks(NetjouleError):
    """This host lacks a program, a permission or a device (exit 3)."""

    exit_code = 3


class InvalidData(NetjouleError):
    """Data break their contract or are inconclusive (exit 4)."""

    exit_code = 4


_NEXT_BY_ERRNO = {
    errno.ENOSPC: ("the disk is full", "free some space, then run 'netjoule resume' on the campaign"),
    errno.EDQUOT: (
        "the disk quota is used up",
        "free some space, then run 'netjoule resume' on the campaign",
    ),
    errno.EROFS: ("the file system is read-only", "choose another folder with --out"),
    errno.EACCES: ("permission denied", "check who owns the folder, or choose another one with --out"),
    errno.EPERM: ("operation not permitted", "check who owns the folder, or choose another one with --out"),
    errno.ENOENT: ("no such file or folder", "check the path"),
    errno.ENOTDIR: ("a part of the path is not a folder", "check the path"),
    errno.EISDIR: ("it is a folder where a file is expected", "check the path"),
}


def did_you_mean(name: str, known: Iterable[object]) -> str:
    """``, did you mean 'blocks'?`` for a name that is close to a known one, else nothing."""
    close = difflib.get_close_matches(name, [str(one) for one in known], n=1)
    return f", did you mean '{close[0]}'?" if close else ""


@contextmanager
def file_errors(verb: str, path: Path) -> Iterator[None]:
    """Turn what hinders the block to use a file into a sentence naming ``path``.

    Args:
        verb: what was tried, e.g. ``"write"``.
        path: the file or folder.

    Raises:
        RunFailed: for every ``OSError``, chained.
        InvalidData: for what is beyond the limits of all readers, or not what it must be.
    """
    # Here, as the sandbox is started with this package alone.
    from netjoule_contracts.reading import Unreadable

    try:
        yield
    except OSError as error:
        raise refused(verb, path, error) from error
    except Unreadable as error:
        where = f"{path}, {error.place}" if error.place else str(path)
        raise InvalidData(error.what, where=where) from error


def refused(verb: str, path: object, error: OSError) -> RunFailed:
    """The sentence for what the system did not allow with a file or folder."""
    reason, hint = _NEXT_BY_ERRNO.get(error.errno or 0, (error.strerror or str(error), ""))
    return RunFailed(f"cannot {verb} {path}: {reason}", next_step=hint)
