# SPDX-License-Identifier: Apache-2.0
"""Programs on a host over SSH: an sshd on a loopback port, with keys made for this test."""

import asyncio
import contextlib
import errno
import os
import select
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import sshd
from golden_sentences import raises
from lab_topology import LAB
from runner_fakes import FakeClock

from netjoule.core.clock import boot_id
from netjoule.core.errors import HostLacks, NetjouleError, RunFailed, UsageError
from netjoule.hosts.host import ProcessEnded
from netjoule.hosts.ssh import HostInUse, Owner, SshHost, SshSettings
from netjoule.hosts.ssh.keeper import Lock, open_shared
from netjoule.testbeds.lab import host_locks
from netjoule.topology.topology import Topology

OWNER = Owner("mine", "campaign /results/mine", "here", "2026-01-02T03:04:05Z")
SAYS_ALL = (
    'echo \'{"event":"ready"}\'; read word; echo "heard $word" >&2; echo \'{"event":"report"}\'; exit 3'
)
CACHE = "cache-of-a-home-that-lies-too-deep-for-the-address-of-a-unix-socket" + "-and-more" * 5
WITHIN_S = 120.0
"""Nothing takes so long; a hang becomes a failure."""


def configured(folder: Path) -> tuple[Path, SshSettings]:
    """An sshd's configuration on a free port, and how it is reached."""
    port = sshd.free_port()
    keys = sshd.make_keys(folder / "keys", [f"[127.0.0.1]:{port}"])
    conf = sshd.configuration(keys, "127.0.0.1", port, folder / CACHE)
    return conf, SshSettings.of("lab", {"control_address": "127.0.0.1", "ssh": keys.ssh(port)})


def pull_the_cable(host: SshHost) -> None:
    """Cut the connection without a word; it is then made anew."""
    host._live().abort()


def running(conf: Path, settings: SshSettings) -> contextlib.AbstractContextManager[object]:
    return sshd.running(sshd.command(conf), "127.0.0.1", settings.port)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshSettings]:
    conf, found = configured(tmp_path_factory.mktemp("sshd"))
    with running(conf, found):
        yield found


@pytest.fixture
def on(settings: SshSettings) -> Callable[[Callable[[SshHost], Awaitable[None]]], list[str]]:
    """Run a coroutine with a connected host; what the host remarked."""

    def run(story: Callable[[SshHost], Awaitable[None]]) -> list[str]:
        remarks: list[str] = []

        async def whole() -> None:
            host = SshHost(settings, OWNER, remarks.append)
            await host.connect()
            try:
                await story(host)
            finally:
                await host.close()

        asyncio.run(asyncio.wait_for(whole(), WITHIN_S))
        return remarks

    return run


def test_a_program_speaks_lines_and_ends_with_its_code(on) -> None:
    async def story(host: SshHost) -> None:
        process = await host.start(["sh", "-c", SAYS_ALL], name="speaker")
        assert await process.expect("ready", 10) == {"event": "ready"}
        await process.write_line("go")
        assert await process.expect("report", 10) == {"event": "report"}
        assert (await process.wait(), process.said()) == (3, "heard go")
        assert await process.next_line() == b""

    assert on(story) == []


def test_a_program_outlives_its_connection_and_is_heard_afterwards(on) -> None:
    async def story(host: SshHost) -> None:
        process = await host.start(["sh", "-c", SAYS_ALL], name="speaker")
        await process.expect("ready", 10)
        pull_the_cable(host)
        await process.write_line("go")  # said while nobody is there
        assert await process.expect("report", 10) == {"event": "report"}
        assert (await process.wait(), process.said()) == (3, "heard go")

    said = on(story)
    assert said[0] == "host lab is out of reach"
    assert said[1].startswith("host lab is back after ")


def test_intervals_stay_on_the_host_and_the_report_comes(on) -> None:
    async def story(host: SshHost) -> None:
        text = 'for i in 1 2 3; do echo \'{"event":"interval"}\'; done; echo \'{"event":"report"}\''
        process = await host.start(["sh", "-c", text], name="speaker")
        assert await process.next_line() == b'{"event":"report"}\n'

    on(story)


def test_long_lines_and_odd_bytes_come_whole(on) -> None:
    async def story(host: SshHost) -> None:
        text = "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\n\\377\\r\\n\\303\\244'"
        process = await host.start(["sh", "-c", text], name="speaker")
        lines = [line async for line in lines_of(process)]
        assert lines == [b"x" * 3_000_000 + b"\n", b"\xff\r\n", b"\xc3\xa4"]

    on(story)


async def lines_of(process):
    while line := await process.next_line():
        yield line


