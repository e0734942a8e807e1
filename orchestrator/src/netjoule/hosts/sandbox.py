# SPDX-License-Identifier: Apache-2.0
"""Where an emulated campaign lives: namespaces of its own that vanish with it.

`run_inside(argv)` starts `argv` in fresh network, mount and PID namespaces (and a user namespace when
the caller is not root, or is a root without the capability) and stays as supervisor:

    supervisor (this process) --lifeline--> unshare -> init (PID 1 inside) -> worker (argv)

The supervisor forwards SIGINT, SIGTERM and SIGHUP (not under nohup) over the lifeline, passes stdio
through and returns the worker's exit code. Init mounts a tmpfs on /run, brings `lo` up, reaps orphans and
ends at once when the lifeline closes. The end of init ends every process of the PID namespace
(pid_namespaces(7)), and with the last process go the network namespaces and their devices. So `kill -9` of
the supervisor, of unshare, of init or of the worker leaves nothing on the host; there are no names to
clean up.

This module is not a security boundary: it contains side effects, not attackers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from netjoule.core.errors import HostLacks
from netjoule.core.programs import PYTHON
from netjoule.core.signals import handled_by, termination_signals

ENV_INSIDE = "NETJOULE_SANDBOX"

_BASE_FLAGS = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_USER_FLAGS = ("--user", "--map-root-user")
_NEEDED_TOOLS = {"unshare": "util-linux", "mount": "mount", "ip": "iproute2", "nsenter": "util-linux"}
_SBIN = "/usr/sbin:/sbin"
_OWN_TCP_TABLES = Path("/proc/sys/net/ipv4/tcp_child_ehash_entries")
_TCP_TABLE_PLACES = 4096
"""Hosts have their own tables of connections (ip-sysctl): whoever counts connections walks through all
places, which are 262,144 where namespaces share the machine's."""


class SandboxError(HostLacks):
    """The host refuses the namespaces (exit code 3); the message names what is missing."""


def inside() -> str | None:
    """Mode ("root" or "rootless") when this process is a sandbox's worker, else None."""
    mode = os.environ.get(ENV_INSIDE)
    return mode if mode and os.getppid() == 1 else None


