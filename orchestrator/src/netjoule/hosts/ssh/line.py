# SPDX-License-Identifier: Apache-2.0
"""The line to a host's keeper, numbered commands one way, numbered frames the other, and its programs.

When the connection drops it is made anew; commands that the keeper had not done are sent again, frames that
had not arrived come again. A keeper that has gone (its host was started anew) is replaced; its programs are
lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh

from netjoule.core.clock import Clock, SystemClock
from netjoule.core.errors import NetjouleError, RunFailed
from netjoule.hosts.host import STOP_GRACE_S, Process, ProcessEnded

RETRY_S = 1.0
GIVE_UP_S = 600.0
"""A host out of reach for so long ends the campaign; its keeper ends then, too."""
TELL_EVERY_S = 60.0
"""A keeper that hears nothing for `GIVE_UP_S` ends: it is told that the controller lives."""
ACK_EVERY = 50
HELLO_TIMEOUT_S = 30.0
PRINTED_BYTES = 200
"""So much of what is no greeting is shown."""
AFTER_A_DROP_S = 20.0
"""What was awaited while the host was out of reach may take so long after its return."""


class KeeperGone(RunFailed):
    """The host answers, its keeper does not: the host was started anew, or gave the keeper up."""


class Channel:
    """Standard input and output of an attached keeper."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes], forget: Callable[[], None]) -> None:
        self._process = process
        self._forget = forget

    async def read(self) -> bytes:
        """Some bytes; empty at the end. Raises OSError when the connection breaks."""
        try:
            return await self._process.stdout.read(65536)
        except asyncssh.Error as error:
            raise OSError(str(error)) from error

    def write(self, data: bytes) -> None:
        """Send bytes; nothing happens when the connection has gone."""
        with contextlib.suppress(OSError, asyncssh.Error):
            self._process.stdin.write(data)

    async def close(self) -> None:
        """Hang up."""
        self._process.close()
        self._forget()


