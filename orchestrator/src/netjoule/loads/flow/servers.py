# SPDX-License-Identifier: Apache-2.0
"""The receiving programs of a campaign's generators: one each, up for a whole session."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from netjoule.loads.flow.generators.base import Endpoints, Generator, Server


@dataclass(frozen=True)
class _Running:
    server: Server
    ended: asyncio.Future[int]


class Servers:
    """Those that are up, by generator."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    async def ensure(self, generator: Generator, ends: Endpoints) -> bool:
        """Start the generator's server when it is not running; True when it had died before."""
        running = self._running.get(generator.name)
        if running is not None and not running.ended.done():
            return False
        if running is not None and not running.ended.cancelled():
            running.ended.exception()  # a lost host's: seen
        server = await generator.serve(ends)
        if server is not None:
            self._running[generator.name] = _Running(server, asyncio.ensure_future(server.wait()))
        return running is not None

    async def stop(self) -> None:
        """End them all; may be called twice."""
        running, self._running = self._running, {}
        for one in running.values():
            one.ended.cancel()
            await asyncio.gather(one.ended, return_exceptions=True)
            await one.server.stop()