def test_stop_ends_a_program_with_its_helpers_and_finish_lets_it_end(on) -> None:
    async def story(host: SshHost) -> None:
        stubborn = await host.start(
            ["sh", "-c", "trap '' TERM; echo up; sleep 1000 & wait; sleep 1000"], name="s"
        )
        await stubborn.next_line()
        assert await stubborn.stop(grace_s=0.3) == -9
        quiet = await host.start(["cat"], name="cat")
        assert await quiet.finish() == 0

    on(story)


def test_what_is_not_there_or_says_nothing_is_told_in_a_sentence(on) -> None:
    async def story(host: SshHost) -> None:
        with raises(HostLacks):
            await host.start(["no-such-program"], name="it")
        silent = await host.start(["cat"], name="cat")
        with raises(ProcessEnded):
            await silent.expect("ready", 0.1)
        dying = await host.start(["sh", "-c", "echo why >&2; exit 7"], name="dying")
        with raises(ProcessEnded) as caught:
            await dying.expect("ready", 10)
        assert caught.value.exit_status == 7

    on(story)


def test_a_shell_that_prints_disturbs_nothing(tmp_path: Path) -> None:
    """As one does with an `echo` in its .bashrc: what it prints stands before what commands say."""
    conf, settings = configured(tmp_path)
    printing = 'echo Welcome; printf "to lab "; eval "$SSH_ORIGINAL_COMMAND"'
    conf.write_text(f"{conf.read_text()}ForceCommand {printing}\n")

    async def story() -> None:
        host = SshHost(settings, OWNER, print)
        await host.connect()
        assert (await host.ask(["echo", "here"])).out == "here\n"
        place = await host.put_once(b"it\n", "file")
        assert place.startswith(str(tmp_path / CACHE))
        process = await host.start(["cat", place], name="cat")
        assert await process.next_line() == b"it\n"
        other = SshHost(settings, replace(OWNER, campaign_id="other"), print)
        with pytest.raises(HostInUse, match="in use by campaign /results/mine of here since 2026"):
            await other.connect()
        await host.close()

    with running(conf, settings):
        asyncio.run(asyncio.wait_for(story(), WITHIN_S))


def test_the_environment_of_a_program_is_given_without_arguments(on) -> None:
    async def story(host: SshHost) -> None:
        process = await host.start(["sh", "-c", 'echo "$NAME"'], name="env", env={"NAME": "value"})
        assert await process.next_line() == b"value\n"

    on(story)


def test_files_are_put_whole_and_once(on) -> None:
    async def story(host: SshHost) -> None:
        place = await host.put_once(b"#!/bin/sh\necho here\n", "program", executable=True)
        assert await host.put_once(b"#!/bin/sh\necho here\n", "program", executable=True) == place
        assert (await host.ask([place])).out == "here\n"

    on(story)


def test_the_clock_of_this_kernel_is_its_own(on) -> None:
    async def story(host: SshHost) -> None:
        t1_ns, t2_ns, t3_ns, t4_ns = await host.exchange(10)
        assert t1_ns < t2_ns <= t3_ns < t4_ns
        assert host.boot_id == boot_id()
        assert host.machine == os.uname().machine

    on(story)


def test_a_lock_is_held_against_others_and_taken_over_by_the_same_campaign(settings, on) -> None:
    async def story(host: SshHost) -> None:
        other = SshHost(settings, replace(OWNER, campaign_id="other"), print)
        with pytest.raises(UsageError, match="in use by campaign /results/mine of here since 2026"):
            await other.connect()
        orphan = await host.start(["cat"], name="left by a killed controller")
        again = SshHost(settings, OWNER, print)
        await again.connect()
        with raises(ProcessEnded) as lost:
            await orphan.wait()
        assert lost.value.code == "host_unreachable"
        assert "in use by campaign" in str(await host.given_up())
        await again.close()

    on(story)


@pytest.mark.parametrize("end", ["killed", "failed"])
def test_a_keeper_that_dies_takes_its_programs_along(on, end: str) -> None:
    async def story(host: SshHost) -> None:
        process = await host.start(["sh", "-c", "echo $$ $PPID; exec sleep 1000"], name="sleeper")
        program, keeper = map(int, (await process.next_line()).split())
        with ended(program, within_s=20):
            if end == "killed":
                os.kill(keeper, signal.SIGKILL)
            else:
                host._line._write(b"no JSON\n")  # which nobody sends: an error of its own
        with raises(ProcessEnded):
            await process.wait()
        after = await host.start(["echo", "here"], name="next")
        assert await after.next_line() == b"here\n"

    said = on(story)
    assert said[0] == "host lab is out of reach"


