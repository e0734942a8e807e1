# SPDX-License-Identifier: Apache-2.0
"""What the routers on the emulated link's paths did lately (link_router schema), as rows of routers.csv."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import RunFailed

_MOST_ROWS = 100_000
"""Two routers for more than an hour, longer than any run."""


class RouterLog:
    """Follows the link's statistics socket; a run takes the rows of its time."""

    def __init__(self, socket: Path, origin_ns: int) -> None:
        """Nothing is read yet; `origin_ns`: CLOCK_MONOTONIC at campaign time 0."""
        self._socket, self._origin_ns = socket, origin_ns
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MOST_ROWS)

    async def follow(self) -> None:
        """Read until the link ends. Raises RunFailed when it does not answer."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError as error:
            what = f"the emulated link does not answer on its statistics socket: {error.strerror or error}"
            raise RunFailed(what, where=str(self._socket), code="link_stopped") from error
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                told = json.loads(line)
                if told.get("kind") == "router":
                    self._rows.append(row_of(told, self._origin_ns))
        finally:
            writer.close()

    def rows(self, t_start_s: float, t_end_s: float) -> list[dict[str, Any]]:
        """Steps that reach into a time of the campaign, seconds; what was before it is forgotten."""
        while self._rows and self._rows[0]["t_end_s"] <= t_start_s:
            self._rows.popleft()
        return [row for row in self._rows if row["t_start_s"] < t_end_s]


def row_of(told: Mapping[str, Any], origin_ns: int) -> dict[str, Any]:
    """A row of routers.csv from a line of the link."""
    spans = {f"t_{edge}_s": (int(told[f"t_{edge}_ns"]) - origin_ns) / 1e9 for edge in ("start", "end")}
    same = {field["name"]: told.get(field["name"]) for field in contracts.table("routers")["fields"]}
    return same | spans | {"kind": told["scaling"]}
