# SPDX-License-Identifier: Apache-2.0
"""A program on another host, with the semantics of a local one."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Protocol

from netjoule.hosts.host import STOP_GRACE_S, Process, ProcessEnded

AFTER_A_DROP_S = 20.0
"""What was awaited while the host was out of reach may take so long after its return."""


class Commands(Protocol):
    """What a process needs of the line to its host."""

    @property
    def up(self) -> bool:
        """Whether the host is in reach now."""

    async def wait_up(self) -> None:
        """Return when it is. Raises RunFailed (host_unreachable) when it is given up."""

    def command(self, **what: Any) -> None:
        """Have the keeper do something, once, now or when it is in reach again."""


class RemoteProcess(Process):
    """One program that the keeper of a host runs; fed by the line to it."""

    def __init__(self, name: str, host: str, number: int, line: Commands) -> None:
        """`number` is the keeper's for it; not started yet."""
        super().__init__(name)
        self._host = host
        self._number = number
        self._line = line
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._half = ""
        self._at_end = False
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[str] = loop.create_future()
        self._exit: asyncio.Future[int | None] = loop.create_future()

    @property
    def lost(self) -> bool:
        """Whether its host lost it, so that nobody knows how it ended."""
        return self._exit.done() and self._exit.result() is None

    # -- fed by the line -------------------------------------------------------------------------

    def feed(self, frame: dict[str, Any]) -> None:
        """Take a frame of the keeper about this program."""
        if "out" in frame:
            *lines, last = frame["text"].encode("utf-8", "surrogateescape").split(b"\n")
            for line in [*(line + b"\n" for line in lines), *([last] if last else [])]:
                self._lines.put_nowait(line)
        elif "err" in frame:
            *whole, self._half = (self._half + frame["text"]).split("\n")
            self._stderr.extend(text.strip() for text in whole if text.strip())
        elif "exit" in frame:
            self._stderr.extend(text for text in (self._half.strip(),) if text)
            self._over(int(frame["status"]))
        elif not self.begun.done():
            self.begun.set_result(str(frame.get("why", "")))
            if "failed" in frame:
                self._over(127)

    def feed_lost(self) -> None:
        """Its host was started anew, or its keeper ended: nobody knows its exit code."""
        if not self.begun.done():
            self.begun.set_result("the host was lost while it started")
        self._over(None)

    def _over(self, status: int | None) -> None:
        if not self._exit.done():
            self._exit.set_result(status)
            self._lines.put_nowait(b"")

    # -- a Process -------------------------------------------------------------------------------

    async def next_line(self) -> bytes:
        """The next line of stdout with its newline; empty at the end of the stream."""
        if self._at_end:
            return b""
        line = await self._lines.get()
        self._at_end = not line
        return line

    async def expect(self, event: str, timeout_s: float) -> dict[str, Any]:
        """The next NDJSON line whose `event` is this one; other events are skipped.

        Time in which the host is out of reach does not count. Raises ProcessEnded as every process does.
        """
        while True:
            try:
                return await super().expect(event, timeout_s)
            except ProcessEnded as error:
                if not error.silent or self._line.up:
                    raise
            await self._line.wait_up()
            timeout_s = AFTER_A_DROP_S

    async def write_line(self, text: str) -> None:
        """Write one line to stdin; a process that has ended is no error."""
        self._line.command(write=self._number, text=text + "\n")

    async def wait(self) -> int:
        """Exit code once it has ended; negative after a signal. Raises ProcessEnded when its host lost it."""
        status = await asyncio.shield(self._exit)
        if status is None:
            raise await self._ended("")
        return status

    def _close_stdin(self) -> None:
        self._line.command(close=self._number)

    def _signal(self, number: int) -> None:
        if not self._exit.done():
            self._line.command(signal=self._number, number=int(number))

    async def _killed(self) -> int:
        # Its host is out of reach: it gets the signals when that returns.
        return -int(signal.SIGKILL)

    async def _ended(self, message: str) -> ProcessEnded:
        status = await self._ends_within(STOP_GRACE_S)
        if self.lost:
            return ProcessEnded(
                f"{self.name} was lost with its host",
                exit_status=None,
                where=self._host,
                code="host_unreachable",
            )
        return self._ended_as(status, message)

    async def _ends_within(self, grace_s: float) -> int | None:
        """Exit code when it ends within `grace_s`, else None; that of a lost one is as after SIGKILL."""
        await asyncio.wait([self._exit], timeout=grace_s)
        if not self._exit.done():
            return None
        status = self._exit.result()
        return -int(signal.SIGKILL) if status is None else status
