# SPDX-License-Identifier: Apache-2.0
"""The load ``command`` as execution uses it: its server program, warm-up runs, how often a run repeats it."""

from __future__ import annotations

import asyncio
import json
import math
import re
import shlex
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts.host import Host, Process, ProcessEnded, Server, how_it_ended
from netjoule.hosts.python_program import python_program
from netjoule.loads.command import timed_command
from netjoule.loads.command.session import KEPT_LINES, CommandSession
from netjoule.loads.command.settings import Build, Settings, complete, settings_of
from netjoule.topology.topology import EMULATED, Topology
from netjoule.workload.load import Condition, Event, Load, Place
from netjoule.workload.workload import Workload

READY_TIMEOUT_S = 15.0
SERVER_READY_TIMEOUT_S = 60.0
KEPT_STDOUT_BYTES = 2**20
_MORE_WARM_UPS = 8


class CommandLoad(Load):
    """Runs of a command in one campaign (`workload.load.Load`)."""

    name = "command"
    complete = staticmethod(complete)
    build_settings = staticmethod(settings_of)
    programs: Sequence[str] = ()
    hosts: Mapping[str, int] = {"client": 1, "server": 1}

    def __init__(self, workload: Workload, topology: Topology) -> None:
        """Nothing runs yet."""
        self._settings, self._workload, self._topology = Settings.of(workload.document), workload, topology
        self._server: _Server | None = None
        self._repeats: dict[str, int] = {}
        self._warm: set[str] = set()  # conditions that had their warm-up runs in this session

    # -- what it needs, and what is known before and after -----------------------------------------

    def require_programs(self) -> None:
        """Refuse a command that is not here, where the hosts share this one's files. Raises HostLacks."""
        if self._topology.kind != EMULATED:
            return
        for directory in self._directories():
            if not Path(directory).is_dir():
                raise _lacks_directory(directory, "this host")
        for program in (*self._client_programs(), *self._server_programs()):
            if shutil.which(program) is None:
                raise _lacks(program, "this host")

    async def require_on(self, host: Any) -> None:
        """The same of a lab's host."""
        roles = self._topology.hosts[host.name]["roles"]
        needed = [*self._client_programs()] if "client" in roles else []
        needed += self._server_programs() if "server" in roles else []
        for directory in self._directories() if needed else ():
            found = await host.ask(["test", "-d", directory])
            if found.status:
                raise _lacks_directory(directory, f"host {host.name}")
        for program in needed:
            found = await host.ask(["sh", "-c", 'command -v "$0" >/dev/null', program])
            if found.status:
                raise _lacks(program, f"host {host.name}")

    def _client_programs(self) -> Sequence[str]:
        """What is started on the client, by any build that a run has."""
        return tuple(dict.fromkeys(self._settings.argv_in(build)[0] for build in self._builds()))

    def _server_programs(self) -> Sequence[str]:
        found = [self._settings.server_in(build) for build in self._builds()]
        return tuple(dict.fromkeys(argv[0] for argv in found if argv))

    def _builds(self) -> Sequence[Build]:
        named = self._workload.factors.get("build", ("",))
        return [self._settings.builds.get(name, Build()) for name in named]

    def _directories(self) -> Sequence[str]:
        return tuple(dict.fromkeys(build.directory for build in self._builds() if build.directory))

    def summary(self) -> Mapping[str, str]:
        """The command, and the program beside it."""
        said = {"command": shlex.join(self._settings.run)}
        if self._settings.server is not None:
            said["server"] = shlex.join(self._settings.server)
        return said

    def heaviest(self) -> Sequence[Condition]:
        """Every condition: which one draws most, nobody knows before."""
        workload = self._workload
        return [
            Condition(arm, workload.values_of(arm, cell), "range", 0, 0)
            for cell in workload.cells
            for arm in workload.arms
        ]

    # -- running ---------------------------------------------------------------------------------

    def recall(self, condition: Condition, run: Mapping[str, Any]) -> None:
        """How often an earlier session repeated the command under this condition: that stays."""
        self._repeats[_key(condition)] = int(run["work"]["repeat"])

    async def open(self, condition: Condition, place: Place, duration_s: float) -> CommandSession:
        """Bring server and client to where only the command's start is missing.

        The first time of a condition in a session its warm-up runs come before: they fill caches, and in the
        first session their length decides how often a run repeats the command, which stays for the campaign.

        Args:
            condition: of the run.
            place: its hosts.
            duration_s: least length of the work of a run.
        """
        events = []
        if await self._ensure_server(condition, place):
            events.append(Event("server_restarted", "the server program had ended", "command_failed"))
        key = _key(condition)
        if key in self._repeats and key not in self._warm:
            await self._shortest_s(condition, place, self._settings.warm_up)
        elif key not in self._repeats:
            once_s = await self._warmed_up(condition, place, duration_s)
            self._repeats[key] = max(1, math.ceil(duration_s / once_s))
            words = f"a run of the command took {once_s:.3g} s: {self._repeats[key]} back to back"
            events.append(Event("warmed_up", words))
        self._warm.add(key)
        return await self._session(condition, place, self._repeats[key], events)

    async def close(self) -> None:
        """End the server program."""
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop()

    async def _warmed_up(self, condition: Condition, place: Place, duration_s: float) -> float:
        """Length of the shortest run, seconds, of so many as the workload asks for.

        Of a short command some more: the first ones are the slowest, and a window is not to be too short.
        """
        once_s = await self._shortest_s(condition, place, self._settings.warm_up)
        more = min(_MORE_WARM_UPS, math.ceil(duration_s / once_s))
        return min(once_s, await self._shortest_s(condition, place, more)) if more > 1 else once_s

    async def _shortest_s(self, condition: Condition, place: Place, repeat: int) -> float:
        session = await self._session(condition, place, repeat, [])
        try:
            await session.go()
            report, _ = await session.report()
        finally:
            await session.end()
        lengths_ns = [run["end_ns"] - run["start_ns"] for run in report.runs]
        return max(1e-6, float(min(lengths_ns)) / 1e9)

    async def _session(
        self, condition: Condition, place: Place, repeat: int, events: Sequence[Event]
    ) -> CommandSession:
        settings, (client,) = self._settings, place.hosts("client", 1)
        program = await python_program(client, timed_command)
        process = await client.start(program, name="netjoule command")
        request = {
            "argv": settings.argv_of(condition),
            "directory": settings.build_of(condition).directory,
            "environment": {**_addresses(place), **settings.environment_of(condition)},
            "timeout_s": settings.timeout_s,
            "interface": place.interfaces.get(client.name),
            "kept_bytes": KEPT_STDOUT_BYTES,
        }
        try:
            await process.write_line(json.dumps(request))
            await process.expect("ready", READY_TIMEOUT_S)
        except BaseException as error:
            await process.stop()
            if isinstance(error, ProcessEnded):
                raise RunFailed(error.what, where=error.where, code=error.code or "command_failed") from error
            raise
        return CommandSession(process, client.name, settings, repeat=repeat, events=events)

    async def _ensure_server(self, condition: Condition, place: Place) -> bool:
        """Have the server program run as this condition has it; True when it had died before."""
        build = self._settings.build_of(condition)
        argv = self._settings.server_in(build)
        if argv is None:
            return False
        # By env: a lab's host knows programs by their names alone, and looks for those of a campaign first.
        argv = ["env", *(("-C", build.directory) if build.directory else ()), "--", *argv]
        environment = {**_addresses(place), **self._settings.environment_of(condition)}
        died = self._server is not None and self._server.ended.done()
        if self._server is not None and not died and self._server.started_as == (argv, environment):
            return False
        await self.close()
        (host,) = place.hosts("server", 1)
        self._server = await _Server.started(host, argv, self._settings.server_ready, environment)
        return died


