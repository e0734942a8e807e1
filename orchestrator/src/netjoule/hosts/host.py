# SPDX-License-Identifier: Apache-2.0
"""Where processes run: one interface for this machine, a network namespace of it, or a host over SSH.

`Host.start` gives a `Process` that speaks lines: NDJSON events on its stdout, commands on its stdin. It
is not a shell and knows nothing of what the programs mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from netjoule.core.errors import HostLacks, RunFailed

LINE_LIMIT_BYTES = 256 * 2**20  # a flow report holds every interval of a long flow in one line
STDERR_LINES = 40
STOP_GRACE_S = 3.0
PREFERRED_NICE = -10


class ProcessEnded(RunFailed):
    """A process ended, or stayed silent, where a line of it was expected.

    Attributes:
        exit_status: its exit code, negative after a signal; None when it was silent but alive, or when
            nobody knows.
        silent: whether it said nothing in time.
    """

    def __init__(
        self, what: str, *, exit_status: int | None, where: str = "", code: str = "", silent: bool = False
    ) -> None:
        super().__init__(what, where=where, code=code)
        self.exit_status = exit_status
        self.silent = silent


class Process(ABC):
    """A running program on some host; `name` is what the orchestrator calls it, for messages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)

    @abstractmethod
    async def next_line(self) -> bytes:
        """The next line of stdout with its newline; empty at the end of the stream."""

    @abstractmethod
    async def write_line(self, text: str) -> None:
        """Write one line to stdin; a process that has ended is no error."""

    @abstractmethod
    async def wait(self) -> int:
        """Exit code once it has ended; negative after a signal."""

    async def expect(self, event: str, timeout_s: float) -> dict[str, Any]:
        """The next NDJSON line whose `event` is this one; other events are skipped.

        Raises ProcessEnded when the process ends, reports an error or is silent for `timeout_s`.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while line := await self.next_line():
                    document = json.loads(line)
                    if document.get("event") == event:
                        return dict(document)
                    if document.get("event") == "error":
                        raise await self._ended(str(document.get("message", "reported an error")))
        except TimeoutError:
            raise ProcessEnded(
                f"{self.name} did not say '{event}' within {timeout_s:g} s", exit_status=None, silent=True
            ) from None
        except (ValueError, asyncio.LimitOverrunError):
            raise ProcessEnded(f"{self.name} wrote a line that is not JSON", exit_status=None) from None
        raise await self._ended("")

    async def finish(self, grace_s: float = STOP_GRACE_S) -> int:
        """Close stdin and let it end by itself; `stop` it after `grace_s`. Its exit code."""
        self._close_stdin()
        code = await self._ends_within(grace_s)
        return await self.stop(grace_s) if code is None else code

    async def stop(self, grace_s: float = STOP_GRACE_S) -> int:
        """Ask it to end (SIGTERM), after `grace_s` end it (SIGKILL); its exit code."""
        self._close_stdin()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            code = await self._ends_within(grace_s)
            if code is not None:
                return code
        return await self._killed()

    def said(self) -> str:
        """The last lines of its stderr, one line, for error messages."""
        return " / ".join(self._stderr)

    @abstractmethod
    def _close_stdin(self) -> None:
        """It may have been closed already."""

    @abstractmethod
    def _signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""

    @abstractmethod
    async def _ends_within(self, grace_s: float) -> int | None:
        """Exit code when it ends within `grace_s`, else None."""

    @abstractmethod
    async def _killed(self) -> int:
        """Exit code of one that SIGKILL did not end in time."""

    @abstractmethod
    async def _ended(self, message: str) -> ProcessEnded:
        """The error for a process that is ending: waits briefly for its exit code and last words."""

    def _ended_as(self, status: int | None, message: str) -> ProcessEnded:
        words = message or self.said() or "without an error message"
        ended = "is ending" if status is None else how_it_ended(status)
        return ProcessEnded(f"{self.name} {ended}: {words}", exit_status=status)


class Host(Protocol):
    """A place where programs run."""

    @property
    def name(self) -> str:
        """The topology's name of the host."""

    async def start(self, argv: Sequence[str], *, name: str, env: Mapping[str, str] | None = None) -> Process:
        """Start a program with pipes on stdin, stdout and stderr; `env` is added to its environment.

        Raises HostLacks when it cannot be started.
        """


