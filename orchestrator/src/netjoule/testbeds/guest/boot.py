# SPDX-License-Identifier: Apache-2.0
"""One boot: QEMU started, its output passed on while it comes, its end waited for; nothing stays behind.

The initramfs is a file without a name, ports are socket pairs: there is nothing in the file system to
clean up. QEMU gets a death signal for the end of this process, so that kill -9 takes both.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.testbeds.guest import initramfs, machine
from netjoule.testbeds.guest.kernel import Kernel
from netjoule.testbeds.guest.stream import MarkedStream
from netjoule.testbeds.guest.tools import tool

Sink = Callable[[bytes], None]

_QEMU = "qemu-system-x86_64"
_BUSYBOX = "busybox"
_PORTS = ("console", "control", "out", "err")
_CONSOLE_KEPT_BYTES = 8192
_READ_BYTES = 65536
_PORTS_OF_OUTPUT = ("out", "err")
_FAILURE_WORDS = ("netjoule-guest:", "Kernel panic", "Out of memory")


class BootFailed(RunFailed):
    """The machine ended, or did not reach the command in time."""


class TimedOut(RunFailed):
    """The command ran longer than it was given; exit code as of timeout(1)."""

    exit_code = 124


@dataclass(frozen=True, slots=True)
class Limits:
    """Longest times: from power-on to the start of the command, and of the command (None: no limit)."""

    boot_s: float
    command_s: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command in the guest ended.

    Attributes:
        exit_code: of the command, 128 + signal when a signal ended it.
        boot_s: from the start of QEMU to the start of the command.
        command_s: from there to its end.
        release: the guest's kernel.
    """

    exit_code: int
    boot_s: float
    command_s: float
    release: str


def qemu_program() -> str:
    """Path of QEMU.

    Raises:
        HostLacks: when it is not installed.
    """
    return tool(_QEMU, "qemu-system-x86")


def busybox_program() -> Path:
    """Path of a busybox that needs no libraries.

    Raises:
        HostLacks: when there is none, or only a dynamically linked one.
    """
    path = Path(tool(_BUSYBOX, "busybox-static"))
    if b"/ld-linux" in path.read_bytes()[:4096]:
        raise HostLacks(f"{path} needs shared libraries", next_step="install the package busybox-static")
    return path


def boot(
    kernel: Kernel,
    hardware: machine.Machine,
    job: machine.Job,
    sinks: Mapping[str, Sink],
    limits: Limits,
    *,
    stop: int | None = None,
) -> Outcome:
    """Boot, run the job, end the machine.

    Args:
        kernel: what to boot.
        hardware: memory, cores, accelerator.
        job: the command.
        sinks: called with bytes as they come: ``out``, ``err``.
        limits: how long to wait.
        stop: a pipe, socket or terminal whose end of file ends the machine: exit code 0.

    Raises:
        HostLacks: no QEMU, no busybox.
        BootFailed: the command was never reached, or the machine ended under it.
        TimedOut: the command took too long.
    """
    mark = os.urandom(24).hex()
    ours, theirs = {}, {}
    for name in _PORTS:
        ours[name], theirs[name] = socket.socketpair()
    image_fd = _unnamed_file(_initramfs(kernel, job, machine.settings(job, hardware, kernel.modules, mark)))
    try:
        fds = {name: end.fileno() for name, end in theirs.items()}
        words = machine.qemu_arguments(hardware, kernel.image, image_fd, fds, job.shared)
        started_s = time.monotonic()
        process = _start([qemu_program(), *words], (*fds.values(), image_fd))
        for end in theirs.values():
            end.close()
        try:
            streams = {name: MarkedStream(mark.encode(), sinks[name]) for name in _PORTS_OF_OUTPUT}
            return _Watch(ours, streams, limits, started_s, stop).run(process)
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(image_fd)
        for end in (*ours.values(), *theirs.values()):
            end.close()


def _initramfs(kernel: Kernel, job: machine.Job, settings: bytes) -> bytes:
    root = programs.shipped("testbed/guest")
    order = initramfs.load_order((kernel.modules / "modules.dep").read_text(), initramfs.BOOT_MODULES)
    files = {
        "init": ((root / "init").read_bytes(), 0o755),
        "bin/busybox": (busybox_program().read_bytes(), 0o755),
        "job/session": ((root / "session").read_bytes(), 0o755),
        "job/settings": (settings, 0o600),
        "job/command": (machine.command_script(job), 0o600),
        "job/modules/order": ("".join(Path(name).name + "\n" for name in order).encode(), 0o600),
    }
    for name in order:
        files[f"job/modules/{Path(name).name}"] = (initramfs.module_bytes(kernel.modules / name), 0o600)
    return initramfs.archive(files)