@contextlib.contextmanager
def ended(pid: int, within_s: float) -> Iterator[None]:
    """The body ends a process, which is not a child of this one."""
    watched = os.pidfd_open(pid)
    try:
        yield
        assert select.select([watched], [], [], within_s)[0], f"process {pid} lives on"
    finally:
        os.close(watched)


def test_the_lock_is_open_to_every_user_where_the_kernel_guards_shared_folders(
    tmp_path: Path, monkeypatch
) -> None:
    """fs.protected_regular, which not every kernel has set: no O_CREAT on a file that another user made."""
    really = os.open

    def guarded(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and not flags & os.O_EXCL and path.exists():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return really(path, flags, mode)

    monkeypatch.setattr("netjoule.hosts.ssh.keeper.os.open", guarded)
    before = os.umask(0o077)
    try:
        for _ in range(2):
            os.close(open_shared(tmp_path / "lock"))
    finally:
        assert os.umask(before) == 0o077
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o666


def test_only_a_keeper_is_ended_whatever_number_the_lock_holds(tmp_path: Path, monkeypatch) -> None:
    """The lock's file is open to every user, and a campaign's keeper may run as root."""
    tmp_path.chmod(0o777)
    monkeypatch.setattr("netjoule.hosts.ssh.keeper.LOCK_FOLDERS", (tmp_path,))
    owner = {"campaign_id": "mine", "take_over": True}
    held = Lock(tmp_path)
    holder = {"campaign_id": "mine", "pid": os.getpid()}
    ended: list[int] = []
    monkeypatch.setattr(held, "_try", iter([holder, None]).__next__)
    monkeypatch.setattr("netjoule.hosts.ssh.keeper.os.kill", lambda pid, _number: ended.append(pid))
    assert held.take(owner) is None
    assert ended == []


@pytest.fixture
def rack(settings: SshSettings) -> Topology:
    """A topology of which this machine is one host, and nobody is the other."""
    ssh = {
        "address": settings.address,
        "port": settings.port,
        "user": settings.user,
        "identity_file": str(settings.identity_file),
        "known_hosts": str(settings.known_hosts),
    }
    reached = {"laptop": ssh, "tower": {"address": "127.0.0.1", "port": 1}}
    hosts = {name: LAB["hosts"][name] | {"ssh": reached[name]} for name in reached}
    return Topology.from_document(LAB | {"hosts": LAB["hosts"] | hosts}, where="test")


def test_hosts_are_held_while_something_is_done_there_and_free_afterwards(rack: Topology, on) -> None:
    provision, doctor = (
        host_locks.command_owner(f"netjoule {verb}", rack) for verb in ("provision", "doctor")
    )
    with (
        host_locks.held(rack, ["laptop", "tower"], provision, all_needed=False),
        pytest.raises(HostInUse, match=r"in use by 'netjoule provision' with rack of .* since 20"),
        host_locks.held(rack, ["laptop"], doctor, all_needed=False),
    ):
        pytest.fail("it was held by another")
    with host_locks.held(rack, ["laptop"], doctor, all_needed=False):
        pass

    async def campaign(host: SshHost) -> None:
        with (
            pytest.raises(HostInUse, match="in use by campaign /results/mine of here since 2026"),
            host_locks.held(rack, ["tower", "laptop"], doctor, all_needed=False),
        ):
            pytest.fail("it was held by a campaign")

    on(campaign)


def test_a_campaign_needs_all_its_hosts(rack: Topology) -> None:
    owner = host_locks.campaign_owner(Path("results/mine"), datetime(2026, 1, 2, tzinfo=UTC), 1)
    with (
        pytest.raises(RunFailed, match=r"host tower .*cannot be reached over SSH"),
        host_locks.held(rack, ["laptop", "tower"], owner, all_needed=True),
    ):
        pytest.fail("a host is missing")
    with host_locks.held(rack, ["laptop"], owner, all_needed=True):
        pass


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"known_hosts": Path("/dev/null")}, UsageError, "its SSH host key is not the known one"),
        ({"address": "127.0.0.1", "port": 1}, RunFailed, "cannot be reached over SSH"),
        ({"address": "no-such-host.invalid"}, UsageError, "its address does not resolve"),
        ({"identity_file": Path("/no/such/key")}, UsageError, "cannot read the SSH key"),
        ({"user": "nobody-here"}, UsageError, "lets none of the user's SSH keys in as nobody-here"),
    ],
)
def test_a_host_that_lets_nobody_in_is_told_with_what_to_do(settings, changes, error, words) -> None:
    async def connect() -> None:
        await SshHost(replace(settings, **changes), OWNER, print).connect()

    with pytest.raises(NetjouleError, match=words) as caught:
        asyncio.run(asyncio.wait_for(connect(), WITHIN_S))
    assert isinstance(caught.value, error)
    assert "host lab" in str(caught.value)


