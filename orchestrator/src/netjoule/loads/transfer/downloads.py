# SPDX-License-Identifier: Apache-2.0
"""What fetches the files of a run on the client's host, from ready and silent to what each transfer was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, Process, ProcessEnded, how_it_ended
from netjoule.hosts.python_program import python_program
from netjoule.loads.transfer.clients import downloader
from netjoule.loads.transfer.clients.peers import told_by_curl
from netjoule.loads.transfer.clients.task import CA_FILE, Invocation
from netjoule.loads.transfer.energy_lines import EnergyLines
from netjoule.loads.transfer.host_programs import version_in
from netjoule.loads.transfer.private_folder import FOLDER, within
from netjoule.loads.transfer.servers.server import WebServer
from netjoule.workload.load import LiveEnergy

FAILED = "transfer_failed"
READY_TIMEOUT_S = 30.0
_GRACE_S = 30.0
_KEPT_LINES = 5
_LINE_LENGTH = 200
_OWN_FOLDER_BYTES = 2**20  # a client of ours keeps certificate and hosts there
_SLACK_BYTES = 64 * 2**20
_CA_NAME = CA_FILE.rpartition("/")[2]
# The test CA comes as a variable: a private folder can be written from within alone.
_WITH_CA = f'printf %s "$NETJOULE_TEST_CA" >{CA_FILE}; unset NETJOULE_TEST_CA; exec "$@"'
Run = Mapping[str, Any]
"""One transfer, as the contract transfer_runs has it."""


class Download(Protocol):
    """What fetches the files on the client's host, ready and silent."""

    async def go(self) -> None:
        """Begin the first transfer."""

    async def runs(self, timeout_s: float) -> Sequence[Run]:
        """All transfers, back to back, once they have ended. Raises RunFailed when one failed."""

    async def end(self) -> None:
        """End its processes."""


class PeerDownload:
    """A download program of others: its downloader.py is ready."""

    def __init__(self, process: Process, repeat: int, version: str, after_s: float) -> None:
        """`after_s`: how long it may take from the end of the last transfer to its report."""
        self._process, self._repeat, self._after_s = process, repeat, after_s
        self.version = version_in(version)

    @classmethod
    async def ready(
        cls,
        host: Host,
        invocation: Invocation,
        request: Mapping[str, Any],
        server: WebServer,
        *,
        repeat: int,
    ) -> PeerDownload:
        """Start downloader.py and have it get ready to fetch all of a server's files so often.

        Raises RunFailed.
        """
        pages_bytes = 4096 * (repeat + 2) * len(server.files)  # a file takes whole pages
        size_bytes = repeat * sum(server.files.values()) + pages_bytes + _SLACK_BYTES
        argv = within(size_bytes, await python_program(host, downloader), host=server.order.site.host)
        process = await host.start(argv, name=str(request["version_argv"][0]))
        told = {
            **request,
            "folder": FOLDER,
            "argvs": [list(argv) for argv in invocation.argvs],
            "files": {**invocation.files, _CA_NAME: server.ca_pem},
            "environment": dict(invocation.environment),
        }
        try:
            await process.write_line(json.dumps(told))
            event = await process.expect("ready", READY_TIMEOUT_S)
        except BaseException as error:
            await process.stop()
            if isinstance(error, ProcessEnded):
                raise _failed(error) from error
            raise
        return cls(process, repeat, str(event["version"]), float(request["quiet_s"]) + _GRACE_S)

    async def go(self) -> None:
        """Begin the first transfer; the others follow by themselves."""
        await self._process.write_line(json.dumps({"go": self._repeat}))

    async def runs(self, timeout_s: float) -> Sequence[Run]:
        """All of them. Raises RunFailed."""
        try:
            event = await self._process.expect("report", self._repeat * timeout_s + self._after_s)
        except ProcessEnded as error:
            raise _failed(error) from error
        for run in event["runs"]:
            if run["problem"]:
                raise RunFailed(run["problem"], code=FAILED)
        return [run_of_peer(run) for run in event["runs"]]

    async def end(self) -> None:
        """End its processes."""
        await self._process.finish(grace_s=2.0)