class Line:
    """One host's keeper as it is seen from here."""

    def __init__(
        self,
        host: str,
        attach: Callable[[], Awaitable[Channel]],
        replace_keeper: Callable[[], Awaitable[None]],
        remark: Callable[[str], None],
        clock: Clock | None = None,
        *,
        revive: Callable[[int], Awaitable[bool]] | None = None,
    ) -> None:
        """Not attached yet.

        Args:
            host: the topology's name.
            attach: connects and attaches. Raises KeeperGone, or another NetjouleError.
            replace_keeper: starts a new keeper there.
            remark: told in a sentence when the host goes out of reach and when it returns.
            clock: by which it is waited for; the system's by default.
            revive: called once in an outage, before the host is given up, with the time in ns since when it
                is away; whether it is waited for once more.
        """
        self._host = host
        self._attach = attach
        self._replace_keeper = replace_keeper
        self._remark = remark
        self._clock = clock or SystemClock()
        self._revive = revive
        self._channel: Channel | None = None
        self._processes: dict[int, RemoteProcess] = {}
        self._started = 0
        self._commands: list[tuple[int, bytes]] = []
        self._numbered = 0
        self._heard = 0  # number of the last frame
        self._told: dict[int, asyncio.Future[tuple[int, int, int]]] = {}
        self._asked = 0
        self._up = asyncio.Event()
        self._closing = False
        self._given_up: asyncio.Future[RunFailed] = asyncio.get_running_loop().create_future()
        self._work: list[asyncio.Task[None]] = []
        self.hello: dict[str, Any] = {}

    # -- life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Attach for the first time. Raises NetjouleError."""
        channel, rest = await self._greeted()
        self._work = [asyncio.ensure_future(self._follow(channel, rest)), asyncio.ensure_future(self._tell())]

    async def close(self) -> None:
        """Tell the keeper to end everything and itself, and wait until it has hung up."""
        self._closing = True
        self.command(bye=True)
        if self._work and self._up.is_set():
            await asyncio.wait(self._work[:1], timeout=HELLO_TIMEOUT_S)
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close()

    @property
    def up(self) -> bool:
        """Whether the host is in reach now."""
        return self._up.is_set()

    async def wait_up(self) -> None:
        """Return when the host is in reach. Raises RunFailed (host_unreachable) when it is given up."""
        reached = asyncio.ensure_future(self._up.wait())
        either: set[asyncio.Future[Any]] = {reached, self._given_up}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reached.cancel()
        if not self._up.is_set():
            raise self._given_up.result()

    async def given_up(self) -> RunFailed:
        """Wait until the host is out of reach for good; why."""
        return await asyncio.shield(self._given_up)

    # -- commands --------------------------------------------------------------------------------

    def command(self, **what: Any) -> None:
        """Have the keeper do something, once, now or when it is in reach again."""
        self._numbered += 1
        line = json.dumps({"n": self._numbered, **what}).encode() + b"\n"
        self._commands.append((self._numbered, line))
        self._write(line)

    def new_process(self, name: str) -> tuple[int, RemoteProcess]:
        """A process and its number, for a `start`."""
        self._started += 1
        process = RemoteProcess(name, self._host, self._started, self)
        self._processes[self._started] = process
        return self._started, process

    async def exchange(self, timeout_s: float) -> tuple[int, int, int, int]:
        """One exchange of time stamps, CLOCK_MONOTONIC in ns: sent here, heard there, answered there, heard.

        Raises TimeoutError when no answer comes in time.
        """
        self._asked += 1
        answer: asyncio.Future[tuple[int, int, int]] = asyncio.get_running_loop().create_future()
        self._told[self._asked] = answer
        try:
            t1_ns = _now_ns()
            self._write(json.dumps({"ask": self._asked}).encode() + b"\n")
            t2_ns, t3_ns, t4_ns = await asyncio.wait_for(answer, timeout_s)
            return t1_ns, t2_ns, t3_ns, t4_ns
        finally:
            self._told.clear()

    def _write(self, line: bytes) -> None:
        if self._channel is not None:
            self._channel.write(line)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            self._write(self._ack())

    def _ack(self, word: str = "ack") -> bytes:
        return json.dumps({word: self._heard}).encode() + b"\n"

    # -- frames ----------------------------------------------------------------------------------

    async def _greeted(self) -> tuple[Channel, bytes]:
        """A connection on which the keeper has said hello; what it said after it."""
        channel = await self._attach()
        channel.write(self._ack("attach"))
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                greeting, rest = await self._greeting(channel)
        except (OSError, TimeoutError) as error:
            await channel.close()
            words = str(error) or "no greeting in time"
            raise RunFailed(f"lost while attaching: {words}", where=f"host {self._host}") from error
        self.hello = greeting["hello"]
        self._done(int(greeting["done"]))
        self._channel = channel
        for _, line in self._commands:
            channel.write(line)
        self._up.set()
        return channel, rest

    async def _greeting(self, channel: Channel) -> tuple[dict[str, Any], bytes]:
        """The keeper's hello and what came after it; what the user's shell prints before it is passed over.

        Raises KeeperGone, with what was printed instead.
        """
        printed, heard = b"", b""
        while True:
            line, newline, rest = heard.partition(b"\n")
            if newline:
                heard = rest
                greeting = _object(line)
                if greeting is not None and {"hello", "done"} <= greeting.keys():
                    return greeting, rest
                printed = line.strip() or printed
            elif data := await channel.read():
                heard += data
            else:
                instead = (heard.strip() or printed)[:PRINTED_BYTES].decode(errors="replace")
                words = f"its keeper did not greet; this was printed instead: {instead}"
                what = words if instead else "its keeper hung up"
                raise KeeperGone(what, where=f"host {self._host}")

    async def _follow(self, channel: Channel, rest: bytes) -> None:
        """Take frames; attach again whenever the connection ends, until the host is given up."""
        while True:
            await self._hear(channel, rest)
            self._up.clear()
            self._channel = None
            await channel.close()
            if self._closing:
                return
            lost_ns = self._clock.monotonic_ns()
            self._remark(f"host {self._host} is out of reach")
            found = await self._again(lost_ns)
            if found is None:
                return
            channel, rest = found
            away_s = (self._clock.monotonic_ns() - lost_ns) / 1e9
            self._remark(f"host {self._host} is back after {away_s:.1f} s")

    async def _again(self, lost_ns: int) -> tuple[Channel, bytes] | None:
        """Attach again; None when it is given up."""
        since_ns, revive = lost_ns, self._revive
        while True:
            try:
                return await self._greeted_anew()
            except RunFailed as unreachable:
                if self._clock.monotonic_ns() - since_ns <= GIVE_UP_S * 1e9:
                    pass
                elif revive is not None and await revive(lost_ns):
                    since_ns, revive = self._clock.monotonic_ns(), None
                else:
                    self._give_up(f"given up after {GIVE_UP_S / 60:g} min: {unreachable.what}", unreachable)
                    return None
            except NetjouleError as refused:  # another key, another campaign's lock: a person is needed
                self._give_up(refused.what, refused)
                return None
            await self._clock.sleep_until_ns(self._clock.monotonic_ns() + round(RETRY_S * 1e9))

    async def _greeted_anew(self) -> tuple[Channel, bytes]:
        """Attach to the keeper, or to a new one when it has gone with all its programs."""
        try:
            return await self._greeted()
        except KeeperGone:
            self._lose_programs()
            await self._replace_keeper()
            return await self._greeted()

    def _give_up(self, why: str, error: NetjouleError) -> None:
        self._lose_programs()
        self._given_up.set_result(
            RunFailed(
                why,
                where=error.where,
                next_step=f"{error.next_step or 'bring it back'}; 'netjoule resume' then goes on",
                code="host_unreachable",
            )
        )

    def _lose_programs(self) -> None:
        """Their keeper is no more; the next one begins to count anew."""
        processes, self._processes = self._processes, {}
        self._commands, self._numbered, self._heard = [], 0, 0
        for process in processes.values():
            process.feed_lost()

    async def _hear(self, channel: Channel, rest: bytes) -> None:
        """Take frames until the connection ends."""
        with contextlib.suppress(OSError):
            while True:
                *lines, rest = rest.split(b"\n")
                t4_ns = _now_ns()
                for line in lines:
                    frame = _object(line)
                    if frame is not None:
                        self._take(frame, t4_ns)
                    elif b'{"' in line:
                        return  # a frame that something was printed into: it comes again
                data = await channel.read()
                if not data:
                    return
                rest += data

    def _take(self, frame: dict[str, Any], t4_ns: int) -> None:
        if "told" in frame:
            answer = self._told.pop(frame["told"], None)
            if answer is not None and not answer.done():
                answer.set_result((frame["t2_ns"], frame["t3_ns"], t4_ns))
            return
        if "m" not in frame or frame["m"] <= self._heard:
            return  # a second greeting, or a frame that came twice
        self._heard = frame["m"]
        self._done(frame["done"])
        number = next(int(frame[k]) for k in ("out", "err", "exit", "started", "failed") if k in frame)
        process = self._processes.get(number)
        if process is not None:
            process.feed(frame)
        if "exit" in frame or "failed" in frame:
            self._processes.pop(number, None)
        if "exit" in frame or self._heard % ACK_EVERY == 0:
            self._write(self._ack())

    def _done(self, number: int) -> None:
        self._commands = [(n, line) for n, line in self._commands if n > number]


class RemoteProcess(Process):
    """One program that the keeper of a host runs; fed by the line to it."""

    def __init__(self, name: str, host: str, number: int, line: Line) -> None:
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


def _object(line: bytes) -> dict[str, Any] | None:
    """What a keeper says in a line; None for what a user's shell prints."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
