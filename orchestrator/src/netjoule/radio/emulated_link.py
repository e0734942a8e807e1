# SPDX-License-Identifier: Apache-2.0
"""Reads one station's statistics from the emulated link's unix socket (link_stats schema, NDJSON)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.radio.reader import RadioRecord
from netjoule.radio.state_energy import StateStep


class LinkStatsReader:
    """Subscribes to netjoule-link; ten records a second, pushed by the link."""

    def __init__(self, node: str, station: str, socket: Path, origin_ns: int) -> None:
        """Read `station`'s lines for topology host `node`; `origin_ns` is campaign time zero."""
        self.node = node
        self._station = station
        self._socket = socket
        self._origin_ns = origin_ns
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> None:
        """Subscribe. Raises RunFailed when the link does not answer."""
        try:
            self._streams = await asyncio.open_unix_connection(str(self._socket))
        except OSError as error:
            raise RunFailed(
                f"the emulated link does not answer on its statistics socket: {error.strerror or error}",
                where=str(self._socket),
                code="link_stopped",
            ) from error

    async def read(self) -> RadioRecord | None:
        """The station's next record; None when the link has closed the socket."""
        if self._streams is None:
            return None
        while line := await self._streams[0].readline():
            if not line.endswith(b"\n"):
                return None  # cut off by the link's end
            stats = json.loads(line)
            if stats.get("kind") == "station" and stats.get("station") == self._station:
                return record_from_stats(stats, self._origin_ns)
        return None

    async def close(self) -> None:
        """Unsubscribe; may be called twice."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def record_from_stats(stats: Mapping[str, Any], origin_ns: int) -> RadioRecord:
    """One station line as a radio record, dated at the end of its interval.

    The emulated radio has no received power. It sleeps where an access network stands before it, which then
    tells its state.
    """
    start_s, end_s = ((int(stats[f"t_{edge}_ns"]) - origin_ns) / 1e9 for edge in ("start", "end"))
    access = stats.get("access")
    return RadioRecord.of(
        stats,
        t_s=end_s,
        failed=stats.get("drops"),
        power_save=False,
        station=None,
        source="link",
        state=access and access["state"],
        step=access and StateStep(start_s, end_s, access),
    )
