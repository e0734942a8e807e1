# SPDX-License-Identifier: Apache-2.0
"""A meter that a verb reads until it is told to end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netjoule_meters.adapters.base import Meter
    from netjoule_meters.clock import Clock
    from netjoule_meters.config import MeterConfig


@contextlib.contextmanager
def open_until_signal(
    config: MeterConfig, clock: Clock | None = None, *, call_off_waits: bool = True
) -> Iterator[tuple[Meter, threading.Event]]:
    """Open a meter; SIGTERM, SIGINT and SIGHUP then set the event. The meter is closed in the end.

    call_off_waits: end a wait on the meter at once; it then answers no more. Without it the last reading is
    waited for, and the meter can still be set.
    """
    from netjoule_meters.meter_factory import open_meter
    from netjoule_meters.shutdown import on_end_signal

    meter = open_meter(config, clock=clock)
    stop = threading.Event()

    def end() -> None:
        stop.set()
        if call_off_waits:
            meter.cancel()

    try:
        with on_end_signal(end):
            yield meter, stop
    finally:
        meter.close()
