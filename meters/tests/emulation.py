# SPDX-License-Identifier: Apache-2.0
"""An emulated instrument that runs in a thread of a test, on a real port."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from netjoule_meters.clock import SystemClock
from netjoule_meters.emulated.running import ConstantSource, run_instrument
from netjoule_meters.reading import Flag, Reading


@contextlib.contextmanager
def running(instrument: Any, port: Any, power_w: float = 12.5) -> Iterator[Any]:
    """``instrument`` on ``port`` with constant power until the block ends."""
    clock = SystemClock()
    stop_read, stop_write = os.pipe()
    thread = threading.Thread(
        target=run_instrument,
        args=(instrument, port, ConstantSource(power_w)),
        kwargs={"clock": clock, "origin_ns": clock.monotonic_ns(), "stop": stop_read},
    )
    thread.start()
    try:
        yield port
    finally:
        os.write(stop_write, b"x")
        thread.join(10)
        port.close()
        for descriptor in (stop_read, stop_write):
            os.close(descriptor)


def assert_each_update_once(readings: list[Reading], power_w: float) -> None:
    """Good readings of ``power_w`` only; a busy host may hold the power source up, which makes no data."""
    flags = [reading.flag for reading in readings]
    assert set(flags) <= {Flag.GOOD, Flag.NO_DATA}
    assert 2 * flags.count(Flag.GOOD) > len(flags)
    assert {reading.power_w for reading in readings if reading.flag is Flag.GOOD} == {power_w}
