# SPDX-License-Identifier: Apache-2.0
"""The process of an emulated instrument: power from a stream on one side, a port on the other, and faults
between them on request."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from netjoule_meters.clock import Clock, campaign_time_s
from netjoule_meters.emulated.control import Control
from netjoule_meters.emulated.faults import Faults, TakesFaults, parse_request
from netjoule_meters.emulated.ports.network import Port
from netjoule_meters.emulated.power_history import BadPowerStream, PowerInterval, parse_interval
from netjoule_meters.errors import UsageError

_CONSTANT_STEP_S = 0.05
_LONGEST_WAIT_S = 1.0


class Instrument(Protocol):
    """What an emulated instrument offers: bytes and power in, bytes out, time as argument."""

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""

    def step(self, now_s: float) -> bytes:
        """Do what is due; bytes to send."""

    def wake_s(self, now_s: float) -> float | None:
        """When to call ``step`` next even if nothing arrives."""


class PowerSource(Protocol):
    """Where true power comes from."""

    def descriptor(self) -> int | None:
        """What to watch for more."""

    def take(self, now_s: float) -> list[PowerInterval] | None:
        """New intervals; None when it has ended."""


class StreamSource:
    """Lines of a device stream on a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        os.set_blocking(descriptor, False)

    def descriptor(self) -> int | None:
        """The stream."""
        return self._descriptor

    def take(self, now_s: float) -> list[PowerInterval] | None:
        """Whole lines that have arrived."""
        try:
            data = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return []
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [parse_interval(line.decode("utf-8", "replace")) for line in lines if line.strip()]


@dataclass
class ConstantSource:
    """A constant power, W, for use without any device model."""

    power_w: float
    _until_s: float | None = None

    def descriptor(self) -> int | None:
        """Nothing to watch."""
        return None

    def take(self, now_s: float) -> list[PowerInterval] | None:
        """Constant power up to now."""
        start_s = now_s if self._until_s is None else self._until_s
        if now_s - start_s < _CONSTANT_STEP_S:
            self._until_s = start_s
            return []
        self._until_s = now_s
        return [PowerInterval(start_s, now_s, self.power_w)]


def open_stream(name: str) -> StreamSource:
    """The stream called ``name``, a pipe; ``-`` is standard input.

    Raises:
        UsageError: when it cannot be read or is a regular file, which is over before it is measured.
    """
    try:
        descriptor = sys.stdin.fileno() if name == "-" else os.open(Path(name), os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"cannot read the power stream {name}: {error.strerror}") from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise UsageError(f"the power stream {name} is a file: a stream arrives as time goes by, pipe it in")
    return StreamSource(descriptor)


def run_instrument(
    instrument: Instrument,
    port: Port,
    source: PowerSource,
    *,
    clock: Clock,
    origin_ns: int,
    stop: int,
    control: Control | None = None,
    seed: int = 0,
) -> None:
    """Serve until the power stream ends or the file descriptor ``stop`` becomes readable.

    Args:
        control: where faults are asked for; ``seed`` draws their random bytes.

    Raises:
        UsageError: when the power stream is not one.
    """
    _InstrumentLoop(instrument, port, source, clock, origin_ns, control, Faults(seed)).until(stop)


@dataclass
class _InstrumentLoop:
    """One instrument with everything around it."""

    instrument: Instrument
    port: Port
    source: PowerSource
    clock: Clock
    origin_ns: int
    control: Control | None
    faults: Faults
    _plugged: bool = True

    def until(self, stop: int) -> None:
        """Go round until the end; each round ends with a wait for input or for the next moment."""
        while True:
            now_s = campaign_time_s(self.clock.monotonic_ns(), self.origin_ns)
            self._take_requests(now_s)
            self._plug(self.faults.plugged(now_s))
            more = self._feed(now_s)
            self.instrument.receive(self.faults.filter_input(self.port.read(), now_s))
            self.faults.queue_output(self.instrument.step(now_s), now_s)
            for data, unfinished in self.faults.output_due(now_s):
                self.port.write(data, more=unfinished)
            if not more or self._wait(stop):
                return

    def _take_requests(self, now_s: float) -> None:
        while self.control is not None and (received := self.control.receive()) is not None:
            data, sender = received
            try:
                request = parse_request(data)
                if not self._is_its_own(request, now_s):
                    self.faults.request(request, now_s)
            except UsageError as error:
                self.control.answer(sender, {"ok": False, "error": str(error)})
            else:
                self.control.answer(sender, {"ok": True, "t_s": round(now_s, 6)})

    def _is_its_own(self, request: Mapping[str, Any], now_s: float) -> bool:
        """Whether the instrument itself has this fault."""
        instrument = self.instrument
        return isinstance(instrument, TakesFaults) and instrument.take_fault(request["fault"], request, now_s)

    def _plug(self, plugged: bool) -> None:
        if plugged == self._plugged:
            return
        self._plugged = plugged
        if plugged:
            self.port.plug_in()
        else:
            self.port.unplug()

    def _feed(self, now_s: float) -> bool:
        """Power up to now; False when there will be no more."""
        try:
            intervals = self.source.take(now_s)
            for interval in intervals or ():
                self.instrument.feed(self.faults.filter_power(interval, now_s))
        except BadPowerStream as error:
            raise UsageError(str(error)) from error
        return intervals is not None

    def _wait(self, stop: int) -> bool:
        """Until something is to be done; True when that is the end."""
        watched = [stop, *self.port.descriptors()]  # anew: clients of a TCP port come and go
        if (stream := self.source.descriptor()) is not None:
            watched.append(stream)
        if self.control is not None:
            watched.append(self.control.descriptor())
        poll = select.poll()
        for descriptor in watched:
            poll.register(descriptor, select.POLLIN)
        return any(descriptor == stop for descriptor, _ in poll.poll(self._wait_ms()))

    def _wait_ms(self) -> float:
        now_s = campaign_time_s(self.clock.monotonic_ns(), self.origin_ns)
        longest_s = _LONGEST_WAIT_S if self.source.descriptor() is not None else _CONSTANT_STEP_S
        moments = (self.instrument.wake_s(now_s), self.faults.wake_s(now_s))
        waits_s = [max(0.0, moment_s - now_s) for moment_s in moments if moment_s is not None]
        return 1e3 * min([longest_s, *waits_s]) + 0.05
