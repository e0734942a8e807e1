# SPDX-License-Identifier: Apache-2.0
"""A lab host over SSH: one connection, one keeper on it, programs that outlive a dropped connection.

Keys and known hosts are the user's; nothing is ever asked for at a terminal. The host needs sshd, a shell and
Python 3.9 or newer.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import secrets
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import asyncssh

from netjoule.core.clock import Clock
from netjoule.core.errors import HostLacks, NetjouleError, RunFailed
from netjoule.core.programs import HOST_PYTHON
from netjoule.hosts.ssh import keeper
from netjoule.hosts.ssh.errors import CONNECTION_ERRORS, HostInUse, sentence
from netjoule.hosts.ssh.line import GIVE_UP_S, Channel, KeeperGone, Line, RemoteProcess
from netjoule.hosts.ssh_settings import SshSettings

CONNECT_TIMEOUT_S = 15.0
COMMAND_TIMEOUT_S = 120.0
KEEPALIVE_S = 5.0
KEEPALIVES_MISSED = 3
QUIET_EVENTS = ("interval",)
"""Events that stay on the host: the report has them all, and sending them during a flow would cost power."""
_EXIT_NOT_FOUND = 127
_BEGINS = "-- netjoule: what follows is the command's --"
"""Told before each command: what stands above it was printed by the user's shell (an `echo` in .bashrc)."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who takes a host's lock.

    Attributes:
        campaign_id: equal for all sessions of one campaign, for no two campaigns.
        work: what it is taken for, for people: a campaign and its folder, or a command.
        orphan_s: the host is free again when its controller has said nothing for so long.
    """

    campaign_id: str
    work: str
    controller: str
    since_utc: str
    orphan_s: float = GIVE_UP_S


@dataclass(frozen=True, slots=True)
class Answer:
    """What a short command said."""

    status: int
    out: str
    err: str


class SshHost:
    """A host of the topology (`hosts.Host`)."""

    def __init__(
        self,
        settings: SshSettings,
        owner: Owner,
        remark: Callable[[str], None],
        clock: Clock | None = None,
        *,
        revive: Callable[[int], Awaitable[bool]] | None = None,
    ) -> None:
        """Not connected yet; `remark` is told in a sentence when the host goes out of reach and returns.

        `clock` times how long it is waited for when it is out of reach; `revive` as of `Line`.
        """
        self.settings = settings
        self.name = settings.name
        self.programs: dict[str, str] = {}  # where a program is on that host, when not on its PATH
        self._owner = owner
        self._connection: asyncssh.SSHClientConnection | None = None
        self._served = False  # whether this session has had the host before
        self._folder = PurePosixPath()
        self._keeper = PurePosixPath()
        self._line = Line(settings.name, self._attach, self._serve, remark, clock, revive=revive)

    @property
    def machine(self) -> str:
        """Its architecture, as uname -m names it."""
        return str(self._line.hello["machine"])

    @property
    def boot_id(self) -> str:
        """Identity of its running kernel."""
        return str(self._line.hello["boot_id"])

    @property
    def up(self) -> bool:
        """Whether it is in reach now."""
        return self._line.up

    @property
    def controller_address(self) -> str:
        """This side's address on the way to it."""
        return str(self._live().get_extra_info("sockname")[0])

    # -- life ------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connect, take the host's lock, start its keeper.

        Raises:
            UsageError: key or known_hosts do not fit, or another campaign has the host.
            HostLacks: it has no Python.
            RunFailed: it cannot be reached (host_unreachable).
        """
        try:
            await self._serve()
            await self._line.open()
        except BaseException:
            await self._hang_up()
            raise

    async def close(self) -> None:
        """End what runs there, give the lock back, hang up."""
        await self._line.close()
        await self._hang_up()

    async def wait_up(self) -> None:
        """Return when it is in reach. Raises RunFailed (host_unreachable) when it is given up."""
        await self._line.wait_up()

    async def given_up(self) -> RunFailed:
        """Wait until it is out of reach for good; why."""
        return await self._line.given_up()

    # -- what is done there ----------------------------------------------------------------------

    async def start(
        self, argv: Sequence[str], *, name: str, env: Mapping[str, str] | None = None
    ) -> RemoteProcess:
        """Start a program with pipes on stdin, stdout and stderr; waits for a host that is out of reach.

        Args:
            argv: a program of `programs` goes by its place there, another by the host's PATH.
            name: what it is called in messages.
            env: added to its environment; never written down.

        Raises:
            HostLacks: when it cannot be started.
            RunFailed: when the host is lost meanwhile, or given up (host_unreachable).
        """
        await self._line.wait_up()
        program = PurePosixPath(argv[0]).name
        words = [self.programs.get(program, program), *argv[1:]]
        number, process = self._line.new_process(name)
        self._line.command(start=number, argv=words, env=dict(env or {}), quiet=list(QUIET_EVENTS))
        problem = await process.begun
        if process.lost:  # it lacks nothing, and may come back
            raise RunFailed(
                f"it was lost while {name} started", where=f"host {self.name}", code="host_unreachable"
            )
        if problem:
            raise HostLacks(
                f"cannot start {name} ({words[0]}): {problem}",
                where=f"host {self.name}",
                next_step="'netjoule provision' installs what the topology needs there",
            )
        return process

    async def ask(self, argv: Sequence[str]) -> Answer:
        """Run a short command to its end. Raises RunFailed when it cannot be run."""
        return await self._run(shlex.join([*self._sudo, *argv]), b"")

    async def put(self, data: bytes, place: PurePosixPath, *, executable: bool = False) -> None:
        """Write a file whole or not at all. Raises RunFailed when it cannot be written."""
        part = shlex.quote(f"{place}.part")
        mode = "755" if executable else "644"
        command = f"mkdir -p {shlex.quote(str(place.parent))} && cat >{part} && chmod {mode} {part}"
        done = await self._run(f"{command} && mv -f {part} {shlex.quote(str(place))}", data)
        if done.status:
            raise RunFailed(f"cannot write {place}: {done.err.strip()}", where=f"host {self.name}")

    async def put_once(self, data: bytes, stem: str, suffix: str = "", *, executable: bool = False) -> str:
        """A file of this content in the host's cache folder, named by its content; its path."""
        digest = hashlib.sha256(data).hexdigest()[:16]
        place = await self._cache() / f"{stem}-{digest}{suffix}"
        if (await self._run(f"test -f {shlex.quote(str(place))}", b"")).status:
            await self.put(data, place, executable=executable)
        return str(place)

    async def exchange(self, timeout_s: float) -> tuple[int, int, int, int]:
        """One exchange of time stamps with the keeper, ns. Raises TimeoutError."""
        return await self._line.exchange(timeout_s)

    async def folder(self, name: str) -> PurePosixPath:
        """A folder's path below the host's cache folder; not made."""
        return await self._cache() / name

    # -- connection ------------------------------------------------------------------------------

    @property
    def _sudo(self) -> tuple[str, ...]:
        return ("sudo", "-n") if self.settings.become else ()

    def _live(self) -> asyncssh.SSHClientConnection:
        if self._connection is None:
            raise RunFailed("it is not connected", where=f"host {self.name}", code="host_unreachable")
        return self._connection

    async def _dial(self) -> asyncssh.SSHClientConnection:
        """The connection, made when there is none. Raises NetjouleError."""
        if self._connection is None:
            of = self.settings
            named = {"client_keys": of.identity_file, "known_hosts": of.known_hosts}
            files: dict[str, Any] = {k: str(Path(v).expanduser()) for k, v in named.items() if v is not None}
            try:
                self._connection = await asyncssh.connect(
                    of.address or of.name,
                    of.port,
                    username=of.user,
                    preferred_auth="publickey",
                    connect_timeout=CONNECT_TIMEOUT_S,
                    login_timeout=CONNECT_TIMEOUT_S,
                    keepalive_interval=KEEPALIVE_S,
                    keepalive_count_max=KEEPALIVES_MISSED,
                    **files,
                )
            except (*CONNECTION_ERRORS, asyncssh.KeyImportError) as error:
                raise sentence(of, error) from error
        return self._connection

    async def _hang_up(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()
            with contextlib.suppress(*CONNECTION_ERRORS):
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await connection.wait_closed()

    async def _run(self, command: str, data: bytes) -> Answer:
        """A command over the connection. Raises RunFailed (host_unreachable) when that breaks."""
        connection = await self._dial()
        try:
            begun = f"echo {shlex.quote(_BEGINS)}; {command}"
            process = await connection.create_process(begun, encoding=None)
            unread = _fed(process.stdin, data)
            done = await process.wait(check=False, timeout=COMMAND_TIMEOUT_S)
            if unread is not None and done.exit_status is None:
                raise unread
        except CONNECTION_ERRORS as error:
            self._forget()
            raise sentence(self.settings, error) from error
        status = done.exit_status if done.exit_status is not None else -1
        said = _text(done.stdout)
        _, has_begun, of_command = said.partition(f"{_BEGINS}\n")
        return Answer(status, of_command if has_begun else said, _text(done.stderr))

    async def _cache(self) -> PurePosixPath:
        """The login user's folder for our files, an absolute path."""
        if not self._folder.parts:
            done = await self._run('printf %s "${XDG_CACHE_HOME:-$HOME/.cache}"', b"")
            if done.status or not done.out.startswith("/"):
                raise HostLacks(
                    f"it has no home folder for {self.settings.user}: {done.err.strip() or done.out}",
                    where=f"host {self.name}",
                )
            self._folder = PurePosixPath(done.out) / "netjoule"
        return self._folder

    # -- keeper ----------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Take the lock and start a new keeper. Raises NetjouleError."""
        script = await self.put_once(Path(keeper.__file__).read_bytes(), "keeper", ".py")
        self._keeper = await self._cache() / f"session-{secrets.token_hex(6)}"
        self._script = script
        owner = asdict(self._owner) | {"take_over": not self._served}
        words = shlex.join([*self._sudo, *HOST_PYTHON, script, "serve", str(self._keeper)])
        done = await self._run(words, json.dumps(owner).encode() + b"\n")
        if done.status == keeper.REFUSED and done.out:
            raise _locked(self.name, _holder(done.out))
        if done.status:
            raise self._no_keeper(done)
        self._served = True

    def _no_keeper(self, done: Answer) -> NetjouleError:
        said = (done.err.strip().splitlines() or ["without an error message"])[-1]
        if done.status == _EXIT_NOT_FOUND:
            return HostLacks(
                f"it has no python3 ({said})",
                where=f"host {self.name}",
                next_step="install the package python3",
            )
        if self.settings.become and "sudo" in said:
            return HostLacks(
                f"sudo asks for a password ({said})",
                where=f"host {self.name}",
                next_step=f"allow {self.settings.user} NOPASSWD there, or log in as root",
            )
        return RunFailed(f"its keeper does not start: {said}", where=f"host {self.name}")

    async def _attach(self) -> Channel:
        """Attach to the keeper. Raises KeeperGone when the host has none, else NetjouleError."""
        words = shlex.join([*self._sudo, *HOST_PYTHON, self._script, "attach", str(self._keeper)])
        done = await self._run(f"test -S {shlex.quote(str(self._keeper / 'socket'))}", b"")
        if done.status and not self.settings.become:
            raise KeeperGone("its keeper has gone", where=f"host {self.name}")
        connection = await self._dial()
        try:
            # The empty line ends what the user's shell may have printed: the keeper's lines stand alone.
            process = await connection.create_process(f"echo; exec {words}", encoding=None)
        except CONNECTION_ERRORS as error:
            self._forget()
            raise sentence(self.settings, error) from error
        return Channel(process, self._forget)

    def _forget(self) -> None:
        """The connection is not trusted any more: the next attachment makes a new one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.abort()


def _holder(said: str) -> dict[str, Any]:
    """Who has the lock, by a keeper that was refused; nothing is known when that cannot be read."""
    try:
        return dict(json.loads(said)["holder"])
    except (ValueError, TypeError, KeyError):
        return {}


def _locked(host: str, holder: Mapping[str, Any]) -> HostInUse:
    """The sentence for a host that another campaign or command has."""
    who = f"{holder.get('work', 'something')} of {holder.get('controller', '?')}"
    what = f"it is in use by {who} since {holder.get('since_utc', '?')}"
    if "free_in_s" in holder:
        return HostInUse(
            f"{what}; that controller does not answer and is waited for",
            where=f"host {host}",
            next_step=f"wait {holder['free_in_s']:.0f} s; a campaign goes on at once with 'netjoule resume'",
        )
    return HostInUse(what, where=f"host {host}", next_step="wait for its end, or stop it with Ctrl-C there")


def _fed(stdin: asyncssh.SSHWriter[bytes], data: bytes) -> BrokenPipeError | None:
    """Give a command its input; why not, of one that may have ended before it read."""
    try:
        stdin.write(data)
        stdin.write_eof()
    except BrokenPipeError as error:
        return error
    return None


def _text(said: bytes | str | None) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""
