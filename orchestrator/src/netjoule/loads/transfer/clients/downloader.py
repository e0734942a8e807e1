# SPDX-License-Identifier: Apache-2.0
"""Runs on the client: starts download programs when told to, and holds what they saved to what was served.

One file of Python 3.9 and its library, copied to a lab's hosts. One JSON object a line. On stdin the request
{folder, fill, argvs, files, environment, version_argv, interface, timeout_s, quiet_s}, then {"go":
RUNS} as often as wanted, then its end. On stdout the events ``ready`` and, after each go, ``report``, or
``error``. While it waits it does nothing.

It is started in a private folder (private_folder.py), where a run's programs have a working directory of
their own with a folder ``saved``. What was served is written anew beside it, sparse, and compared once the
last run's tail is over (quiet_s): comparing takes power that no run is to have.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 2**20
_KEPT_BYTES = 2**20
_LAST_WORDS = 400
_OPENED = "ActiveOpens"


class Failed(Exception):
    """What went wrong, in a sentence."""


def say(event: str, **fields: Any) -> None:
    """Write one event."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def ask(argv: list[str], **options: Any) -> str:
    """What a short program prints, on stdout and stderr. Raises Failed with its last line."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            **options,
        )
    except OSError as error:
        raise Failed(f"cannot start {argv[0]}: {error.strerror}") from error
    said: str = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        last = (said.splitlines() or ["without an error message"])[-1]
        raise Failed(f"{Path(argv[0]).name} ended with code {done.returncode}: {last}")
    return said


# -- counters of this network namespace ------------------------------------------------------------


def opened() -> int:
    """TCP connections that this host has opened so far."""
    names, counts = (
        line.split()
        for line in Path("/proc/self/net/snmp").read_text(encoding="ascii").splitlines()
        if line.startswith("Tcp:")
    )
    return int(counts[names.index(_OPENED)])


def link_bytes(interface: str | None) -> tuple[int, int] | None:
    """Bytes sent and received by an interface so far; None when nobody tells."""
    lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    counts = {name.strip(): cells.split() for name, _, cells in (line.partition(":") for line in lines)}
    found = counts.get(str(interface))
    return None if found is None else (int(found[8]), int(found[0]))


# -- a run -----------------------------------------------------------------------------------------


class Programs:
    """The programs of one run, one after the other, until one fails or time is over.

    Attributes:
        cpu_s: of all of them and of all that they waited for.
        problem: how one failed, in words; empty when none did.
    """

    def __init__(self, request: dict[str, Any], place: Path) -> None:
        """`place`: their working directory."""
        self._argvs, self._place = request["argvs"], place
        self._environment = {**os.environ, **request["environment"]}
        self._end_s = time.monotonic() + request["timeout_s"]
        self.cpu_s, self.problem = 0.0, ""

    def run(self, said: Any, errors: Any) -> None:
        """Run them; what they print goes to two files."""
        for argv in self._argvs:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                env=self._environment,
                cwd=self._place,
                preexec_fn=os.setsid,  # noqa: PLW1509 - no thread of this program holds a lock that it needs
            )
            self._wait(child, Path(argv[0]).name)
            if self.problem:
                return

    def _wait(self, child: subprocess.Popen[bytes], name: str) -> None:
        left_s = max(0.0, self._end_s - time.monotonic())
        timer = threading.Timer(left_s, os.killpg, (child.pid, signal.SIGKILL))
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status  # it has been waited for
        timer.cancel()
        self.cpu_s += usage.ru_utime + usage.ru_stime
        if time.monotonic() >= self._end_s:
            self.problem = f"{name} did not end in time"
        elif os.WIFSIGNALED(status):
            self.problem = f"{name} was killed by signal {os.WTERMSIG(status)}"
        elif os.WEXITSTATUS(status):
            self.problem = f"{name} ended with code {os.WEXITSTATUS(status)}"


def run_once(request: dict[str, Any], place: Path) -> dict[str, Any]:
    """Fetch the files once: a run of the contract transfer_runs, with what the programs printed."""
    (place / "saved").mkdir()
    programs = Programs(request, place)
    with tempfile.TemporaryFile(dir=place) as said, tempfile.TemporaryFile(dir=place) as errors:
        opened_before, before = opened(), link_bytes(request["interface"])
        start_ns = time.monotonic_ns()
        programs.run(said, errors)
        end_ns = time.monotonic_ns()
        after, opened_after = link_bytes(request["interface"]), opened()
        words = tail(errors, _LAST_WORDS).strip().splitlines()
        stdout = tail(said, _KEPT_BYTES)
    known = before is not None and after is not None
    problem = programs.problem
    return {
        "start_ns": start_ns,
        "end_ns": end_ns,
        "cpu_s": programs.cpu_s,
        "connections_opened_n": opened_after - opened_before,
        "received_bytes": after[1] - before[1] if known else None,  # type: ignore[index]
        "problem": f"{problem}: {words[-1].strip()}" if problem and words else problem,
        "stdout": stdout,
    }


def tail(file: Any, most: int) -> str:
    """The last bytes of a file, as text."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - most))
    return str(file.read().decode("utf-8", "replace"))


# -- what was saved --------------------------------------------------------------------------------


def verified(expected: Path, saved: Path, files: list[dict[str, Any]]) -> dict[str, Any]:
    """How many files, and bytes of them, arrived as they were served; a sentence for each other one."""
    failures = []
    right_bytes = 0
    for file in files:
        why = difference(expected / file["name"], saved / file["name"])
        if why:
            failures.append({"file": file["name"], "code": why[0], "sentence": why[1]})
        else:
            right_bytes += file["size_bytes"]
    right = len(files) - len(failures)
    return {"files_n": len(files), "files_verified_n": right, "bytes": right_bytes, "failures": failures}


def difference(expected: Path, saved: Path) -> tuple[str, str] | None:
    """How a saved file differs from the one that was served, as code and sentence; None when it does not."""
    if not saved.is_file():
        return "missing", "it was not saved"
    wanted, found = expected.stat().st_size, saved.stat().st_size
    if wanted != found:
        return "wrong_length", f"it has {found} bytes, not {wanted}"
    with expected.open("rb") as one, saved.open("rb") as other:
        for number in range(0, wanted, _BLOCK_BYTES):
            if one.read(_BLOCK_BYTES) != other.read(_BLOCK_BYTES):
                return "wrong_bytes", f"it differs within {_BLOCK_BYTES} bytes behind byte {number}"
    return None


def serve(request: dict[str, Any]) -> None:
    """Get ready, then run and report as often as is asked. Raises Failed."""
    folder = Path(request["folder"])
    for name, text in request["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    expected = folder / "expected"
    expected.mkdir()
    ask(request["fill"], cwd=expected)
    files = json.loads((expected / "manifest.json").read_text(encoding="utf-8"))["files"]
    say("ready", version=ask(request["version_argv"]).partition("\n")[0])
    for line in sys.stdin:
        places = [Path(tempfile.mkdtemp(dir=folder)) for _ in range(json.loads(line)["go"])]
        runs = {place: run_once(request, place) for place in places}
        time.sleep(request["quiet_s"])  # the tail belongs to the measurement, and is to be idle
        told = [run | verified(expected, place / "saved", files) for place, run in runs.items()]
        for place in places:
            shutil.rmtree(place)
        say("report", runs=told)


def main() -> int:
    """Serve one request; the exit code."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    request = json.loads(sys.stdin.readline())
    try:
        serve(request)
    except (Failed, OSError) as error:
        say("error", message=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