def test_a_host_that_stays_away_is_given_up_and_taken_again_by_the_next_session(tmp_path: Path) -> None:
    """Ten minutes pass at once: the clock jumps to each next try."""
    conf, settings = configured(tmp_path)
    remarks: list[str] = []

    async def first(stopping: contextlib.ExitStack) -> RunFailed:
        clock = FakeClock()
        host = SshHost(settings, OWNER, remarks.append, clock)
        await host.connect()
        program = await host.start(["cat"], name="cat")
        began_ns = clock.now_ns
        stopping.close()  # sshd: nobody answers any more
        pull_the_cable(host)
        gone = await host.given_up()
        assert 600 <= (clock.now_ns - began_ns) / 1e9 < 610
        with raises(ProcessEnded) as lost:
            await program.wait()
        assert lost.value.code == "host_unreachable"
        with pytest.raises(RunFailed, match="given up after 10 min"):
            await host.start(["true"], name="true")
        await host.close()
        return gone

    async def second() -> None:
        host = SshHost(settings, OWNER, remarks.append)
        await host.connect()
        assert (await host.ask(["echo", "here"])).out == "here\n"
        await host.close()

    with contextlib.ExitStack() as stopping:
        stopping.enter_context(running(conf, settings))
        gone = asyncio.run(asyncio.wait_for(first(stopping), WITHIN_S))
    assert (gone.code, gone.exit_code) == ("host_unreachable", 1)
    assert str(gone).startswith(
        f"host lab ({settings.user}@127.0.0.1:{settings.port}): given up after 10 min: "
    )
    assert "cannot be reached over SSH" in str(gone)
    assert str(gone).endswith("control network is connected; 'netjoule resume' then goes on")
    assert remarks == ["host lab is out of reach"]
    with running(conf, settings):  # the first session's keeper still waits there
        asyncio.run(asyncio.wait_for(second(), WITHIN_S))


def sudo(folder: Path, script: str) -> str:
    """A PATH on which this stands in for sudo."""
    program = folder / "bin" / "sudo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def test_a_user_who_may_become_root_does_everything_as_root(tmp_path: Path, monkeypatch) -> None:
    if shutil.which("sudo") is None:
        became = '[ "$1" = -n ] || exit 9; shift; SUDO_USER=$(id -un); export SUDO_USER; exec "$@"'
        monkeypatch.setenv("PATH", sudo(tmp_path, became))
    conf, settings = configured(tmp_path)

    async def story() -> None:
        host = SshHost(replace(settings, become=True), OWNER, print)
        await host.connect()
        asked = await host.ask(["sh", "-c", 'echo "$SUDO_USER" $(id -u)'])
        assert asked.out == f"{settings.user} 0\n"
        process = await host.start(
            ["sh", "-c", 'read word; echo "$SUDO_USER" $(id -u) "$NAME"'], name="who", env={"NAME": "given"}
        )
        pull_the_cable(host)
        await process.write_line("go")
        assert await process.next_line() == f"{settings.user} 0 given\n".encode()
        assert await process.wait() == 0
        await host.close()

    with running(conf, settings):
        asyncio.run(asyncio.wait_for(story(), WITHIN_S))
    assert list((tmp_path / CACHE / "netjoule").glob("session-*")) == []


@pytest.mark.parametrize("ends_before_it_reads", [False, True])
def test_a_sudo_that_asks_for_a_password_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch, ends_before_it_reads: bool
) -> None:
    create = asyncssh.SSHClientConnection.create_process

    async def late(self: Any, command: str, **options: Any) -> Any:
        process = await create(self, command, **options)
        if ends_before_it_reads and "sudo -n" in command:
            await process.wait_closed()
        return process

    monkeypatch.setattr(asyncssh.SSHClientConnection, "create_process", late)
    monkeypatch.setenv("PATH", sudo(tmp_path, "echo 'sudo: a password is required' >&2; exit 1"))
    conf, settings = configured(tmp_path)

    async def connect() -> None:
        await SshHost(replace(settings, become=True), OWNER, print).connect()

    with running(conf, settings), pytest.raises(HostLacks, match="sudo asks for a password") as caught:
        asyncio.run(asyncio.wait_for(connect(), WITHIN_S))
    assert f"allow {settings.user} NOPASSWD there, or log in as root" in str(caught.value)