def run_inside(argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> int:
    """Run `argv` inside a new sandbox, supervise it and return its exit code (128+n after signal n).

    Raises SandboxError when no way of entering works on this host.
    """
    return _entered(list(argv), dict(os.environ if env is None else env))[1]


def probe() -> str:
    """Try to enter a sandbox and leave it again, nothing is inferred from settings; its mode.

    Raises SandboxError when no way of entering works on this host.
    """
    return _entered([*PYTHON, "-c", "pass"], dict(os.environ))[0]


def _entered(argv: list[str], env: dict[str, str]) -> tuple[str, int]:
    """Mode of the first way of entering that works, and the exit code of what ran there."""
    _require_tools()
    refusals: dict[str, str] = {}
    for mode, flags in _ways_in():
        outcome = _supervise(mode, flags, argv, env)
        if isinstance(outcome, int):
            return mode, outcome
        refusals[mode] = outcome
    raise _refused(refusals)


def hidden_by_sandbox(path: Path) -> bool:
    """Whether `path` lies under /run, which the sandbox covers with an empty tmpfs."""
    resolved = path.resolve()
    return resolved == Path("/run") or Path("/run") in resolved.parents


# --- supervisor (outside) ------------------------------------------------------------------------


def _ways_in() -> list[tuple[str, tuple[str, ...]]]:
    rootless = ("rootless", _USER_FLAGS + _BASE_FLAGS)
    return [("root", _BASE_FLAGS), rootless] if os.geteuid() == 0 else [rootless]


def _require_tools() -> None:
    path = os.environ.get("PATH", os.defpath) + ":" + _SBIN
    for tool, package in _NEEDED_TOOLS.items():
        if shutil.which(tool, path=path) is None:
            raise SandboxError(
                f"the emulated testbed needs the program '{tool}', which is not installed",
                next_step=f"install the package {package}",
            )
    for what, where in (("the Python environment", Path(sys.prefix)), ("the working directory", Path.cwd())):
        if hidden_by_sandbox(where):
            raise SandboxError(
                f"{what} ({where}) lies under /run, which the emulated testbed covers",
                next_step="move it elsewhere",
            )


def _supervise(mode: str, flags: tuple[str, ...], argv: list[str], env: dict[str, str]) -> int | str:
    """Start one sandbox; the worker's exit code, or what unshare or init said when it never came up."""
    lifeline_read, lifeline_write = os.pipe()
    status_read, status_write = os.pipe()
    real_stderr = os.dup(2)
    init = [*PYTHON, "-m", "netjoule.hosts.sandbox"]
    fds = [lifeline_read, status_write, real_stderr]
    env = env | {ENV_INSIDE: mode, "PATH": env.get("PATH", os.defpath) + ":" + _SBIN}
    with _forwarding(lifeline_write):
        process = subprocess.Popen(
            ["unshare", *flags, "--", *init, *map(str, fds), *argv],
            stderr=subprocess.PIPE,  # what unshare says before init takes the real stderr over
            pass_fds=fds,
            env=env,
            process_group=0,  # Ctrl-C reaches only the supervisor, which forwards it once
        )
        for fd in fds:
            os.close(fd)
        said = _handshake(process, status_read)
        if said is not None:
            os.close(lifeline_write)
            _exit_code(process)
            return said
        code = _exit_code(process)
    os.close(lifeline_write)
    return code


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end; the worker's exit code, or 128+9 when init or unshare was killed."""
    assert process.stderr is not None
    # After the handshake only unshare writes here, and only when init died of a signal.
    trouble = process.stderr.read()
    process.stderr.close()
    code = process.wait()
    return code if code >= 0 and not trouble else 128 + signal.SIGKILL


def _handshake(process: subprocess.Popen[bytes], status_fd: int) -> str | None:
    """None when init reports that all is set up, else what went wrong in unshare's or init's words."""
    assert process.stderr is not None
    with os.fdopen(status_fd, "rb") as status:
        line = status.readline()
    if line:
        problem = json.loads(line)["problem"]
        return None if problem is None else str(problem)
    said = process.stderr.read().decode(errors="replace").strip()
    return said or f"unshare ended with code {process.wait()} and said nothing"


def _forwarding(lifeline_fd: int) -> AbstractContextManager[None]:
    """Send the forwarded signals down the lifeline, one byte each, while the body runs."""

    def forward(number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # init is already gone: nothing left to tell
            os.write(lifeline_fd, bytes([number]))

    return handled_by(forward, termination_signals())


def _refused(refusals: Mapping[str, str]) -> SandboxError:
    """One sentence: what was tried, what the system said, what to change."""
    tried = "; ".join(
        f"as {'root' if mode == 'root' else 'an ordinary user'}: {said}" for mode, said in refusals.items()
    )
    what = f"this host does not allow the emulated testbed's namespaces ({tried})"
    return SandboxError(what, next_step=_advice(" ".join(refusals.values())))


def _advice(said: str) -> str:
    if "mount /proc" in said or "mount proc" in said:
        return (
            "a PID namespace with its own /proc is refused, as in containers that mask /proc: "
            "run on the host, or start the container with '--privileged'"
        )
    for setting, blocking, fix in _SYSCTLS:
        with suppress(OSError):
            if Path("/proc/sys", *setting.split(".")).read_text().strip() == blocking:
                return f"set 'sysctl {setting}={fix}' or run as root"
    if os.geteuid() == 0:
        return "in a container, start it with '--privileged' or run as an ordinary user; else run on the host"
    return "run it with sudo, or allow unprivileged user namespaces"


_SYSCTLS = (
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "10000"),
)


# --- init (PID 1 inside) -------------------------------------------------------------------------


def _init(lifeline_fd: int, status_fd: int, stderr_fd: int, argv: list[str]) -> NoReturn:
    """Set the namespaces up, start the worker, reap until it ends, end with its exit code."""
    os.dup2(stderr_fd, 2)
    os.close(stderr_fd)
    try:
        _prepare()
        worker = subprocess.Popen(argv)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        os.write(status_fd, json.dumps({"problem": said.strip()}).encode() + b"\n")
        os._exit(3)

    def forward(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, number)

    # PID 1 gets no default actions: without handlers these signals would be dropped.
    for number in termination_signals():
        signal.signal(number, forward)
    threading.Thread(target=_watch_lifeline, args=(lifeline_fd, worker.pid), daemon=True).start()
    os.write(status_fd, b'{"problem": null}\n')
    os.close(status_fd)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == worker.pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _watch_lifeline(fd: int, worker_pid: int) -> None:
    """Forward each signal byte; end everything when the supervisor's end closes."""
    while data := os.read(fd, 1):
        with suppress(ProcessLookupError):
            os.kill(worker_pid, data[0])
    os._exit(128 + signal.SIGKILL)


def _prepare() -> None:
    # `ip netns` keeps its names in /run/netns; a tmpfs of our own makes it writable and private.
    for command in (
        ["mount", "-t", "tmpfs", "-o", "mode=0755,size=64m", "netjoule", "/run"],
        ["ip", "link", "set", "dev", "lo", "up"],
    ):
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    with suppress(OSError):  # kernels before 6.1 have one table for all
        _OWN_TCP_TABLES.write_text(str(_TCP_TABLE_PLACES), encoding="ascii")


if __name__ == "__main__":
    _init(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
