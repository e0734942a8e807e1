# SPDX-License-Identifier: Apache-2.0
"""A Python that is warm: each program it is asked for runs in a copy of it (fork).

Under software emulation an Ansible module of 30 ms takes 8 s, nearly all of it in compiling and loading the
same library again. Here the library is loaded once, from the controller's own installation, which the guest
sees. ``python`` beside this file asks: one line with its process number into the pipe ask; standard streams
are then taken from that process (pidfd_getfd(2)), and the exit code is written into the pipe of that number.

Usage: warm.py FOLDER LIBRARY; FOLDER holds the pipe ask, LIBRARY is the folder that holds ansible.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from pathlib import Path

_PIDFD_GETFD = 438
_LOADED = ("basic", "_internal._ansiballz._loader", "common.file", "common.process", "facts.system.chroot")


def load(library: str) -> None:
    """What nearly every module of Ansible imports, compiled files of the same version as the controller's."""
    import importlib

    sys.path.append(library)
    for name in _LOADED:
        importlib.import_module(f"ansible.module_utils.{name}")
    sys.path.remove(library)  # what else is needed of ansible is found beside what is loaded


def take_streams(asker: int) -> None:
    """Make the asking process's standard streams ours; also a socket, which /proc/PID/fd cannot open."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    pidfd = os.pidfd_open(asker)
    for stream in range(3):
        got = syscall(_PIDFD_GETFD, pidfd, stream, 0)
        if got < 0:
            raise OSError(ctypes.get_errno(), f"pidfd_getfd of {asker}")
        os.dup2(got, stream)
        os.close(got)
    os.close(pidfd)


def run(asker: int) -> int:
    """Run the program on the asking process's standard input; its exit code."""
    take_streams(asker)
    source = sys.stdin.buffer.read()
    try:
        exec(compile(source, "<stdin>", "exec"), {"__name__": "__main__"})  # noqa: S102  # its job
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def serve(folder: Path) -> None:
    """One fork for each line of the pipe, for ever."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Opened for both, so that it does not end with an asker.
    with os.fdopen(os.open(folder / "ask", os.O_RDWR), "rb", buffering=0) as ask:
        while True:
            for line in ask.read(4096).splitlines():
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    code = run(int(line))
                    sys.stdout.flush()
                    sys.stderr.flush()
                    (folder / line.decode()).write_text(f"{code}\n")
                    os._exit(0)


if __name__ == "__main__":
    load(sys.argv[2])
    serve(Path(sys.argv[1]))
