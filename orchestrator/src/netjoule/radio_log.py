# SPDX-License-Identifier: Apache-2.0
"""Carries every radio reader's records to radio/<node>.csv while a session lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

from netjoule.errors import RunFailed
from netjoule.radio import RadioReader

__all__ = ["RadioLog", "RadioSink"]

BATCH_RECORDS = 10  # one write a second at ten records a second: less work while a meter reads
REOPEN_PAUSE_S = 1.0


class RadioSink(Protocol):
    """Where records go."""

    def append_radio(self, node: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to radio/<node>.csv."""
        ...


class RadioLog:
    """Context manager: one task per reader; a reader that ends is opened again and the loss is noted."""

    def __init__(self, sink: RadioSink, readers: Sequence[RadioReader]) -> None:
        """Log `readers` to `sink`."""
        self._sink = sink
        self._readers = readers
        self._tasks: list[asyncio.Task[None]] = []
        self._lost: list[str] = []

    async def __aenter__(self) -> Self:
        """Open every reader. Raises RunFailed when one does not answer."""
        for reader in self._readers:
            await reader.open()
        self._tasks = [asyncio.create_task(self._follow(reader)) for reader in self._readers]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading and write what is still in hand."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for reader in self._readers:
            await reader.close()

    def take_losses(self) -> list[str]:
        """What was lost since the last call, one sentence each."""
        lost, self._lost = self._lost, []
        return lost

    async def _follow(self, reader: RadioReader) -> None:
        rows: list[dict[str, Any]] = []
        try:
            while True:
                try:
                    record = await reader.read()
                except (OSError, ValueError) as error:
                    record = None
                    self._lost.append(f"radio of {reader.node}: {error}")
                if record is None:
                    await self._again(reader)
                    continue
                rows.append(record.as_row())
                if len(rows) >= BATCH_RECORDS:
                    self._sink.append_radio(reader.node, rows)
                    rows = []
        finally:
            if rows:
                self._sink.append_radio(reader.node, rows)

    async def _again(self, reader: RadioReader) -> None:
        self._lost.append(f"radio of {reader.node}: its reader ended")
        await reader.close()
        while True:
            await asyncio.sleep(REOPEN_PAUSE_S)
            with suppress(RunFailed):
                return await reader.open()
