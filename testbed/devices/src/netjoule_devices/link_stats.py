# SPDX-License-Identifier: Apache-2.0
"""Subscribes to the statistics of netjoule-link: NDJSON over a unix socket, one line per interval."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_devices.errors import LinkLost
from netjoule_devices.power import Activity
from netjoule_devices.shutdown import WaitResult

RETRY_S = 0.02
RECEIVE_BYTES = 65_536

Wait = Callable[[float], WaitResult]
"""Waits some seconds and says why it ended."""


@dataclass(frozen=True, slots=True)
class StationInterval:
    """What the link says about one station in one interval (CLOCK_MONOTONIC nanoseconds); no CPU time."""

    t_start_ns: int
    t_end_ns: int
    activity: Activity


class LinkStats:
    """One subscription. `fileno` becomes readable when `receive` has something to return."""

    def __init__(self, connection: socket.socket, station: str) -> None:
        self._connection = connection
        self._station = station
        self._rest = b""

    def fileno(self) -> int:
        """File descriptor for select."""
        return self._connection.fileno()

    def receive(self) -> list[StationInterval]:
        """Return the station's intervals that have arrived, in order.

        Raises:
            LinkLost: when the link has closed the connection or sends what is no statistics line.
        """
        try:
            data = self._connection.recv(RECEIVE_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise LinkLost(
                "the link closed its statistics socket (it has ended, or this reader was too slow)"
            )
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [found for line in lines if (found := parse_line(line, self._station)) is not None]

    def close(self) -> None:
        """Leave the subscription."""
        self._connection.close()


def subscribe(path: Path, station: str, wait_s: float, wait: Wait) -> LinkStats | None:
    """Connect to the link's statistics socket, trying again until it is there.

    Returns None when `wait` says that the program is to end.

    Raises:
        LinkLost: when it is not there after `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            reason = error.strerror or str(error)
        else:
            return LinkStats(connection, station)
        if time.monotonic() >= deadline:
            raise LinkLost(f"no link at {path} within {wait_s:g} s ({reason}); is netjoule-link running?")
        if wait(RETRY_S) is WaitResult.STOP:
            return None


def parse_line(line: bytes, station: str) -> StationInterval | None:
    """Return the interval in a statistics line, None when it is about something else.

    Raises:
        LinkLost: when the line is no statistics line.
    """
    if not line.strip():
        return None
    try:
        document: dict[str, Any] = json.loads(line)
        if document.get("kind") != "station" or document["station"] != station:
            return None
        t_start_ns, t_end_ns = int(document["t_start_ns"]), int(document["t_end_ns"])
        activity = Activity(
            length_s=(t_end_ns - t_start_ns) * 1e-9,
            airtime_tx_s=float(document["airtime_tx_s"]),
            airtime_rx_s=float(document["airtime_rx_s"]),
            frames_tx=int(document["frames_tx"]),
            frames_rx=int(document["frames_rx"]),
            retries=int(document["retries"]),
            phy_rate_mbps=float(document["phy_rate_mbps"]),
        )
        return StationInterval(t_start_ns, t_end_ns, activity)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LinkLost(f"the link sent no statistics line: {line[:80]!r} ({error})") from None
