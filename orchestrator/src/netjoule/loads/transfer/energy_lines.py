# SPDX-License-Identifier: Apache-2.0
"""What netjoule-transfer is told of the energy that its host takes while it fetches."""

from __future__ import annotations

import asyncio
import contextlib
import json

from netjoule.hosts.host import Process
from netjoule.workload.load import LiveEnergy


class EnergyLines:
    """Dynamic energy of the host, as lines to the one of its processes that fetches just now."""

    def __init__(self, energy: LiveEnergy, process: Process) -> None:
        """`process`: the first to fetch."""
        self._energy, self._process = energy, process
        self._before_j = self._now_j = 0.0
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The first one fetches from now on. A process gets no line before `go`."""
        self._task = asyncio.ensure_future(self._tell())

    def go_on_to(self, process: Process) -> None:
        """Another one fetches from now on; what it is told begins at 0 again."""
        self._process, self._before_j = process, self._now_j

    async def end(self) -> None:
        """Nobody fetches any more; may be called twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tell(self) -> None:
        async with contextlib.aclosing(self._energy.since_now()) as readings:
            async for self._now_j in readings:
                await self._process.write_line(json.dumps({"energy_j": self._now_j - self._before_j}))
