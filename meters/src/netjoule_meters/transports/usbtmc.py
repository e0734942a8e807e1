# SPDX-License-Identifier: Apache-2.0
"""Lines to a USB test instrument (USB-TMC class, rev. 1.0) through Linux's driver: ``/dev/usbtmc0``.

A read of this driver waits in the kernel and cannot be called off, so a thread does the reading and
``read_line`` waits for that thread: a wait that was given up goes on with the next call, and nothing is
lost in between. The driver's own time-out is a little longer than that of the call, and a program that ends
during a read is held by the kernel until then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout

# include/uapi/linux/usb/tmc.h: _IO(91, 2), _IOW(91, 10, u32), _IOW(91, 25, u8)
_CLEAR = 0x5B02
_SET_TIMEOUT = 0x40045B0A
_AUTO_ABORT = 0x40015B19
_LONGEST_LINE = 4096
_MARGIN_S = 0.5
_CALLED_OFF = object()

Ioctl = Callable[[int, int, bytes], object]


def _ioctl(descriptor: int, request: int, argument: bytes) -> object:
    import fcntl

    return fcntl.ioctl(descriptor, request, argument)


class _Reader:
    """A thread that reads one message whenever it is asked to; for one open device."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.reading = False
        threading.Thread(target=self._run, name="usbtmc", daemon=True).start()

    def ask(self) -> None:
        """Read one message unless that is under way."""
        if not self.reading:
            self.reading = True
            self._wanted.put(True)

    def end(self) -> None:
        """End the thread after what it is doing."""
        self._wanted.put(False)

    def _run(self) -> None:
        while self._wanted.get():
            try:
                self.answers.put(os.read(self._descriptor, _LONGEST_LINE))
            except OSError as error:
                self.answers.put(error)
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


class UsbTmcPort:
    """One device node; each message is a line. ``ioctl`` is the system call, for tests."""

    def __init__(self, resource: str, path: str, *, clock: Clock, ioctl: Ioctl = _ioctl) -> None:
        self.resource = resource
        self._path = path
        self._clock = clock
        self._ioctl = ioctl
        self._descriptor: int | None = None
        self._reader: _Reader | None = None
        self._cancelled = False

    def open(self) -> None:
        """Open the device and clear it."""
        self.close()
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise PortUnavailable(_why_not_opened(self._path, error)) from error
        self._reader = _Reader(self._descriptor)
        try:
            # A read that timed out must not leave the instrument in the middle of a transfer.
            self._ioctl(self._descriptor, _AUTO_ABORT, b"\1")
            self._ioctl(self._descriptor, _CLEAR, b"")
        except OSError as error:
            self.close()
            raise PortUnavailable(_why_not_opened(self._path, error)) from error

    def close(self) -> None:
        """Let go of the device; its reader closes it."""
        reader, self._reader, self._descriptor = self._reader, None, None
        if reader is not None:
            reader.end()

    def write_line(self, line: bytes) -> None:
        """Send one message; an empty one says nothing on a bus."""
        if not line:
            return
        try:
            os.write(self._opened()[0], line + b"\n")
        except OSError as error:
            raise ConnectionLost(f"cannot write to {self.resource}: {error.strerror}") from error

    def read_line(self, timeout_s: float) -> bytes:
        """One message."""
        descriptor, reader = self._opened()
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            remaining_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                raise ReplyTimeout(f"no answer on {self.resource} within {timeout_s:g} s")
            if not reader.reading:
                self._set_timeout(descriptor, remaining_s + _MARGIN_S)
                reader.ask()
            answer = self._answer(reader, remaining_s)
            if isinstance(answer, bytes):
                return answer.strip(b"\r\n")

    def drain(self, quiet_s: float) -> None:
        """Device clear: the instrument forgets questions and answers."""
        descriptor, reader = self._opened()
        with contextlib.suppress(ConnectionLost):
            self._answer(reader, quiet_s)
        try:
            self._ioctl(descriptor, _CLEAR, b"")  # waits in the driver for a read that is under way
        except OSError as error:
            raise ConnectionLost(f"cannot clear {self.resource}: {error.strerror}") from error
        with contextlib.suppress(ConnectionLost):
            self._answer(reader, quiet_s)

    def cancel(self) -> None:
        """Call waits off for good."""
        self._cancelled = True
        if (reader := self._reader) is not None:
            reader.answers.put(_CALLED_OFF)

    def _answer(self, reader: _Reader, timeout_s: float) -> bytes | None:
        """What the reader got: a message, or None for nothing yet."""
        if self._cancelled:
            raise Cancelled(f"the wait on {self.resource} was called off")
        if not reader.reading:
            return None
        try:
            answer = reader.answers.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if answer is _CALLED_OFF:
            raise Cancelled(f"the wait on {self.resource} was called off")
        reader.reading = False
        if isinstance(answer, OSError):
            if answer.errno == errno.ETIMEDOUT:
                return None
            raise ConnectionLost(f"cannot read from {self.resource}: {answer.strerror}")
        if not answer:
            raise ConnectionLost(f"{self.resource} was closed at the other end")
        assert isinstance(answer, bytes)
        return answer

    def _set_timeout(self, descriptor: int, seconds: float) -> None:
        try:
            self._ioctl(descriptor, _SET_TIMEOUT, struct.pack("=I", max(100, round(seconds * 1e3))))
        except OSError as error:
            raise ConnectionLost(f"cannot use {self.resource}: {error.strerror}") from error

    def _opened(self) -> tuple[int, _Reader]:
        if self._descriptor is None or self._reader is None:
            raise ConnectionLost(f"{self.resource} is not open")
        return self._descriptor, self._reader


def usbtmc(resource: str, *, clock: Clock) -> UsbTmcPort:
    """``usbtmc:/dev/usbtmc0``."""
    return UsbTmcPort(resource, resource.removeprefix("usbtmc:"), clock=clock)


def usbtmc_devices(folder: Path = Path("/dev")) -> list[str]:
    """Device files of the kernel's usbtmc driver."""
    return sorted(str(path) for path in folder.glob("usbtmc*"))


def _why_not_opened(path: str, error: OSError) -> str:
    """One sentence with the next step for an error of ``open``."""
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        there = ", ".join(usbtmc_devices()) or "none"
        return f"no USB instrument {path}: plug it in or name another (instruments of this host: {there})"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"no permission to open {path}: add a udev rule for the instrument, then plug it in again "
            '(SUBSYSTEM=="usbmisc", ATTRS{idVendor}=="0b21", MODE="0660", GROUP="dialout")'
        )
    if error.errno == errno.EBUSY:
        return f"{path} is in use by another program: end that program or name another instrument"
    return f"{path} cannot be used as a USB instrument ({error.strerror}): name a path like /dev/usbtmc0"
