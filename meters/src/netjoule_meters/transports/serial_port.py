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
from typing import TYPE_CHECKING, Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout
from netjoule_meters.transports.lines import LINE_ENDS, LineAssembler

if TYPE_CHECKING:
    import serial

_HANDSHAKES: dict[str, dict[str, bool]] = {
    "none": {},
    "xon_xoff": {"xonxoff": True},
    "rts_cts": {"rtscts": True},
    "dsr_dtr": {"dsrdtr": True},
}
_AT_ONCE = 4096
_LONGEST_DRAIN_S = 3.0


class SerialPort:
    """One serial port; ``frame`` is data bits, parity, stop bits, for example ``8N1``.

    Attributes:
        first_byte_ns: CLOCK_MONOTONIC at which the first byte of the line last received arrived.
    """

    def __init__(
        self,
        resource: str,
        *,
        clock: Clock,
        baud_rate: int = 9600,
        frame: str = "8N1",
        handshake: str = "none",
        line_end: str = "lf",
    ) -> None:
        self.resource = resource
        self._clock = clock
        self._baud_rate = baud_rate
        self._frame = frame
        self._handshake = handshake
        self._terminator = LINE_ENDS[line_end].sent
        self._lines = LineAssembler(LINE_ENDS[line_end])
        self._port: serial.Serial | None = None
        self.first_byte_ns = 0
        self._wake_read, self._wake_write = os.pipe()

    def open(self) -> None:
        """Open and configure the port, exclusively."""
        import serial

        self.close()
        self._lines.clear()
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
        if self._handshake == "xon_xoff":
            _release(self._port.fileno())

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
        """Receive one line; CR and LF around it are taken off."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            line = self._lines.take()
            if line is not None:
                self.first_byte_ns = line.first_ns
                return line.text
            remaining_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                raise ReplyTimeout(f"no answer on {self.resource} within {timeout_s:g} s")
            self._lines.add(self._receive(remaining_s), self._clock.monotonic_ns())

    def drain(self, quiet_s: float) -> None:
        """Throw input away until the line is quiet; something that never stops is not waited for."""
        deadline_ns = self._clock.monotonic_ns() + int(max(_LONGEST_DRAIN_S, 2 * quiet_s) * 1e9)
        while self._receive(quiet_s) and self._clock.monotonic_ns() < deadline_ns:
            pass
        self._lines.clear()

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
            data = os.read(descriptor, _AT_ONCE)
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


def serial_port(resource: str, *, clock: Clock, **settings: Any) -> SerialPort:
    """The port that a resource names: a path, or ``serial:`` and a path."""
    return SerialPort(resource.removeprefix("serial:"), clock=clock, **settings)


def serial_port_names() -> list[str]:
    """Serial ports of this host, by path."""
    from serial.tools import list_ports

    return sorted(str(port.device) for port in list_ports.comports())


def _release(descriptor: int) -> None:
    """Let output go on that an XOFF of the last connection, or one in line noise, still holds."""
    with contextlib.suppress(termios.error):
        termios.tcflow(descriptor, termios.TCOOFF)
        termios.tcflow(descriptor, termios.TCOON)


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
