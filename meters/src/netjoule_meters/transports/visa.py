# SPDX-License-Identifier: Apache-2.0
"""Lines to an instrument that PyVISA opens: VXI-11 over Ethernet, GPIB, USB.

``vxi11:HOST`` stands for ``TCPIP::HOST::INSTR``; ``vxi11:HOST:PORT`` names the port of the core channel
itself, for instruments behind a firewall or a tunnel (PyVISA-py takes ``HOST,PORT``). A wait is cut into
slices, because a VISA read cannot be called off from another thread; on these interfaces a read that timed
out has taken nothing from the instrument (VXI-11 rev. 1.0 B.6.6: ``device_read`` ends with error 15).
"""

from __future__ import annotations

import contextlib
from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, MeterUnavailable, PortUnavailable, ReplyTimeout, UsageError
from netjoule_meters.transports.cancellation import Cancellation

_SLICE_S = 0.25
_OPEN_TIMEOUT_MS = 3000
_WRITE_TIMEOUT_MS = 500
_ADVICE_INSTALL = "PyVISA-py wants that package for this kind of address; install it, then try again"
_ADVICE_SWITCHED_ON = (
    "check that the instrument is on, its address, and that remote control over this interface is enabled "
    "on it"
)


class VisaPort:
    """One VISA resource."""

    def __init__(self, resource: str, address: str, *, clock: Clock, visa_library: str = "@py") -> None:
        self.resource = resource
        self._address = address
        self._library = visa_library
        self._clock = clock
        self._manager: Any = None
        self._instrument: Any = None
        self._wake = Cancellation()

    def open(self) -> None:
        """Open the resource.

        Raises:
            MeterUnavailable: when PyVISA or its library is not installed.
            UsageError: when the address is none.
            PortUnavailable: when the resource cannot be opened.
        """
        try:
            import pyvisa
            from pyvisa.rname import InvalidResourceName, ResourceName
        except ImportError as error:
            raise MeterUnavailable(f"{self.resource} needs PyVISA: pip install './meters[visa]'") from error
        try:
            ResourceName.from_string(self._address)
        except InvalidResourceName as error:
            raise UsageError(
                f"'{self.resource}' names no instrument: write vxi11:HOST or visa:GPIB0::5::INSTR"
            ) from error
        self.close()
        try:
            self._manager = pyvisa.ResourceManager(self._library)
        except Exception as error:  # a wrapper that is not installed, a file that is no library
            raise MeterUnavailable(
                f"{self.resource} needs the VISA library '{self._library}' ({_one_line(error)}): "
                "pip install './meters[visa]' for '@py', or set visa_library to the one that is here"
            ) from error
        try:
            self._instrument = self._manager.open_resource(
                self._address,
                open_timeout=_OPEN_TIMEOUT_MS,
                write_termination="\n",
                read_termination="\n",
            )
        except Exception as error:  # PyVISA-py raises bare Exceptions, RPC errors and socket errors here
            self.close()
            why = _one_line(error)
            advice = _ADVICE_INSTALL if "install" in why.lower() else _ADVICE_SWITCHED_ON
            raise PortUnavailable(f"cannot open {self._address} ({why}): {advice}") from error

    def close(self) -> None:
        """Let go of the resource."""
        instrument, self._instrument = self._instrument, None
        manager, self._manager = self._manager, None
        for thing in (instrument, manager):
            if thing is not None:
                with contextlib.suppress(Exception):  # the other end may be gone already
                    thing.close()

    def write_line(self, line: bytes) -> None:
        """Send one message; an empty one says nothing on a bus."""
        if not line:
            return
        try:
            instrument = self._opened()
            instrument.timeout = _WRITE_TIMEOUT_MS
            instrument.write(line.decode("ascii"))
        except Exception as error:
            raise self._lost("write to", error) from error

    def read_line(self, timeout_s: float) -> bytes:
        """One answer."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        # A USB read that times out is aborted by the driver, so that it is not cut into slices.
        slice_s = timeout_s if self._address.upper().startswith("USB") else _SLICE_S
        while True:
            self._wake.check(self.resource)
            remaining_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                raise ReplyTimeout(f"no answer on {self.resource} within {timeout_s:g} s")
            line = self._read(min(slice_s, remaining_s))
            if line is not None:
                return line.strip(b"\r\n")

    def drain(self, quiet_s: float) -> None:
        """Device clear: the instrument forgets questions and answers."""
        with contextlib.suppress(ConnectionLost):
            try:
                self._opened().clear()
            except Exception as error:
                raise self._lost("clear", error) from error

    def cancel(self) -> None:
        """Call waits off for good."""
        self._wake.set()

    def _read(self, timeout_s: float) -> bytes | None:
        """An answer, None when there is none within ``timeout_s``."""
        from pyvisa.constants import StatusCode
        from pyvisa.errors import VisaIOError

        instrument = self._opened()
        try:
            instrument.timeout = max(1, round(timeout_s * 1e3))
            return bytes(instrument.read_raw())
        except VisaIOError as error:
            if error.error_code == StatusCode.error_timeout:
                return None
            raise self._lost("read from", error) from error
        except Exception as error:
            raise self._lost("read from", error) from error

    def _opened(self) -> Any:
        if self._instrument is None:
            raise ConnectionLost(f"{self.resource} is not open")
        return self._instrument

    def _lost(self, doing: str, error: Exception) -> ConnectionLost:
        if isinstance(error, ConnectionLost):
            return error
        return ConnectionLost(f"cannot {doing} {self.resource}: {_one_line(error)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def visa(resource: str, *, clock: Clock, **settings: Any) -> VisaPort:
    """``visa:ADDRESS`` with an address as VISA writes it, ``vxi11:HOST`` or ``vxi11:HOST:PORT``."""
    scheme, _, rest = resource.partition(":")
    address = rest if scheme == "visa" else f"TCPIP::{rest.replace(':', ',')}::INSTR"
    return VisaPort(resource, address, clock=clock, **settings)
