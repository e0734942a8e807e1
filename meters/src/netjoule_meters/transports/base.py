# SPDX-License-Identifier: Apache-2.0
"""What a connection is: it carries bytes and knows nothing of their meaning.

`Transport` carries lines, `Source` answers requests (a page, an object identifier, a file). Once open, the
methods raise the ``DialogueError`` family.
"""

from __future__ import annotations

from typing import Protocol

from netjoule_meters.errors import UsageError


class Connection(Protocol):
    """A connection to one instrument."""

    resource: str

    def open(self) -> None:
        """Connect; a second call connects anew.

        Raises:
            MeterUnavailable: when the instrument cannot be reached.
        """

    def close(self) -> None:
        """Let go of it; harmless when not open."""

    def drain(self, quiet_s: float) -> None:
        """Throw away what arrives until the line was quiet for ``quiet_s``."""

    def cancel(self) -> None:
        """End a call that is waiting, from another thread, and all later ones, with ``Cancelled``."""


class Transport(Connection, Protocol):
    """A connection that carries lines."""

    def write_line(self, line: bytes) -> None:
        """Send ``line`` and the terminator.

        Raises:
            ConnectionLost: when the port is gone.
        """

    def read_line(self, timeout_s: float) -> bytes:
        """One received line without its terminator.

        Raises:
            ReplyTimeout: no whole line within ``timeout_s``; the part that came is kept for the next call.
            ConnectionLost: when the port is gone.
            Cancelled: after ``cancel``.
        """


class StampedTransport(Transport, Protocol):
    """A connection whose lines come with the time of their first byte."""

    first_byte_ns: int
    """CLOCK_MONOTONIC at which the first byte of the line last received arrived."""


class Source(Connection, Protocol):
    """A connection that answers requests."""

    def fetch(self, request: str, timeout_s: float) -> bytes:
        """The answer to ``request``; what a request looks like is the interface's affair.

        Raises:
            ReplyTimeout: no answer within ``timeout_s``.
            ConnectionLost: it cannot be reached.
            GarbageReply: it answered with an error (an HTTP status, an SNMP error), named in the text.
            Cancelled: after ``cancel``.
        """

    def pause(self, seconds: float) -> None:
        """Wait.

        Raises:
            Cancelled: after ``cancel``, at once.
        """


def host_and_port(resource: str, default_port: int | None = None) -> tuple[str, int]:
    """HOST and PORT of ``SCHEME:HOST:PORT``, the port optional where there is a default; IPv6 in brackets.

    Raises:
        UsageError: when they are not there.
    """
    scheme, _, rest = resource.partition(":")
    rest = rest.removeprefix("//").rstrip("/")
    host, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        host, port = rest, str(default_port or "")
    host = host.removeprefix("[").removesuffix("]")
    if host and port.isdecimal() and 0 < int(port) < 65536:
        return host, int(port)
    if default_port is None:
        form = f"write {scheme}:HOST:PORT, for example {scheme}:lab1:8888"
        raise UsageError(f"'{resource}' names no port: {form}")
    form = f"write {scheme}:HOST or {scheme}:HOST:PORT"
    raise UsageError(f"'{resource}' does not name a host and port: {form}")
