# SPDX-License-Identifier: Apache-2.0
"""What the kernel of this host tells in files: ``sysfs:NAME`` (or the path of a device's folder).

A request is a path below the root (``sysfs_root``, usually ``/sys``):

- ``class/hwmon/hwmon2/power1_input`` is answered with the file's content;
- with ``/`` at the end, with the names in that folder, one per line;
- with ``@`` at the end, with the last part of what the symbolic link points to.

Files are opened anew for each request, as sysfs wants it.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, GarbageReply, PortUnavailable

_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR)


class NotPermitted(ConnectionLost):
    """The file is there and may not be read by this user."""


class Sysfs:
    """Files of one device of this host."""

    def __init__(self, resource: str, root: Path) -> None:
        self.resource = resource
        self._root = root
        self._cancelled = threading.Event()

    def open(self) -> None:
        """Check that there is a sysfs at all."""
        try:
            there = self._root.is_dir()
        except OSError as error:
            raise PortUnavailable(
                f"no permission to look into {self._root} ({error.strerror}): run the logger as root"
            ) from error
        if not there:
            raise PortUnavailable(
                f"no folder {self._root}: mount sysfs there, or set sysfs_root to where it is"
            )

    def close(self) -> None:
        """Nothing is held open."""

    def drain(self, quiet_s: float) -> None:
        """Nothing is pushed."""

    def cancel(self) -> None:
        """Call waits off for good."""
        self._cancelled.set()

    def fetch(self, request: str, timeout_s: float) -> bytes:
        """The answer to ``request``; the kernel answers at once or not at all, so no time-out applies."""
        if self._cancelled.is_set():
            raise Cancelled(f"reading {self.resource} was called off")
        path = self._root / request.rstrip("/@")
        try:
            return _answer(path, request[-1:])
        except PermissionError as error:
            raise NotPermitted(f"no permission to read {path}") from error
        except OSError as error:
            if error.errno in _GONE:
                raise ConnectionLost(f"{path} is not there") from error
            raise GarbageReply(f"{path} cannot be read now ({error.strerror})") from error

    def pause(self, seconds: float) -> None:
        """Wait."""
        if self._cancelled.wait(max(0.0, seconds)):
            raise Cancelled(f"the wait for {self.resource} was called off")


def sysfs(resource: str, *, clock: Clock, sysfs_root: str = "/sys") -> Sysfs:
    """The device that ``sysfs:NAME-OR-PATH`` names."""
    return Sysfs(resource, Path(sysfs_root))


def _answer(path: Path, kind: str) -> bytes:
    if kind == "/":
        return "\n".join(sorted(entry.name for entry in path.iterdir())).encode()
    if kind == "@":
        return path.readlink().name.encode()
    return path.read_bytes()
