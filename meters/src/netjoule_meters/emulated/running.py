# SPDX-License-Identifier: Apache-2.0
"""The process of an emulated instrument: power from a stream on one side, a pseudo-terminal on the other."""

from __future__ import annotations

import os
import select
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netjoule_meters.clock import Clock, campaign_time_s
from netjoule_meters.emulated.power_history import BadPowerStream, PowerInterval, parse_interval
from netjoule_meters.emulated.pty_port import PtyPort
from netjoule_meters.errors import UsageError

_CONSTANT_STEP_S = 0.05
_LONGEST_WAIT_S = 1.0


class Instrument(Protocol):
    """What an emulated instrument offers: bytes and power in, bytes out, time as argument."""

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""
        ...

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        ...

    def step(self, now_s: float) -> bytes:
        """Do what is due; bytes to send."""
        ...

    def wake_s(self, now_s: float) -> float | None:
        """When to call ``step`` next even if nothing arrives."""
        ...


class PowerSource(Protocol):
    """Where true power comes from."""

    def descriptor(self) -> int | None:
        """What to watch for more."""
        ...

    def take(self, now_s: float) -> list[PowerInterval] | None:
        """New intervals; None when it has ended."""
        ...


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
    instrument: Instrument, port: PtyPort, source: PowerSource, *, clock: Clock, origin_ns: int, stop: int
) -> None:
    """Serve until the power stream ends or the file descriptor ``stop`` becomes readable.

    Raises:
        UsageError: when the power stream is not one.
    """
    poll = select.poll()
    for descriptor in (port.master, stop, source.descriptor()):
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    while True:
        now_s = campaign_time_s(clock.monotonic_ns(), origin_ns)
        try:
            intervals = source.take(now_s)
            for interval in intervals or ():
                instrument.feed(interval)
        except BadPowerStream as error:
            raise UsageError(str(error)) from error
        instrument.receive(port.read())
        output = instrument.step(now_s)
        if output:
            port.write(output)
        if intervals is None:
            return
        ready = poll.poll(_wait_ms(instrument, source, clock, origin_ns))
        if any(descriptor == stop for descriptor, _ in ready):
            return


def _wait_ms(instrument: Instrument, source: PowerSource, clock: Clock, origin_ns: int) -> float:
    now_s = campaign_time_s(clock.monotonic_ns(), origin_ns)
    wake_s = instrument.wake_s(now_s)
    longest_s = _LONGEST_WAIT_S if source.descriptor() is not None else _CONSTANT_STEP_S
    return 1e3 * (longest_s if wake_s is None else min(longest_s, max(0.0, wake_s - now_s))) + 0.05
