# SPDX-License-Identifier: Apache-2.0
"""A Joulescope through the maker's Python library: ``joulescope:`` or ``joulescope:SERIAL``.

The library calls back from its USB thread with one dictionary of statistics per window. Each is stamped on
arrival and put into a queue; a reader that is late loses the oldest, never the newest.
"""

from __future__ import annotations

import contextlib
import importlib
import queue
from collections.abc import Callable
from types import ModuleType
from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout

_LONGEST_QUEUE = 1000


class Joulescope:
    """One instrument on USB. ``library`` returns the Python library, or raises ImportError."""

    def __init__(
        self, resource: str, *, clock: Clock, library: Callable[[], ModuleType] | None = None
    ) -> None:
        self.resource = resource
        self._serial = resource.partition(":")[2]
        self._clock = clock
        self._library = library or (lambda: importlib.import_module("joulescope"))
        self._device: Any = None
        self._queue: queue.Queue[tuple[int, dict[str, Any]] | None] = queue.Queue(_LONGEST_QUEUE)
        self._cancelled = False

    def open(self) -> None:
        """Find and open the instrument."""
        self.close()
        self.drain(0.0)
        device = self._find()
        try:
            device.statistics_callback_register(self._arrived, "sensor")
            device.open()
        except Exception as error:  # the library raises what its driver raises
            raise PortUnavailable(
                f"the Joulescope {device} cannot be opened ({error}): end the program that uses it "
                "(the Joulescope user interface), and check the udev rule for its USB device"
            ) from error
        self._device = device

    def close(self) -> None:
        """Let go of the instrument."""
        device, self._device = self._device, None
        if device is not None:
            with contextlib.suppress(Exception):
                device.close()

    def drain(self, quiet_s: float) -> None:
        """Forget statistics that have not been read."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()

    def cancel(self) -> None:
        """Call waits off for good."""
        self._cancelled = True
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)

    @property
    def identification(self) -> str:
        """What the library calls the instrument, for example JS220-000123."""
        return str(self._opened())

    def set(self, name: str, value: str) -> None:
        """Set a parameter of the instrument.

        Raises:
            ConnectionLost: when the library will not; the text says why.
        """
        try:
            self._opened().parameter_set(name, value)
        except Exception as error:
            raise ConnectionLost(f"{self.resource} does not take {name}={value}: {error}") from error

    def next_statistics(self, timeout_s: float) -> tuple[int, dict[str, Any]]:
        """CLOCK_MONOTONIC of arrival in ns and the next statistics.

        Raises:
            ReplyTimeout: none within ``timeout_s``.
            Cancelled: after ``cancel``.
        """
        self._opened()
        if self._cancelled:
            raise Cancelled(f"the wait on {self.resource} was called off")
        try:
            found = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            raise ReplyTimeout(f"no statistics from {self.resource} within {timeout_s:g} s") from None
        if found is None:
            raise Cancelled(f"the wait on {self.resource} was called off")
        return found

    def _opened(self) -> Any:
        if self._device is None:
            raise ConnectionLost(f"{self.resource} is not open")
        return self._device

    def _arrived(self, statistics: dict[str, Any], _indicator: object = None) -> None:
        """Called from the library's thread, which must not be held up."""
        stamped = (self._clock.monotonic_ns(), statistics)
        try:
            self._queue.put_nowait(stamped)
        except queue.Full:
            with contextlib.suppress(queue.Empty):
                self._queue.get_nowait()
            with contextlib.suppress(queue.Full):
                self._queue.put_nowait(stamped)

    def _find(self) -> Any:
        try:
            library = self._library()
        except ImportError as error:
            raise PortUnavailable(
                "the Joulescope library is missing: pip install './meters[joulescope]'"
            ) from error
        devices = list(library.scan(config="off"))
        names = ", ".join(map(str, devices)) or "none"
        if self._serial:
            devices = [device for device in devices if str(device).upper().endswith(self._serial.upper())]
        if not devices:
            raise PortUnavailable(
                f"no Joulescope {self._serial or 'on USB'} (there: {names}): plug it in, "
                "and check its serial number and the udev rule for its USB device"
            )
        if len(devices) > 1:
            raise PortUnavailable(f"several Joulescopes ({names}): name one, as joulescope:SERIAL")
        return devices[0]
