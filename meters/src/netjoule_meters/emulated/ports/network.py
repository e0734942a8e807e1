# SPDX-License-Identifier: Apache-2.0
"""Where a client finds an emulated instrument: a pseudo-terminal, a TCP port or a UDP port.

All are read and written without waiting; what nobody takes in time is lost, as on a serial line without
handshake.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Protocol

from netjoule_meters.errors import UsageError

_LARGEST = 65536


class Port(Protocol):
    """Bytes to and from one client."""

    @property
    def name(self) -> str:
        """What a client should open."""

    def descriptors(self) -> list[int]:
        """What to watch for input."""

    def read(self) -> bytes:
        """What clients have sent; empty when nothing."""

    def write(self, data: bytes, more: bool = False) -> None:
        """Send; ``more`` of the same answer follows."""

    def unplug(self) -> None:
        """Pull the cable: clients lose the connection and get no new one."""

    def plug_in(self) -> None:
        """Put the cable back; the name stays."""

    def close(self) -> None:
        """Let go of everything."""


class TcpPort:
    """One client at a time over TCP; a new one takes the place of the old.

    With ``once`` it hangs up after each answer.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, once: bool = False) -> None:
        self._once = once
        self._client: socket.socket | None = None
        self._listener: socket.socket | None = _listening(host, port)
        self.host, self.port = self._listener.getsockname()[:2]

    @property
    def name(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"

    def descriptors(self) -> list[int]:
        """The listener and the client."""
        return [s.fileno() for s in (self._listener, self._client) if s is not None]

    def read(self) -> bytes:
        """What the client has sent."""
        if self._listener is None:
            return b""
        with contextlib.suppress(BlockingIOError):
            client, _ = self._listener.accept()
            self.hang_up()
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client = client
        if self._client is None:
            return b""
        try:
            data = self._client.recv(_LARGEST)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.hang_up()
        return data

    def write(self, data: bytes, more: bool = False) -> None:
        """Send to the client, if there is one."""
        if self._client is None:
            return
        with contextlib.suppress(OSError):
            self._client.send(data)
        if self._once and not more:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the client's connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def unplug(self) -> None:
        """Hang up and listen no more: connections are refused."""
        self.hang_up()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def plug_in(self) -> None:
        """Listen again on the same port."""
        if self._listener is None:
            self._listener = _listening(self.host, self.port)

    def close(self) -> None:
        """Close everything."""
        self.unplug()


class UdpPort:
    """Datagrams; an answer goes to whoever asked last."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._from: tuple[str, int] | None = None
        self._plugged = True
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        self.host, self.port = self._socket.getsockname()[:2]

    @property
    def name(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"

    def descriptors(self) -> list[int]:
        """The socket."""
        return [self._socket.fileno()]

    def read(self) -> bytes:
        """One datagram."""
        try:
            data, sender = self._socket.recvfrom(_LARGEST)
        except OSError:
            return b""
        if not self._plugged:
            return b""
        self._from = sender
        return data

    def write(self, data: bytes, more: bool = False) -> None:
        """Answer."""
        if self._from is not None and self._plugged:
            with contextlib.suppress(OSError):
                self._socket.sendto(data, self._from)

    def unplug(self) -> None:
        """Datagrams get lost in both directions."""
        self._plugged, self._from = False, None

    def plug_in(self) -> None:
        """Datagrams arrive again."""
        self._plugged = True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _listening(host: str, port: int) -> socket.socket:
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener
