# SPDX-License-Identifier: Apache-2.0
"""Keeps a lab host's programs: runs there, starts them, holds what they say until the controller has it.

::

    keeper.py serve FOLDER     take the host's lock, go into the background, answer on FOLDER/socket
    keeper.py attach FOLDER    join standard input and output with that socket, until either ends

One file of Python 3.9 and its library, copied to the host. The controller attaches over SSH; when that
connection drops, the programs run on and the next attachment gets all that was said meanwhile. Without a
controller for `orphan_s` it ends the programs and itself. The lock is a flock(2), so it dies with the keeper,
and so do the programs, however the keeper ends.

Lines of JSON both ways. Commands are numbered by `n` and done once, however often they are sent:
`start` (argv, env, quiet), `write` (text), `close`, `signal` (number), `bye`. Frames are numbered by `m`
and kept until acknowledged by `attach` or `ack`: `started`, `failed`, `out`, `err`, `exit`; `done` in them
is the last command done. `ask` is answered by `told`: CLOCK_MONOTONIC in ns at its arrival and departure.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

READ_BYTES = 65536
MOST_KEPT_BYTES = 64 * 2**20
"""With so much unacknowledged the programs' pipes are read no more."""
EVENT_LINE_BYTES = 4096
END_GRACE_S = 3.0
TAKE_OVER_S = 15.0
LOCK_FOLDERS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - a lock that all users find; it holds no secret
PR_SET_PDEATHSIG = 1  # prctl(2), linux/prctl.h
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
REFUSED = 4  # exit code: the lock is another campaign's


class Program:
    """One started program and the unfinished lines of its stdout and stderr."""

    def __init__(self, number: int, quiet: list[str], child: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.quiet = set(quiet)
        self.child = child
        self.rest = {"out": b"", "err": b""}
        self.open = 2  # of its two streams

    def said_quietly(self, line: bytes) -> bool:
        """Whether a line is an event that the controller does not want while a flow is measured."""
        if not self.quiet or len(line) > EVENT_LINE_BYTES:
            return False
        try:
            return json.loads(line).get("event") in self.quiet
        except (ValueError, AttributeError):
            return False


class Keeper:
    """The programs of one host, and the controller when it is attached."""

    def __init__(self, listener: socket.socket, orphan_s: float, note: Any) -> None:
        """`note(alone)` is told when a controller leaves (True) and when one attaches (False)."""
        self._listener = listener
        self._orphan_s = orphan_s
        self._note = note
        self._selector = selectors.DefaultSelector()
        self._programs: dict[int, Program] = {}
        self._controller: socket.socket | None = None
        self._asked = b""
        self._done = 0  # number of the last command done
        self._frames: list[tuple[int, bytes]] = []
        self._kept_bytes = 0
        self._said = 0  # number of the last frame
        self._heard_s = time.monotonic()
        self._ending = False
        self._end_with_me = end_with_parent()

    def run(self) -> None:
        """Serve until ``bye``, SIGTERM or `orphan_s` without a word of the controller."""
        wake_read, wake_write = socket.socketpair()
        for end in (wake_read, wake_write):
            end.setblocking(False)
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(wake_read, selectors.EVENT_READ, lambda: self._reap(wake_read))
        try:
            while not self._ending:
                # A controller that lost its power leaves a connection that looks alive: its words count.
                left_s = self._heard_s + self._orphan_s - time.monotonic()
                if left_s <= 0:
                    break
                for key, _ in self._selector.select(left_s):
                    key.data()
        finally:
            self._end_programs()

    def _end(self, *_: object) -> None:
        self._ending = True

    # -- the controller -----------------------------------------------------------------------------

    def _accept(self) -> None:
        """A new attachment; it replaces one whose connection may be dead without anybody knowing."""
        new, _ = self._listener.accept()
        self._part()
        self._controller, self._asked = new, b""
        new.settimeout(30)  # for writing; a controller that reads nothing for so long is taken for gone
        self._selector.register(new, selectors.EVENT_READ, self._hear)
        self._note(False)

    def _part(self) -> None:
        if self._controller is not None:
            self._selector.unregister(self._controller)
            self._controller.close()
            self._controller = None
            self._note(True)

    def _hear(self) -> None:
        t2_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        assert self._controller is not None
        try:
            data = self._controller.recv(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._part()
            return
        self._heard_s = time.monotonic()
        *lines, self._asked = (self._asked + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line), t2_ns)

    def _obey(self, asked: dict[str, Any], t2_ns: int) -> None:
        if "attach" in asked:
            self._forget(asked["attach"])
            self._send(json.dumps({"hello": hello(), "done": self._done}).encode() + b"\n")
            for _, frame in self._frames:
                self._send(frame)
        elif "ack" in asked:
            self._forget(asked["ack"])
        elif "ask" in asked:
            told = {"told": asked["ask"], "t2_ns": t2_ns}
            told["t3_ns"] = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            self._send(json.dumps(told).encode() + b"\n")
        elif asked["n"] == self._done + 1:  # a lower one was done before the connection dropped
            self._done += 1
            self._do(asked)

    def _do(self, asked: dict[str, Any]) -> None:
        if "start" in asked:
            self._start(asked["start"], asked["argv"], asked["env"], asked["quiet"])
        elif "bye" in asked:
            self._ending = True
        else:
            number = next(int(asked[verb]) for verb in ("write", "close", "signal") if verb in asked)
            program = self._programs.get(number)
            if program is None:
                return  # it has ended
            pipe = program.child.stdin
            assert pipe is not None
            with contextlib.suppress(OSError, ValueError):  # it no longer reads, or its end is under way
                if "write" in asked:
                    pipe.write(asked["text"].encode())
                    pipe.flush()
                elif "close" in asked:
                    pipe.close()
                else:
                    os.killpg(program.child.pid, asked["number"])

    def _say(self, **frame: Any) -> None:
        self._said += 1
        line = json.dumps({"m": self._said, "done": self._done, **frame}).encode() + b"\n"
        self._frames.append((self._said, line))
        self._kept_bytes += len(line)
        self._send(line)

    def _send(self, line: bytes) -> None:
        if self._controller is not None:
            try:
                self._controller.sendall(line)
            except OSError:
                self._part()

    def _forget(self, number: int) -> None:
        """Drop the frames up to `number`: the controller has them."""
        full = self._kept_bytes >= MOST_KEPT_BYTES
        while self._frames and self._frames[0][0] <= number:
            self._kept_bytes -= len(self._frames.pop(0)[1])
        if full and self._kept_bytes < MOST_KEPT_BYTES:
            for program in self._programs.values():
                self._listen_to(program)

    # -- the programs -------------------------------------------------------------------------------

    def _start(self, number: int, argv: list[str], env: dict[str, str], quiet: list[str]) -> None:
        environment = dict(os.environ, PATH=os.environ.get("PATH", os.defpath) + ":" + SBIN, **env)
        pipe = subprocess.PIPE
        try:
            child = subprocess.Popen(
                argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=environment,
                start_new_session=True,
                preexec_fn=self._end_with_me,  # noqa: PLW1509 - this process has no threads
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._say(failed=number, why=getattr(error, "strerror", None) or str(error))
            return
        program = self._programs[number] = Program(number, quiet, child)
        self._listen_to(program)
        self._say(started=number, pid=child.pid)

    def _listen_to(self, program: Program) -> None:
        for kind, pipe in (("out", program.child.stdout), ("err", program.child.stderr)):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(KeyError):  # it is listened to already
                    self._selector.register(
                        pipe, selectors.EVENT_READ, lambda k=kind, p=pipe: self._read(program, k, p)
                    )

    def _read(self, program: Program, kind: str, pipe: Any) -> None:
        data = os.read(pipe.fileno(), READ_BYTES)
        if data:
            *lines, program.rest[kind] = (program.rest[kind] + data).split(b"\n")
            told = [line + b"\n" for line in lines if not program.said_quietly(line)]
        else:
            told = [program.rest[kind]] if program.rest[kind] else []
            self._selector.unregister(pipe)
            pipe.close()
            program.open -= 1
        if told:
            self._say(**{kind: program.number, "text": b"".join(told).decode("utf-8", "surrogateescape")})
        if not program.open:
            self._reap(None)
        elif self._kept_bytes >= MOST_KEPT_BYTES:
            for other in list(self._selector.get_map().values()):
                if any(other.fileobj in (p.child.stdout, p.child.stderr) for p in self._programs.values()):
                    self._selector.unregister(other.fileobj)

    def _reap(self, wake: socket.socket | None) -> None:
        """Tell of programs that have ended and said all; a helper that holds their pipes open delays it."""
        if wake is not None:
            with contextlib.suppress(BlockingIOError):
                wake.recv(READ_BYTES)
        for number, program in list(self._programs.items()):
            if not program.open and program.child.poll() is not None:
                del self._programs[number]
                if program.child.stdin is not None:
                    with contextlib.suppress(OSError):
                        program.child.stdin.close()
                self._say(exit=number, status=program.child.returncode)

    def _end_programs(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for program in self._programs.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.child.pid, number)
            end_s = time.monotonic() + END_GRACE_S
            for program in self._programs.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.child.wait(max(0.0, end_s - time.monotonic()))


def end_with_parent() -> Callable[[], None]:
    """For a child before its exec: it is killed when this process ends, be it by SIGKILL (prctl(2))."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl  # found here: a child of fork(2) had better not load anything

    def in_child() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it ended before the call
            os.kill(os.getpid(), signal.SIGKILL)

    return in_child


def hello() -> dict[str, Any]:
    """What the controller wants to know of the host at once."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    libc, version = platform.libc_ver()
    return {"boot_id": boot_id, "machine": platform.machine(), "libc": f"{libc} {version}".strip()}


# -- the lock ----------------------------------------------------------------------------------------


class Lock:
    """The lock of this host: a network namespace of its own counts as a host of its own."""

    def __init__(self, folder: Path) -> None:
        """Open the lock's file, whoever made it."""
        # Not a folder that only some users can write to: all must come to the same file.
        where = next(path for path in LOCK_FOLDERS if path.is_dir() and path.stat().st_mode & 0o002)
        self._fd = open_shared(where / f"netjoule-{Path('/proc/self/ns/net').stat().st_ino}.lock")
        self._folder = folder

    def take(self, owner: dict[str, Any]) -> dict[str, Any] | None:
        """Take it for a campaign; what holds it when that is another one.

        The same campaign's earlier keeper, left by a controller that was killed, is ended first where the
        owner says `take_over`: a session does so when it begins. Else it is waited for: it may be ending.
        """
        holder = self._try()
        if holder and holder.get("campaign_id") == owner["campaign_id"]:
            if owner["take_over"]:
                with contextlib.suppress(OSError, ValueError):
                    pid = int(holder["pid"])
                    if is_keeper(pid):
                        os.kill(pid, signal.SIGTERM)
            end_s = time.monotonic() + TAKE_OVER_S
            while (holder := self._try()) is not None and time.monotonic() < end_s:
                time.sleep(0.05)
        if holder is None:
            self._owner = dict(owner, pid=os.getpid(), folder=str(self._folder), alone_since=None)
            self._write()
        return holder

    def note(self, alone: bool) -> None:
        """Write down since when no controller is attached."""
        self._owner["alone_since"] = time.clock_gettime(time.CLOCK_MONOTONIC) if alone else None
        self._write()

    def mine(self) -> None:
        """This process, not the one that took it, is to be ended by a successor."""
        self._owner["pid"] = os.getpid()
        self._write()

    def _try(self) -> dict[str, Any] | None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
        try:
            found = dict(json.loads(os.pread(self._fd, READ_BYTES, 0)))
        except ValueError:
            return {}  # it is just being written
        if found.get("alone_since") is not None:
            alone_s = time.clock_gettime(time.CLOCK_MONOTONIC) - found["alone_since"]
            found["free_in_s"] = max(0.0, found["orphan_s"] - alone_s)
        return found

    def _write(self) -> None:
        text = json.dumps(self._owner).encode()
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))


def is_keeper(pid: int) -> bool:
    """Whether a process is one of these: every user may write a number into the lock's file.

    Raises OSError when there is no such process.
    """
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"serve" in words and any(re.fullmatch(rb"(.*/)?keeper[-\w]*\.py", word) for word in words)


def open_shared(place: Path) -> int:
    """A descriptor of a file that every user may write to, made when missing.

    A file that is there is opened without O_CREAT: where fs.protected_regular is set, the kernel refuses
    O_CREAT on another user's file in a folder like /run/lock even to root (proc_sys_fs(5)).
    """
    common = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        with contextlib.suppress(FileNotFoundError):
            return os.open(place, common)
        before = os.umask(0)
        try:
            return os.open(place, common | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue  # another made it in between
        finally:
            os.umask(before)


@contextlib.contextmanager
def short_path(folder: Path) -> Iterator[str]:
    """The folder under a name short enough for a unix socket (107 bytes, unix(7)), however deep it lies."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


# -- the two verbs -----------------------------------------------------------------------------------


def serve(folder: Path) -> int:
    """Take the lock, go into the background and keep; standard input holds the owner, one line of JSON."""
    owner = json.loads(sys.stdin.readline())
    folder.mkdir(mode=0o700, parents=True)
    lock = Lock(folder)
    holder = lock.take(owner)
    if holder is not None:
        folder.rmdir()
        print(json.dumps({"holder": holder}))  # noqa: T201
        return REFUSED
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with short_path(folder) as short:
        listener.bind(f"{short}/socket")
    listener.listen(1)
    print(json.dumps({"serving": hello()}), flush=True)  # noqa: T201
    if os.fork():
        return 0
    os.setsid()
    lock.mine()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(nothing, fd)
    log = os.open(folder / "keeper.log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 2)
    try:
        Keeper(listener, float(owner["orphan_s"]), lock.note).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def attach(folder: Path) -> int:
    """Carry bytes between standard input and output and the keeper until one of them ends."""
    keeper = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(folder) as short:
            keeper.connect(f"{short}/socket")
    except OSError as error:
        print(f"no keeper at {folder}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return REFUSED
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(keeper, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    return 0
                if key.fd == 0:
                    keeper.sendall(data)
                else:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit({"serve": serve, "attach": attach}[sys.argv[1]](Path(sys.argv[2])))
