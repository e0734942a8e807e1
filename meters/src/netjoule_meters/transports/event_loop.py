# SPDX-License-Identifier: Apache-2.0
"""The `Source` that asyncio libraries (httpx, pysnmp, pymodbus, python-kasa) are spoken through.

Each connection has an event loop of its own, which runs only inside a call, in the thread of the caller.
Every wait is one task of that loop, so that another thread can call it off; closing ends whatever a
library left running and gives the loop's descriptors back.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from netjoule_meters.clock import Clock
from netjoule_meters.errors import (
    Cancelled,
    ConnectionLost,
    DialogueError,
    MeterUnavailable,
    NoAnswer,
    ReplyTimeout,
    UsageError,
)

_Answer = TypeVar("_Answer")
_BEGIN_S = 5.0
_END_S = 1.0


class EventLoopSource(ABC):
    """A connection that answers requests by way of coroutines.

    Attributes:
        library: what it is called, and the module to import.
        silence_hint: what else silence may mean with this protocol, for the message of a time-out.
    """

    silence_hint = ""
    library = ("asyncio", "asyncio")

    def __init__(self, resource: str, *, clock: Clock) -> None:
        self.resource = resource
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._cancelled = threading.Event()

    # -- what a transport says -----------------------------------------------------------------------

    def _load(self) -> None:
        """Import the library, which may take long; raise MeterUnavailable when it is not installed."""
        name, module = self.library
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise MeterUnavailable(
                f"{name} is not installed ({error}): pip install './meters[network]'"
            ) from error

    async def _begin(self) -> None:  # noqa: B027 - some have nothing to prepare
        """Prepare the client; may raise MeterUnavailable or any ``DialogueError``."""

    @abstractmethod
    async def _answer(self, request: str, timeout_s: float) -> bytes:
        """Ask once; ``timeout_s`` is watched over by the caller, and passed for libraries that want it."""

    async def _end(self) -> None:  # noqa: B027 - some have nothing to let go of
        """Let go of the client."""

    # -- the Source protocol ---------------------------------------------------------------------------

    def open(self) -> None:
        """Prepare the client, anew at a second call."""
        self.close()
        _refuse_inside_a_loop(self.resource)
        self._load()
        self._loop = asyncio.new_event_loop()
        try:
            self._run(self._begin(), _BEGIN_S)
        except Cancelled:
            self.close()
            raise
        except DialogueError as error:
            self.close()
            raise NoAnswer(f"{error}: check the address, and that the interface is switched on") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End everything on the loop and close it."""
        loop, self._loop = self._loop, None
        if loop is None or loop.is_running() or loop.is_closed():
            return
        try:
            loop.run_until_complete(self._wind_up())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def fetch(self, request: str, timeout_s: float) -> bytes:
        """The answer to one request."""
        return self._run(self._answer(request, timeout_s), timeout_s)

    def pause(self, seconds: float) -> None:
        """Wait; nothing runs meanwhile."""
        if self._cancelled.wait(max(0.0, seconds)):
            raise Cancelled(f"the wait for {self.resource} was called off")

    def drain(self, quiet_s: float) -> None:  # noqa: B027 - see its docstring
        """Nothing arrives unasked."""

    def cancel(self) -> None:
        """Call waits off for good."""
        self._cancelled.set()
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # closed at this moment: nobody waits
                loop.call_soon_threadsafe(self._call_off)

    # -- inside --------------------------------------------------------------------------------------------

    def _call_off(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _run(self, work: Coroutine[Any, Any, _Answer], timeout_s: float) -> _Answer:
        loop = self._loop
        if loop is None:
            work.close()
            raise ConnectionLost(f"{self.resource} is not open")
        try:
            return loop.run_until_complete(self._watched(work, timeout_s))
        finally:
            # A connection that was let go of is closed in the loop's next turn, not with the next poll.
            loop.run_until_complete(asyncio.sleep(0))

    async def _watched(self, work: Coroutine[Any, Any, _Answer], timeout_s: float) -> _Answer:
        """``work`` with an end: its own, the time-out or ``cancel``."""
        self._waiting = asyncio.current_task()
        try:
            if self._cancelled.is_set():
                work.close()
                raise Cancelled(f"the wait for {self.resource} was called off")
            async with asyncio.timeout(timeout_s):
                return await work
        except TimeoutError as error:
            raise ReplyTimeout(
                f"no answer from {self.resource} within {timeout_s:g} s{self.silence_hint}"
            ) from error
        except asyncio.CancelledError:
            if self._cancelled.is_set():
                raise Cancelled(f"the wait for {self.resource} was called off") from None
            raise
        finally:
            self._waiting = None

    async def _wind_up(self) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_END_S):
                await self._end()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _refuse_inside_a_loop(resource: str) -> None:
    """A loop cannot run inside another: say so before anything is left half-way."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        f"{resource} cannot be read from inside a running event loop (a notebook's cell, an async function): "
        "read it in a thread of its own, for example with asyncio.to_thread"
    )
