# SPDX-License-Identifier: Apache-2.0
"""Lines over a serial port or a pseudo-terminal: pyserial opens and configures it."""

from __future__ import annotations

import contextlib
import errno
import termios
from typing import TYPE_CHECKING, Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, PortUnavailable, UsageError
from netjoule_meters.transports.line_connection import LineConnection
from netjoule_meters.transports.line_framing import LINE_ENDS
from netjoule_meters.transports.ports_in_use import use_of

if TYPE_CHECKING:
    import serial

_PATIENCE_NS = 3_000_000_000
"""A port that another program has is tried again for so long: one just killed may be on its way out."""
_LOOK_AGAIN_S = 0.1

_HANDSHAKES: dict[str, dict[str, bool]] = {
    "none": {},
    "xon_xoff": {"xonxoff": True},
    "rts_cts": {"rtscts": True},
    "dsr_dtr": {"dsrdtr": True},
}


class SerialPort(LineConnection):
    """One serial port; ``frame`` is data bits, parity, stop bits, for example ``8N1``."""

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
        super().__init__(resource, LINE_ENDS[line_end], clock=clock)
        self._baud_rate = baud_rate
        self._frame = frame
        self._handshake = handshake
        self._port: serial.Serial | None = None

    def open(self) -> None:
        """Open and configure the port, exclusively."""
        self.close()
        self._lines.clear()
        until_ns = self._clock.monotonic_ns() + _PATIENCE_NS
        while self._port is None:
            try:
                self._port = self._new_port()
            except (OSError, termios.error) as error:
                if not _is_taken(error) or self._clock.monotonic_ns() >= until_ns:
                    raise PortUnavailable(_why_not_opened(self.resource, error)) from error
                self._wake.check(self.resource, _LOOK_AGAIN_S)
        if self._handshake == "xon_xoff":
            _release(self._port.fileno())

    def _new_port(self) -> serial.Serial:
        """Open it once. Raises OSError, termios.error and, for settings it cannot have, UsageError."""
        import serial

        data_bits, parity, stop_bits = list(self._frame)
        try:
            return serial.Serial(
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
        except (ValueError, OverflowError) as error:
            raise UsageError(
                f"{self.resource} cannot run at {self._baud_rate} Bd, {self._frame}: set baud_rate and frame "
                "to those of the instrument"
            ) from error

    def close(self) -> None:
        """Close the port."""
        port, self._port = self._port, None
        if port is not None:
            with contextlib.suppress(OSError, termios.error):
                port.close()

    def _descriptor(self) -> int:
        return int(self._opened().fileno())

    def _send(self, data: bytes) -> None:
        self._opened().write(data)

    def _opened(self) -> serial.Serial:
        if self._port is None:
            raise ConnectionLost(f"{self.resource} is not open")
        return self._port


def serial_port(resource: str, *, clock: Clock, **settings: Any) -> SerialPort:
    """The port that a resource names: a path, or ``serial:`` and a path.

    Raises:
        UsageError: for no path.
    """
    path = resource.removeprefix("serial:")
    if not path:
        raise UsageError(f"'{resource}' names no serial port: write its path, for example /dev/ttyUSB0")
    return SerialPort(path, clock=clock, **settings)


def serial_port_names() -> list[str]:
    """Serial ports of this host, by path."""
    from serial.tools import list_ports

    return sorted(str(port.device) for port in list_ports.comports())


def _release(descriptor: int) -> None:
    """Let output go on that an XOFF of the last connection, or one in line noise, still holds."""
    with contextlib.suppress(termios.error):
        termios.tcflow(descriptor, termios.TCOOFF)
        termios.tcflow(descriptor, termios.TCOON)


def _is_taken(error: Exception) -> bool:
    """Whether another program has the port locked."""
    return getattr(error, "errno", None) in (errno.EBUSY, errno.EAGAIN)


def _why_not_opened(resource: str, error: Exception) -> str:
    """One sentence with the next step for an error of ``open``."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        there = ", ".join(serial_port_names()) or "none"
        return f"no serial port {resource}: plug it in or name another (serial ports of this host: {there})"
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission to open {resource}: join its group (usually 'dialout') and log in again"
    if _is_taken(error):
        pids = use_of(resource).pids
        who = f" (process {', '.join(map(str, pids))})" if pids else ""
        return f"{resource} is in use by another program{who}: end that program or name another port"
    return f"{resource} cannot be used as a serial port ({error}): name the path of a serial port"