def _unnamed_file(content: bytes) -> int:
    fd = os.memfd_create("netjoule-guest-initramfs", 0)
    with os.fdopen(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd


def _start(command: list[str], fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
    from netjoule.hosts.ssh.keeper import end_with_parent  # here: its folder loads all of SSH

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=fds,
        # A Ctrl-C is for us; we end the machine ourselves.
        start_new_session=True,
        preexec_fn=end_with_parent(),  # noqa: PLW1509  # this process has no other threads
    )


class _Watch:
    """Reads the guest's ports until the command has ended and all its output has come."""

    def __init__(
        self,
        ports: Mapping[str, socket.socket],
        streams: Mapping[str, MarkedStream],
        limits: Limits,
        started_s: float,
        stop: int | None = None,
    ) -> None:
        self._streams, self._limits, self._started_s = streams, limits, started_s
        self._console = self._control = self._problem = b""
        self._ready_s: float | None = None
        self._ended_s: float | None = None
        self._release = ""
        self._code: int | None = None
        self._selector = selectors.DefaultSelector()
        for name, end in ports.items():
            end.setblocking(False)
            self._selector.register(end, selectors.EVENT_READ, name)
        self._stopped = False
        if stop is not None:
            self._selector.register(stop, selectors.EVENT_READ, "stop")

    def run(self, process: subprocess.Popen[bytes]) -> Outcome:
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        self._selector.register(process.stderr, selectors.EVENT_READ, "qemu")
        with self._selector, process.stderr:
            while not self._stopped and not (
                self._code is not None and all(stream.ended for stream in self._streams.values())
            ):
                for key, _ in self._selector.select(self._left_s()):
                    self._take(str(key.data), key)
                if not self._selector.get_map():
                    raise self._ended(process.wait())
        # One that was told to stop may not have come to its command, or to the end of it.
        now_s = time.monotonic()
        ready_s = now_s if self._ready_s is None else self._ready_s
        ended_s = now_s if self._ended_s is None or self._stopped else self._ended_s
        code = 0 if self._code is None or self._stopped else self._code
        return Outcome(code, ready_s - self._started_s, ended_s - ready_s, self._release)

    def _left_s(self) -> float | None:
        """Time until the next limit.

        Raises:
            BootFailed, TimedOut: when it has passed.
        """
        now_s = time.monotonic()
        if self._ready_s is None:
            left_s = self._started_s + self._limits.boot_s - now_s
            if left_s <= 0:
                raise BootFailed(
                    f"the guest was not up after {self._limits.boot_s:.0f} s{self._last_words()}"
                )
            return left_s
        if self._limits.command_s is None or self._code is not None:
            return None
        left_s = self._ready_s + self._limits.command_s - now_s
        if left_s <= 0:
            raise TimedOut(
                f"the command did not end within {self._limits.command_s:g} s; the guest was ended",
                next_step="give it more with --timeout",
            )
        return left_s

    def _take(self, name: str, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, _READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(key.fileobj)
            self._stopped = self._stopped or name == "stop"
        elif name == "stop":
            pass  # only its end means something
        elif name == "console":
            self._console = (self._console + data)[-_CONSOLE_KEPT_BYTES:]
        elif name == "qemu":
            self._problem = (self._problem + data)[-_CONSOLE_KEPT_BYTES:]
        elif name == "control":
            self._hear(data)
        else:
            self._streams[name].feed(data)

    def _hear(self, data: bytes) -> None:
        *lines, self._control = (self._control + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            if word == "ready":
                self._ready_s, self._release = time.monotonic(), rest
            elif word == "exit":
                self._ended_s, self._code = time.monotonic(), int(rest)

    def _ended(self, code: int) -> BootFailed:
        said = self._problem.decode(errors="replace").strip().splitlines()
        if said and self._ready_s is None and not self._console:
            return BootFailed(f"QEMU ended: {said[-1].strip()}")
        when = "before" if self._ready_s is None else "under"
        return BootFailed(f"the guest ended {when} the command (QEMU's exit code {code}){self._last_words()}")

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._console.decode(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line for word in _FAILURE_WORDS)] or lines[-1:]
        return f"; its console: {telling[-1]}" if telling else ""
