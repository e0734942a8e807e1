# SPDX-License-Identifier: Apache-2.0
"""Lines to a GPIB instrument behind a Prologix controller, on USB or on Ethernet.

The controller is told once to be the controller in charge, never to read by itself (``++auto 0`` would
otherwise leave "query unterminated" errors behind), to end messages with EOI; each answer is asked for with
``++read eoi``. It gives up after ``++read_tmo_ms``, 3 s at most, without a word, and is then asked again
(Prologix GPIB-USB and GPIB-ETHERNET controller user manuals).
"""

from __future__ import annotations

from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, NoAnswer, ReplyTimeout, UsageError
from netjoule_meters.transports.base import Transport

_READ_TIMEOUT_MS = 1000
_MARGIN_S = 0.2
"""The controller's own time-out may come a little late; until then an answer may still be on its way."""
_ESCAPED = b"\r\n\x1b+"


class PrologixPort:
    """One GPIB address behind the controller that ``inner`` connects to."""

    def __init__(self, resource: str, inner: Transport, address: int, *, clock: Clock) -> None:
        self.resource = resource
        self._inner = inner
        self._address = address
        self._clock = clock
        self._asked_until_ns: int | None = None

    def open(self) -> None:
        """Connect to the controller, make sure that it is one, address the instrument.

        Raises:
            PortUnavailable: when the controller's port cannot be opened.
            NoAnswer: when no Prologix controller answers there.
        """
        self._inner.open()
        self._asked_until_ns = None
        try:
            self._inner.drain(0.05)
            self._make_sure_of_controller()
            for command in (
                "++savecfg 0",
                "++mode 1",
                "++auto 0",
                f"++addr {self._address}",
                "++eoi 1",
                "++eos 2",
                "++eot_enable 0",
                f"++read_tmo_ms {_READ_TIMEOUT_MS}",
                "++ifc",
                "++clr",
            ):
                self._inner.write_line(command.encode("ascii"))
        except NoAnswer:
            self._inner.close()
            raise
        except ConnectionLost as error:
            self._inner.close()
            raise NoAnswer(f"the GPIB controller on {self.resource} went away: plug it in again") from error

    def close(self) -> None:
        """Let go of the controller."""
        self._inner.close()

    def write_line(self, line: bytes) -> None:
        """Send one message; the controller adds NL and EOI. An empty one says nothing on a bus."""
        if line:
            self._inner.write_line(b"".join(_escaped(byte) for byte in line))

    def read_line(self, timeout_s: float) -> bytes:
        """One answer, asked for as long as the controller must be asked."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            now_ns = self._clock.monotonic_ns()
            if now_ns >= deadline_ns:
                raise ReplyTimeout(f"no answer on {self.resource} within {timeout_s:g} s")
            if self._asked_until_ns is None or now_ns >= self._asked_until_ns:
                self._inner.write_line(b"++read eoi")
                self._asked_until_ns = now_ns + int((_READ_TIMEOUT_MS / 1e3 + _MARGIN_S) * 1e9)
            try:
                line = self._inner.read_line((min(deadline_ns, self._asked_until_ns) - now_ns) / 1e9)
            except ReplyTimeout:
                continue
            self._asked_until_ns = None
            return line

    def drain(self, quiet_s: float) -> None:
        """Clear the instrument's queues and throw away what is under way."""
        self._inner.write_line(b"++clr")
        self._inner.drain(quiet_s if self._asked_until_ns is None else _READ_TIMEOUT_MS / 1e3 + _MARGIN_S)
        self._asked_until_ns = None

    def cancel(self) -> None:
        """Call waits off for good."""
        self._inner.cancel()

    def _make_sure_of_controller(self) -> None:
        self._inner.write_line(b"++ver")
        try:
            version = self._inner.read_line(1.0)
        except ReplyTimeout:
            version = b""
        if b"GPIB" not in version.upper():
            raise NoAnswer(
                f"no Prologix GPIB controller answers on {self.resource} ({version[:40]!r} to ++ver): "
                "check its port and that no other program uses it"
            )


def _escaped(byte: int) -> bytes:
    return (b"\x1b" if byte in _ESCAPED else b"") + bytes([byte])


def prologix(resource: str, *, clock: Clock, **settings: Any) -> PrologixPort:
    """``prologix:/dev/ttyUSB0:5`` or ``prologix:HOST:1234:5``.

    Raises:
        UsageError: for another form.
    """
    place, _, address = resource.removeprefix("prologix:").rpartition(":")
    if not place or not address.isdecimal() or not 0 <= int(address) <= 30:
        raise UsageError(
            f"'{resource}' names no GPIB address: write prologix:/dev/ttyUSB0:5 or prologix:HOST:1234:5"
        )
    inner: Transport
    if "/" in place:
        from netjoule_meters.transports.serial_port import SerialPort

        inner = SerialPort(place, clock=clock, **settings)
    else:
        from netjoule_meters.transports.tcp_line import tcp_line

        inner = tcp_line(f"tcp:{place}", clock=clock)
    return PrologixPort(resource, inner, int(address), clock=clock)
