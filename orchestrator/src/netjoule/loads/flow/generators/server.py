# SPDX-License-Identifier: Apache-2.0
"""A receiving program that outlives single flows, as the process that it is."""

from __future__ import annotations

from netjoule.hosts.host import Process


class ServerProcess:
    """The server of a session (`generators.base.Server`)."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def wait(self) -> int:
        """Exit code; its stdout is read to the end, for a full pipe would stop the server."""
        while await self._process.next_line():
            pass
        return await self._process.wait()

    async def stop(self) -> None:
        """End it."""
        await self._process.stop()
