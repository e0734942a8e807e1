# SPDX-License-Identifier: Apache-2.0
"""Drives programs that cannot hold: while idle the sender has no process; what it wrote makes the report."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.clock import Clock, SystemClock, boot_id, wall_and_monotonic_ns
from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, Process, Server
from netjoule.loads.flow.generators.base import Endpoints, FlowSpec

# Not of what ends: that is told at once. A busy guest without KVM took over 5 s to start ITGRecv.
LISTEN_TIMEOUT_S = 30.0
REPORT_GRACE_S = 32.0  # whole seconds, where a program knows no others, among them


class OneShot(ABC):
    """A generator whose flows each bring a client process.

    Attributes:
        programs: that it needs; the first one sends.
        client: what its sending process is called.
        version_word: how it is asked for its version; empty where it tells none.
        version_told: what it says then; the version is the group.
    """

    name: str
    programs: tuple[str, ...]
    client: str
    version_word = ""
    version_told = ""

    def __init__(self, clock: Clock | None = None) -> None:
        """`clock` is read around each flow."""
        self.clock = clock or SystemClock()
        self.known_version = "unknown"

    def program(self) -> str:
        """Path of what sends. Raises HostLacks without it."""
        return programs.find(self.programs[0])

    def require(self) -> None:
        """Raises HostLacks, with what to install, when one of its programs is missing."""
        self.program()
        for name in self.programs[1:]:
            programs.find(name)

    async def version(self) -> str:
        """Its version, as it says it; unknown where it says none."""
        self.require()
        if self.version_word:
            told = await asyncio.to_thread(programs.said_by, [self.program(), self.version_word])
            found = re.search(self.version_told, told.stdout + told.stderr)
            self.known_version = found[1] if found else "unknown"
        return self.known_version

    async def serve(self, ends: Endpoints) -> Server | None:
        """Nothing to start: each flow brings its own receiving end."""
        return None

    async def open(self, spec: FlowSpec, ends: Endpoints) -> OneShotFlow:
        """Nothing of the sender starts before `go`: it begins at once."""
        return OneShotFlow(self, spec, ends)

    @abstractmethod
    def arguments(self, spec: FlowSpec, ends: Endpoints, folder: Path) -> list[str]:
        """Of the sender; `folder` is for files of this flow."""

    @abstractmethod
    async def report_of(self, flow: OneShotFlow, said: str) -> dict[str, Any]:
        """The report of a flow that has ended; `said` on stdout. Raises RunFailed when it failed."""


class OneShotFlow:
    """One flow (`generators.base.Flow`).

    Attributes:
        server: its receiving end, where it brings one.
        before, after: wall clock and CLOCK_MONOTONIC around the sender, ns.
        status: exit code of the sender.
    """

    holds = False

    def __init__(
        self, made_by: OneShot, spec: FlowSpec, ends: Endpoints, server: Process | None = None
    ) -> None:
        """Not started."""
        self._made_by, self.spec, self.ends = made_by, spec, ends
        self._processes = [] if server is None else [server]
        self.folder = Path(tempfile.mkdtemp(prefix="netjoule-flow-"))
        self.before = self.after = (0, 0)
        self.status = 0

    @property
    def process(self) -> Process:
        """The sender, once it was told to go."""
        return self._processes[-1]

    @property
    def places(self) -> dict[str, Any]:
        """Names of its hosts, and the boot that both are of, as reports are told them."""
        hosts = {"client": self.ends.client.name, "server": self.ends.server.name}
        return {"hosts": hosts, "boot_id": boot_id()}

    async def go(self) -> None:
        """Start sending."""
        argv = [self._made_by.program(), *self._made_by.arguments(self.spec, self.ends, self.folder)]
        self.before = wall_and_monotonic_ns(self._made_by.clock)
        self._processes.append(await self.ends.client.start(argv, name=self._made_by.client))

    async def report(self) -> dict[str, Any]:
        """The flow report, once the flow has ended. Raises RunFailed (generator_failed) when it failed."""
        lines = []
        try:
            async with asyncio.timeout(self.spec.duration_s + REPORT_GRACE_S):
                while line := await self.process.next_line():
                    lines.append(line)
                self.after = wall_and_monotonic_ns(self._made_by.clock)
                self.status = await self.process.wait()
        except TimeoutError:
            raise RunFailed(f"{self._made_by.client} did not end in time", code="generator_failed") from None
        return await self._made_by.report_of(self, b"".join(lines).decode(errors="replace"))

    async def end(self) -> None:
        """End the processes; may be called at any time, and twice."""
        processes, self._processes = self._processes, []
        for process in reversed(processes):
            await process.stop(grace_s=1.0)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def listening(host: Host, argv: Sequence[str], port: int, *, name: str) -> Process:
    """Start a server and wait until something listens on its TCP port.

    Raises RunFailed (generator_failed), with what the server says, once it has ended or after
    LISTEN_TIMEOUT_S.
    """
    server = await host.start(argv, name=name)
    ended = asyncio.ensure_future(server.wait())
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LISTEN_TIMEOUT_S):
                while not ended.done():
                    look = await host.start(["ss", "-Hltn", "sport", "=", f":{port}"], name="ss")
                    found = await look.next_line()
                    await look.wait()
                    if found:
                        return server
        silent = f"does not listen after {LISTEN_TIMEOUT_S:g} s"
        how = f"ended with {ended.result()}" if ended.done() else silent
        said = f": {server.said()}" if server.said() else ""
        raise RunFailed(f"{name}, port {port}: {how}{said}", code="generator_failed")
    except BaseException:
        await server.stop()
        raise
    finally:
        ended.cancel()