class _Server(Server):
    """The program beside the command, of one build and in one environment."""

    def __init__(self, process: Process, started_as: tuple[Sequence[str], Mapping[str, str]]) -> None:
        super().__init__(process)
        self.started_as = started_as

    @classmethod
    async def started(
        cls, host: Host, argv: Sequence[str], ready: str | None, environment: Mapping[str, str]
    ) -> _Server:
        """Start it; return when it has printed what fits `ready`. Raises RunFailed when it does not."""
        process = await host.start(argv, name="the server program", env=environment)
        try:
            said: deque[str] = deque(maxlen=KEPT_LINES)
            async with asyncio.timeout(SERVER_READY_TIMEOUT_S):
                while ready is not None:
                    line = await process.next_line()
                    if not line:
                        ended = how_it_ended(await process.finish())
                        words = " / ".join([*said, process.said()]).strip(" /")
                        raise RunFailed(f"the server program {ended}: {words}", code="command_failed")
                    said.append(line.decode(errors="replace").strip())
                    if re.search(ready, said[-1]):
                        break
        except BaseException as error:
            await process.stop()
            if isinstance(error, TimeoutError):
                words = f"the server program did not print {ready!r} in {SERVER_READY_TIMEOUT_S:g} s"
                raise RunFailed(words, code="command_failed") from error
            raise
        return cls(process, (argv, environment))


def _lacks(program: str, where: str) -> HostLacks:
    return HostLacks(
        f"there is no program {program} on {where}",
        next_step="install it, or name another; no shell looks for aliases or built-in commands",
    )


def _lacks_directory(directory: str, where: str) -> HostLacks:
    return HostLacks(f"there is no folder {directory} on {where}", next_step="bring there what was built")


def _addresses(place: Place) -> dict[str, str]:
    """Where the command finds the server: variables that every run has."""
    (server,) = place.hosts("server", 1)
    return {"NETJOULE_SERVER": place.test_addresses.get(server.name, "")}


def _key(condition: Condition) -> str:
    return json.dumps([condition.arm, *sorted(condition.factors.items())])
