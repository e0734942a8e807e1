# SPDX-License-Identifier: Apache-2.0
"""An emulated instrument that runs in a thread of a test, on a real port."""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from meter_processes import PATIENCE_S

from netjoule_meters.clock import SystemClock
from netjoule_meters.emulated.instrument_loop import ConstantSource, run_instrument
from netjoule_meters.errors import ReplyTimeout
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
        thread.join(PATIENCE_S)
        port.close()
        for descriptor in (stop_read, stop_write):
            os.close(descriptor)


def next_update(meter: Any) -> Reading:
    """The next reading, however long a busy host holds the instrument up."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return meter.read()
        except ReplyTimeout:
            if time.monotonic() > deadline_s:
                raise


def until_good(meter: Any, count: int) -> list[Reading]:
    """Readings until ``count`` are good: there is no data while an instrument finds its range."""
    readings: list[Reading] = []
    while sum(reading.flag is Flag.GOOD for reading in readings) < count:
        readings.append(next_update(meter))
        assert len(readings) < 10 * count, readings
    return readings


def spacing_s(readings: list[Reading]) -> float:
    """Time between two readings, s; the median, since a busy host may hold one of them up."""
    stamps_s = [reading.t_ns / 1e9 for reading in readings]
    return statistics.median(after - before for before, after in itertools.pairwise(stamps_s))


def assert_each_update_once(readings: list[Reading], power_w: float) -> None:
    """Readings of ``power_w`` and updates without data, none twice."""
    assert {reading.flag for reading in readings} <= {Flag.GOOD, Flag.NO_DATA}
    assert {reading.power_w for reading in readings if reading.flag is Flag.GOOD} == {power_w}


def assert_counts_whole_updates(readings: list[Reading], power_w: float, interval_s: float) -> None:
    """The integrator counted each update between the first reading and the last; a held-up one is missing."""
    energy_j = readings[-1].energy_j - readings[0].energy_j
    updates = round(energy_j / (power_w * interval_s))
    assert energy_j == pytest.approx(updates * power_w * interval_s, rel=0.01)
    lasted_s = (readings[-1].t_ns - readings[0].t_ns) / 1e9
    assert len(readings) - 1 <= updates <= lasted_s / interval_s + 1.5
