# SPDX-License-Identifier: Apache-2.0
"""A pseudo-terminal under a stable name: where a client finds an emulated instrument.

The end that clients open is also held open here, so that a client may leave and come back. Like a serial
line without handshake, what nobody reads in time is lost.
"""

from __future__ import annotations

import contextlib
import os
import tty
from pathlib import Path

from netjoule_meters.errors import UsageError


class PtyPort:
    """An open pseudo-terminal; ``link`` is a symbolic link to the end that clients open."""

    def __init__(self, link: Path | None) -> None:
        self.link = link
        self._plugged = False
        self.plug_in()

    @property
    def name(self) -> str:
        """What a client should open."""
        return self.device if self.link is None else str(self.link)

    def descriptors(self) -> list[int]:
        """What to watch for input."""
        return [self.master] if self._plugged else []

    def read(self) -> bytes:
        """What clients have sent; empty when nothing."""
        if not self._plugged:
            return b""
        try:
            return os.read(self.master, 4096)
        except BlockingIOError:
            return b""

    def write(self, data: bytes, more: bool = False) -> None:
        """Send; what does not fit is lost."""
        if self._plugged:
            with contextlib.suppress(BlockingIOError):
                os.write(self.master, data)

    def plug_in(self) -> None:
        """Make a pseudo-terminal; without a link its name is a new one each time."""
        if self._plugged:
            return
        self.master, self._slave = os.openpty()
        self._plugged = True
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        self.device = os.ttyname(self._slave)
        if self.link is not None:
            try:
                _point(self.link, self.device)
            except UsageError:
                self.close()
                raise

    def close(self) -> None:
        """Take the device away."""
        self.unplug()

    def unplug(self) -> None:
        """Hang up and take the link away if it is still ours: clients lose the connection."""
        if not self._plugged:
            return
        self._plugged = False
        if self.link is not None:
            with contextlib.suppress(OSError):
                if str(self.link.readlink()) == self.device:
                    self.link.unlink()
        for descriptor in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _point(link: Path, device: str) -> None:
    """Make or replace the symbolic link in one step; never replace anything else."""
    if link.exists() and not link.is_symlink():
        raise UsageError(f"{link} exists and is not a symbolic link: name another path for --link")
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(device)
        fresh.replace(link)
    except OSError as error:
        raise UsageError(f"cannot make the link {link}: {error.strerror}") from error
