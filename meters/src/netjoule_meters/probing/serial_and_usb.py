# SPDX-License-Identifier: Apache-2.0
"""Asking who is there on serial lines and on the kernel's USB-TMC devices: one question, one answer."""

from __future__ import annotations

import contextlib
import os
import select
import termios
from collections.abc import Callable, Iterator, Sequence

from netjoule_meters.clock import Clock
from netjoule_meters.probing.identification import (
    SERIAL_QUERIES,
    FoundInstrument,
    Query,
    recognise_identification,
    recognise_serial,
)

_QUIET_S = 0.25
_MOST_BYTES = 8192
_USBTMC_QUESTION = b"*IDN?\n"

Exchange = Callable[[str, Query], bytes]


def identify_serial(
    device: str, exchange: Exchange, queries: Sequence[Query] = SERIAL_QUERIES
) -> tuple[FoundInstrument | None, str]:
    """Try the queries in order on one port; the instrument, or why there is none."""
    heard = ""
    for query in queries:
        try:
            answer = exchange(device, query)
        except (OSError, ValueError, termios.error) as error:
            return None, f"cannot be opened ({getattr(error, 'strerror', None) or error})"
        found = recognise_serial(device, answer)
        if found is not None:
            return found, found.text
        if answer:
            heard = f"{len(answer)} unreadable bytes to {query.name}"
    return None, heard or "nothing answers"


def serial_exchange(clock: Clock) -> Exchange:
    """The real exchange: opens the port for itself alone, asks, collects what comes, closes."""

    def exchange(device: str, query: Query) -> bytes:
        import serial

        with serial.Serial(
            device,
            baudrate=query.baud_rate,
            timeout=0,
            write_timeout=1,
            exclusive=True,
            xonxoff=query.handshake == "xon_xoff",
        ) as port:
            port.reset_input_buffer()
            if query.question is not None:
                port.write(query.question)
            return b"".join(_heard(port.fileno(), query, clock))

    return exchange


def _heard(descriptor: int, query: Query, clock: Clock) -> Iterator[bytes]:
    """What arrives until the time is over; after an answer to a question, until the line is quiet."""
    end_ns = clock.monotonic_ns() + round(query.wait_s * 1e9)
    length = 0
    while (left_s := (end_ns - clock.monotonic_ns()) / 1e9) > 0 and length < _MOST_BYTES:
        answered = length > 0 and query.question is not None
        readable, _, _ = select.select([descriptor], [], [], min(left_s, _QUIET_S) if answered else left_s)
        if not readable:
            return
        data = os.read(descriptor, 4096)
        length += len(data)
        yield data
        if not data or (query.question is None and b"</msg>" in data):
            return


def identify_usbtmc(device: str) -> tuple[FoundInstrument | None, str]:
    """Ask ``*IDN?``; the driver itself waits no longer than its time-out of 5 s."""
    try:
        descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return None, f"cannot be opened ({error.strerror})"
    try:
        os.write(descriptor, _USBTMC_QUESTION)
        answer = os.read(descriptor, 4096)
    except OSError as error:
        return None, f"does not answer *IDN? ({error.strerror})"
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    text = answer.decode("ascii", "replace").strip()
    return recognise_identification(f"usbtmc:{device}", text), text
