# SPDX-License-Identifier: Apache-2.0
"""Lines over a TCP connection: ``tcp:HOST:PORT`` (IPv6 as ``tcp:[::1]:8888``).

Lines are sent with CR+LF, which instruments and PTDaemon take as one line end; received lines end with LF,
with or without CR.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.line_connection import LineConnection
from netjoule_meters.transports.line_framing import LINE_ENDS

_CONNECT_TIMEOUT_S = 5.0


class TcpLine(LineConnection):
    """One connection to ``host``:``port``."""

    def __init__(self, resource: str, host: str, port: int, *, clock: Clock) -> None:
        super().__init__(resource, LINE_ENDS["crlf"], clock=clock)
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connect."""
        self.close()
        self._lines.clear()
        host, port = self._address
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise PortUnavailable(
                f"no host is called '{host}': check the spelling, or give its address (tcp:ADDRESS:{port})"
            ) from error
        failure: OSError | None = None
        for family, kind, protocol, _, address in addresses:
            try:
                self._socket = self._connected(family, kind, protocol, address)
            except OSError as error:
                failure = error
                continue
            return
        assert failure is not None, "a name has at least one address"
        raise PortUnavailable(_why_not_connected(f"{host}:{port}", failure)) from failure

    def close(self) -> None:
        """End the connection."""
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    def _descriptor(self) -> int:
        return self._opened().fileno()

    def _send(self, data: bytes) -> None:
        self._opened().sendall(data)

    def _opened(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionLost(f"{self.resource} is not open")
        return self._socket

    def _connected(self, family: int, kind: int, protocol: int, address: Any) -> socket.socket:
        """A connected socket; waiting for it can be called off."""
        connecting = socket.socket(family, kind, protocol)
        try:
            connecting.setblocking(False)
            number = connecting.connect_ex(address)
            if number == errno.EINPROGRESS:
                self._wait_for_connection(connecting)
                number = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise OSError(number, os.strerror(number))
            connecting.settimeout(2.0)  # of sending; receiving waits with select
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            connecting.close()
            raise
        return connecting

    def _wait_for_connection(self, connecting: socket.socket) -> None:
        readable, writable, _ = select.select(
            [self._wake.descriptor], [connecting.fileno()], [], _CONNECT_TIMEOUT_S
        )
        if readable:
            raise Cancelled(f"the wait for {self.resource} was called off")
        if not writable:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def tcp_line(resource: str, *, clock: Clock) -> TcpLine:
    """The connection that ``tcp:HOST:PORT`` names."""
    host, port = host_and_port(resource)
    return TcpLine(resource, host, port, clock=clock)


def _why_not_connected(where: str, error: OSError) -> str:
    """One sentence with the next step for an error of ``connect``."""
    if error.errno == errno.ECONNREFUSED:
        return f"nothing listens on {where}: start the program that should answer there, or name another port"
    if error.errno == errno.ETIMEDOUT:
        return f"no answer from {where}: check that the host is on, its address, and any firewall between"
    if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return f"there is no way to {where}: check the address and the network of this host (ip route)"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to connect to {where}: allow it in this host's firewall or sandbox"
    return f"cannot connect to {where} ({error.strerror}): check address and port"