class OwnDownload:
    """netjoule-transfer: a process for each transfer of a run, all of them ready."""

    def __init__(
        self, processes: Sequence[Process], files: Mapping[str, int], energy: LiveEnergy | None = None
    ) -> None:
        """`energy`: of their host, of which each is told while it runs."""
        self._processes, self._files = processes, files
        self._energy = None if energy is None else EnergyLines(energy, processes[0])

    @classmethod
    async def ready(
        cls,
        host: Host,
        argv: Sequence[str],
        server: WebServer,
        *,
        repeat: int,
        energy: LiveEnergy | None = None,
    ) -> OwnDownload:
        """Start them and have them get ready to fetch all of a server's files. Raises RunFailed."""
        with_ca = ["sh", "-c", _WITH_CA, "sh", *argv]
        wrapped = within(_OWN_FOLDER_BYTES, with_ca, host=server.order.site.host)
        processes: list[Process] = []
        try:
            for _ in range(repeat):
                variables = {"NETJOULE_TEST_CA": server.ca_pem}
                processes.append(await host.start(wrapped, name="netjoule-transfer", env=variables))
                await processes[-1].expect("ready", READY_TIMEOUT_S)
        except BaseException as error:
            await asyncio.gather(*(process.stop() for process in processes))
            if isinstance(error, ProcessEnded):
                raise _failed(error) from error
            raise
        return cls(processes, server.files, energy)

    async def go(self) -> None:
        """Begin the first transfer."""
        await self._processes[0].write_line("go")
        if self._energy is not None:
            self._energy.begin()

    async def runs(self, timeout_s: float) -> Sequence[Run]:
        """All of them, each begun when the one before has ended. Raises RunFailed."""
        found: list[Run] = []
        for process in self._processes:
            if found:
                await process.write_line("go")
                if self._energy is not None:
                    self._energy.go_on_to(process)
            found.append(await self._run(process, timeout_s))
        if self._energy is not None:
            await self._energy.end()
        return found

    async def _run(self, process: Process, timeout_s: float) -> Run:
        try:
            line = await asyncio.wait_for(process.next_line(), timeout_s)
        except TimeoutError:
            raise RunFailed(f"{process.name} did not end in {timeout_s:g} s", code=FAILED) from None
        if not line:
            ended = how_it_ended(await process.finish())
            raise RunFailed(f"{process.name} {ended}: {process.said()}", code=FAILED)
        told = json.loads(line)
        if told.get("event") == "error":
            raise RunFailed(f"{process.name}: {told.get('message')}", code=FAILED)
        return run_of_ours(told, self._files)

    async def end(self) -> None:
        """End its processes."""
        if self._energy is not None:
            await self._energy.end()
        await asyncio.gather(*(process.finish(grace_s=2.0) for process in self._processes))


def run_of_peer(told: Mapping[str, Any]) -> dict[str, Any]:
    """A transfer as downloader.py tells it; what a peer does not tell is null."""
    lines = [line[:_LINE_LENGTH] for line in str(told["stdout"]).splitlines() if line.strip()]
    unknown: dict[str, Any] = dict.fromkeys(
        ("retries_n", "window_effective_bytes", "http_version", "tls_version")
    )
    known = {name: value for name, value in told.items() if name not in ("problem", "stdout")}
    if (of_curl := told_by_curl(str(told["stdout"]))) is not None:
        known["connections_opened_n"], unknown["http_version"] = of_curl
    return {**unknown, **known, "intervals": [], "records": [], "last_lines": lines[-_KEPT_LINES:]}


def run_of_ours(told: Mapping[str, Any], files: Mapping[str, int]) -> dict[str, Any]:
    """A transfer as netjoule-transfer tells it, but that its bytes count twice what came twice."""
    names = ("start_ns", "end_ns", "cpu_s", "connections_opened_n", "files_n", "files_verified_n")
    more = ("failures", "retries_n", "window_effective_bytes", "intervals", "records")
    failed = {one["file"] for one in told["failures"]}
    right_bytes = sum(size for name, size in files.items() if name not in failed)
    spoken = {name: told["server"][name] for name in ("http_version", "tls_version")}
    of_peers: dict[str, Any] = {"received_bytes": None, "last_lines": []}
    return {**{name: told[name] for name in (*names, *more)}, "bytes": right_bytes, **spoken, **of_peers}


def _failed(error: ProcessEnded) -> RunFailed:
    return RunFailed(error.what, where=error.where, code=error.code or FAILED)
