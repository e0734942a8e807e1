# SPDX-License-Identifier: Apache-2.0
"""A meter that a verb reads until it is told to end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from netjoule_meters.cli.options import call_when_readable

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
    from netjoule_meters.ending import end_signals
    from netjoule_meters.opening import open_meter

    meter = open_meter(config, clock=clock)
    stop = threading.Event()

    def end() -> None:
        stop.set()
        if call_off_waits:
            meter.cancel()

    try:
        with end_signals() as signalled:
            call_when_readable(signalled, end)
            yield meter, stop
    finally:
        meter.close()