class LocalProcess(Process):
    """A child of this process."""

    def __init__(self, name: str, child: asyncio.subprocess.Process) -> None:
        super().__init__(name)
        self._child = child
        self._drain = asyncio.ensure_future(self._drain_stderr())

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    def prefer(self) -> bool:
        """Ask for a scheduling priority above the flows'; False when this user may not give one."""
        try:
            os.setpriority(os.PRIO_PROCESS, self._child.pid, PREFERRED_NICE)
        except OSError:
            return False  # not root, or it has ended: it runs as everything else does
        return True

    async def next_line(self) -> bytes:
        """The next line of stdout with its newline; empty at the end of the stream."""
        if self._child.stdout is None:
            return b""  # its output goes into a pipeline
        return await self._child.stdout.readline()

    async def write_line(self, text: str) -> None:
        """Write one line to stdin; a process that has ended is no error."""
        if self._child.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self._child.stdin.write(text.encode() + b"\n")
                await self._child.stdin.drain()

    async def wait(self) -> int:
        """Exit code once it has ended; negative after a signal."""
        return await self._child.wait()

    def _close_stdin(self) -> None:
        if self._child.stdin is not None:
            self._child.stdin.close()

    def _signal(self, number: int) -> None:
        if self._child.returncode is None:
            # The child leads a group of its own, helpers it may have started included. (send_signal()
            # would poll and so take the exit status from asyncio's watcher.)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)

    async def _killed(self) -> int:
        return await self._child.wait()

    async def _ended(self, message: str) -> ProcessEnded:
        status: int | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_GRACE_S):
                status = await self._child.wait()
                await asyncio.wait([self._drain])
        return self._ended_as(status, message)

    async def _drain_stderr(self) -> None:
        assert self._child.stderr is not None
        while line := await self._child.stderr.readline():
            text = line.decode(errors="replace").strip()
            if text:
                self._stderr.append(text)

    async def _ends_within(self, grace_s: float) -> int | None:
        try:
            async with asyncio.timeout(grace_s):
                code, _, _ = await asyncio.gather(
                    self._child.wait(), self._discard_stdout(), asyncio.shield(self._drain)
                )
                return code
        except TimeoutError:
            return None

    async def _discard_stdout(self) -> None:
        """Read on, so that a process with much to say can end."""
        if self._child.stdout is not None:
            while await self._child.stdout.read(65536):
                pass


class Server:
    """A program that outlives single runs. What it prints is read, for a full pipe would stop it."""

    def __init__(self, process: Process) -> None:
        """`process` is ready to serve."""
        self._process = process
        self.ended = asyncio.ensure_future(self._read_on())

    async def _read_on(self) -> int:
        while await self._process.next_line():
            pass
        return await self._process.wait()

    async def stop(self) -> None:
        """End it."""
        self.ended.cancel()
        await asyncio.gather(self.ended, return_exceptions=True)
        await self._process.stop()


def how_it_ended(status: int) -> str:
    """An exit status in words."""
    return f"was killed by signal {-status}" if status < 0 else f"ended with code {status}"


class LocalHost:
    """This machine, in the orchestrator's own network namespace."""

    prefix: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        """`name` is the topology's name of the host."""
        self.name = name

    async def start(
        self,
        argv: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        stdin_fd: int | None = None,
        stdout_fd: int | None = None,
    ) -> LocalProcess:
        """Start a program; `stdin_fd` and `stdout_fd` join local programs into a pipeline.

        Raises HostLacks when it cannot be started.
        """
        pipe = asyncio.subprocess.PIPE
        try:
            child = await asyncio.create_subprocess_exec(
                *self.prefix,
                *argv,
                stdin=pipe if stdin_fd is None else stdin_fd,
                stdout=pipe if stdout_fd is None else stdout_fd,
                stderr=pipe,
                env={**os.environ, **env} if env else None,
                limit=LINE_LIMIT_BYTES,
                process_group=0,  # a Ctrl-C at the terminal is the orchestrator's to handle
            )
        except OSError as error:
            raise HostLacks(f"cannot start {name} ({argv[0]}): {error.strerror or error}") from error
        return LocalProcess(name, child)


class NetnsHost(LocalHost):
    """A named network namespace of this machine (`ip netns add`), all else shared."""

    def __init__(self, name: str, netns: Path) -> None:
        """`netns` is the namespace's file, e.g. /run/netns/client."""
        super().__init__(name)
        # nsenter replaces itself by the program: the child's pid is the program's.
        self.prefix = ("nsenter", f"--net={netns}", "--")
        self.netns = netns
