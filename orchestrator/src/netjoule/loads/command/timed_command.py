# SPDX-License-Identifier: Apache-2.0
"""Runs on the client: starts a command when it is told to, and says when each run of it began and ended.

One file of Python 3.9 and its library, copied to a lab's hosts. One JSON object a line. On stdin the request
{argv, environment, directory, timeout_s, interface, kept_bytes}, then {"go": RUNS} as often as wanted, then
its end. On stdout the events ``ready`` and, after each go, ``report``. While it waits it does nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

_PR_SET_PDEATHSIG = 1  # prctl(2)
_STDERR_BYTES = 4096
_AFTER_EXIT_S = 1.0  # a child of the command may hold its stdout open


class Tail:
    """The last bytes that a pipe gave; it is read to its end, so that nobody waits to write."""

    def __init__(self, pipe: IO[bytes], kept_bytes: int) -> None:
        """Reading begins."""
        self._pipe, self._kept_bytes = pipe, kept_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while part := os.read(self._pipe.fileno(), 65536):
            self._parts.append(part)
            self._size += len(part)
            while self._size - len(self._parts[0]) >= self._kept_bytes:
                self._size -= len(self._parts.pop(0))
                self.cut = True

    def text(self) -> str:
        """What is kept, once the command has ended."""
        self._thread.join(_AFTER_EXIT_S)
        return b"".join(self._parts).decode("utf-8", "replace")


class Group:
    """The process group of a command; it ends with its time, with this program, or by itself."""

    def __init__(
        self, argv: list[str], environment: dict[str, str], directory: str | None, timeout_s: float
    ) -> None:
        """Start it. Raises OSError when it cannot be started."""
        self.timed_out = False
        self.child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=directory,
            preexec_fn=_own_group,  # noqa: PLW1509 - no thread of this program holds a lock that it needs
        )
        signal.signal(signal.SIGTERM, self._terminated)
        self._timer = threading.Timer(timeout_s, self._out_of_time)
        self._timer.daemon = True
        self._timer.start()

    def wait(self) -> tuple[int, Any]:
        """Wait status and getrusage(2) of the command and of all that it waited for."""
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = status  # it has been waited for
        self._timer.cancel()
        return status, usage

    def end(self) -> None:
        """Kill what is left of it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, signal.SIGKILL)

    def _out_of_time(self) -> None:
        self.timed_out = True
        self.end()

    def _terminated(self, *_: object) -> None:
        self.end()
        sys.exit(128 + signal.SIGTERM)


def _own_group() -> None:
    """In the child, before its program: a group of its own, which does not outlive this process's death."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_once(request: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    """Run the command to its end: a run of the contract command_report, with what it printed."""
    before = link_bytes(request["interface"])
    start_ns = time.monotonic_ns()
    group = Group(request["argv"], environment, request["directory"], request["timeout_s"])
    assert group.child.stdout is not None and group.child.stderr is not None
    out, err = Tail(group.child.stdout, request["kept_bytes"]), Tail(group.child.stderr, _STDERR_BYTES)
    status, usage = group.wait()
    end_ns = time.monotonic_ns()
    after = link_bytes(request["interface"])
    known = before is not None and after is not None
    said, errors = out.text(), err.text()
    group.end()  # children that outlived it
    return {
        "start_ns": start_ns,
        "end_ns": end_ns,
        "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "timed_out": group.timed_out,
        "cpu_user_s": usage.ru_utime,
        "cpu_system_s": usage.ru_stime,
        "max_rss_bytes": 1024 * usage.ru_maxrss,
        "sent_bytes": after[0] - before[0] if known else None,  # type: ignore[index]
        "received_bytes": after[1] - before[1] if known else None,  # type: ignore[index]
        "stdout": said,
        "stdout_cut": out.cut,
        "stderr": errors,
    }


def link_bytes(interface: str | None) -> tuple[int, int] | None:
    """Bytes sent and received by an interface so far; None when nobody tells.

    Of this process's network namespace, which /sys may not show.
    """
    try:
        lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    except (OSError, ValueError):
        return None
    counts = {name.strip(): cells.split() for name, _, cells in (line.partition(":") for line in lines)}
    found = counts.get(str(interface))
    return None if found is None else (int(found[8]), int(found[0]))


def say(event: str, **fields: Any) -> None:
    """Write one event."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Serve one request; the exit code."""
    request = json.loads(sys.stdin.readline())
    environment = {**os.environ, **request["environment"]}
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    say("ready")
    for line in sys.stdin:
        runs: list[dict[str, Any]] = []
        for _ in range(json.loads(line)["go"]):
            try:
                runs.append(run_once(request, environment))
            except OSError as error:
                say("error", message=f"cannot start {request['argv'][0]}: {error.strerror or error}")
                return 1
            if runs[-1]["exit_code"] != 0:
                break
        say("report", boot_id=boot_id, runs=runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
