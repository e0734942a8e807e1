# SPDX-License-Identifier: Apache-2.0
"""Lines over a serial port or a pseudo-terminal.

pyserial opens and configures the port; waiting is done here with ``select``, so that one file descriptor
can call a wait off (a logger must end within a second even when an instrument updates every 5 s).
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
from typing import TYPE_CHECKING

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout

if TYPE_CHECKING:
    import serial

_HANDSHAKES: dict[str, dict[str, bool]] = {
    "none": {},
    "xon_xoff": {"xonxoff": True},
    "rts_cts": {"rtscts": True},
    "dsr_dtr": {"dsrdtr": True},
}
_LONGEST_LINE = 4096


class SerialPort:
    """One serial port; ``frame`` is data bits, parity, stop bits, for example ``8N1``."""

    def __init__(
        self,
        resource: str,
        *,
        clock: Clock,
        baud_rate: int = 9600,
        frame: str = "8N1",
        handshake: str = "none",
        terminator: bytes = b"\n",
    ) -> None:
        self.resource = resource
        self._clock = clock
        self._baud_rate = baud_rate
        self._frame = frame
        self._handshake = handshake
        self._terminator = terminator
        self._port: serial.Serial | None = None
        self._received = bytearray()
        self._wake_read, self._wake_write = os.pipe()

    def open(self) -> None:
        """Open and configure the port, exclusively."""
        import serial

        self.close()
        self._received.clear()
        data_bits, parity, stop_bits = list(self._frame)
        try:
            self._port = serial.Serial(
                self.resource,
                baudrate=self._baud_rate,
                bytesize=int(data_bits),
                parity=parity,
                stopbits=int(stop_bits),
                timeout=0,
                write_timeout=2,
                exclusive=True,
                **_HANDSHAKES[self._handshake],
            )
        except (OSError, ValueError, termios.error) as error:
            raise PortUnavailable(_why_not_opened(self.resource, error)) from error

    def close(self) -> None:
        """Close the port."""
        port, self._port = self._port, None
        if port is not None:
            with contextlib.suppress(OSError, termios.error):
                port.close()

    def write_line(self, line: bytes) -> None:
        """Send one line."""
        try:
            self._opened().write(line + self._terminator)
        except (OSError, termios.error) as error:
            raise ConnectionLost(f"cannot write to {self.resource}: {error}") from error

    def read_line(self, timeout_s: float) -> bytes:
        """Receive one line; CR, LF and blanks around it are taken off."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            line, found, rest = self._received.partition(self._terminator)
            if found:
                self._received = rest
                return bytes(line).strip(b"\r\n")
            remaining_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                raise ReplyTimeout(f"no answer on {self.resource} within {timeout_s:g} s")
            self._received += self._receive(remaining_s)[-_LONGEST_LINE:]

    def drain(self, quiet_s: float) -> None:
        """Throw input away until the line is quiet."""
        self._received.clear()
        while self._receive(quiet_s):
            pass

    def cancel(self) -> None:
        """Call waits off for good."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")

    def _opened(self) -> serial.Serial:
        if self._port is None:
            raise ConnectionLost(f"{self.resource} is not open")
        return self._port

    def _receive(self, timeout_s: float) -> bytes:
        """What arrives within ``timeout_s``; empty when nothing does."""
        try:
            descriptor = self._opened().fileno()
            readable, _, _ = select.select([descriptor, self._wake_read], [], [], timeout_s)
            if self._wake_read in readable:
                raise Cancelled(f"the wait on {self.resource} was called off")
            if not readable:
                return b""
            data = os.read(descriptor, _LONGEST_LINE)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise ConnectionLost(f"cannot read from {self.resource}: {error.strerror or error}") from error
        if not data:
            raise ConnectionLost(f"{self.resource} was closed at the other end")
        return data

    def __del__(self) -> None:
        self.close()
        for descriptor in (self._wake_read, self._wake_write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def serial_port_names() -> list[str]:
    """Serial ports of this host, by path."""
    from serial.tools import list_ports

    return sorted(str(port.device) for port in list_ports.comports())


def _why_not_opened(resource: str, error: Exception) -> str:
    """One sentence with the next step for an error of ``open``."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        there = ", ".join(serial_port_names()) or "none"
        return f"no serial port {resource}: plug it in or name another (serial ports of this host: {there})"
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission to open {resource}: join its group (usually 'dialout') and log in again"
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"{resource} is in use by another program: end that program or name another port"
    return f"{resource} cannot be used as a serial port ({error}): name the path of a serial port"
