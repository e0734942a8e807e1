# SPDX-License-Identifier: Apache-2.0
"""What a transport is: it carries lines of bytes and knows nothing of their meaning."""

from __future__ import annotations

from typing import Protocol


class Transport(Protocol):
    """A connection to one instrument. Methods raise the ``DialogueError`` family once open."""

    resource: str

    def open(self) -> None:
        """Connect; a second call connects anew.

        Raises:
            MeterUnavailable: when the port cannot be opened.
        """
        ...

    def close(self) -> None:
        """Let go of the port; harmless when not open."""
        ...

    def write_line(self, line: bytes) -> None:
        """Send ``line`` and the terminator.

        Raises:
            ConnectionLost: when the port is gone.
        """
        ...

    def read_line(self, timeout_s: float) -> bytes:
        """One received line without its terminator.

        Raises:
            ReplyTimeout: no whole line within ``timeout_s``; the part that came is kept for the next call.
            ConnectionLost: when the port is gone.
            Cancelled: after ``cancel``.
        """
        ...

    def drain(self, quiet_s: float) -> None:
        """Throw away what arrives until nothing has arrived for ``quiet_s``."""
        ...

    def cancel(self) -> None:
        """End a ``read_line`` that is waiting, from another thread, and all later ones."""
        ...
