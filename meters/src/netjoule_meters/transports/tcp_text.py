# SPDX-License-Identifier: Apache-2.0
"""Text over TCP until a pattern matches, for devices with a console of their own and no known format.

A request is two lines: what is sent (may be empty, for a device that talks unasked) and the regular
expression that ends the answer. Only whole lines are searched, so that a number that is still arriving is
not taken for a shorter one; a device that hangs up ends its last line. Each request has a connection of its
own: nothing old is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import re

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, GarbageReply, ReplyTimeout
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.event_loop import EventLoopSource

_LARGEST = 1 << 16
_SHOWN = 60


class TextSource(EventLoopSource):
    """One device."""

    def __init__(self, resource: str, *, clock: Clock) -> None:
        super().__init__(resource, clock=clock)
        self._host, self._port = host_and_port(resource)

    async def _answer(self, request: str, timeout_s: float) -> bytes:
        line, _, pattern = request.partition("\n")
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            raise ConnectionLost(f"{self._host}:{self._port} cannot be reached: {error}") from error
        try:
            if line:
                writer.write(line.encode() + b"\r\n")
                await writer.drain()
            return await self._matching(reader, re.compile(pattern), timeout_s)
        except OSError as error:
            raise ConnectionLost(f"{self._host}:{self._port}: {error}") from error
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _matching(
        self, reader: asyncio.StreamReader, pattern: re.Pattern[str], timeout_s: float
    ) -> bytes:
        """All text up to the end of the line in which ``pattern`` is complete."""
        text = b""
        try:
            while len(text) < _LARGEST:
                piece = await reader.read(4096)
                text += piece
                whole = text if not piece else text[: text.rfind(b"\n") + 1]
                if pattern.search(whole.decode("utf-8", "replace")):
                    return whole
                if not piece:
                    raise self._never(text, pattern, "before it hung up")
        except asyncio.CancelledError:
            if self._cancelled.is_set() or not text:
                raise
            # The time-out of the caller, but with text: say what came instead.
            raise ReplyTimeout(str(self._never(text, pattern, f"within {timeout_s:g} s"))) from None
        raise self._never(text, pattern, f"in {_LARGEST} bytes")

    def _never(self, text: bytes, pattern: re.Pattern[str], when: str) -> GarbageReply:
        return GarbageReply(
            f"the text of {self.resource} did not match {pattern.pattern!r} {when}; it ends with "
            f"{text[-_SHOWN:]!r}"
        )
