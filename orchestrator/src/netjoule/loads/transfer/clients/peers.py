# SPDX-License-Identifier: Apache-2.0
"""Download programs that people use, each as it comes and with the best flags that are published for it.

What only silences a program, keeps it from a user's settings or names the test CA is no flag of these. Where
a program speaks several HTTP versions, it is told the one that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from netjoule.loads.transfer.clients.task import CA_FILE, MOST_CONNECTIONS, SAVED, Invocation, Task
from netjoule.loads.transfer.private_folder import FOLDER

_LIST = "urls"
CURL_TELLS = "%{size_download} %{time_total} %{num_connects} %{http_version} %{filename_effective}\\n"
"""What curl prints of each file: bytes, seconds, new connections, HTTP version, where it is saved."""
_CURL_TOLD = re.compile(r"^\d+ [\d.]+ (\d+) ([\d.]+) saved/", re.MULTILINE)

_CURL_TRIES = ("--retry", "2", "--retry-all-errors", "--retry-delay", "1")
"""All others try again by themselves where a server closes a connection just as a request is sent on it."""


def _listed(task: Task, *argv: str) -> Invocation:
    """One that reads the URLs from a file, its last argument."""
    lines = "".join(f"{url}\n" for url in task.urls)
    return Invocation([[*argv, f"{FOLDER}/{_LIST}"]], {_LIST: lines})


def wget(task: Task) -> Invocation:
    """wget 1, which has one connection and no flag that would make it faster."""
    return _listed(task, "wget", "--no-config", "-q", "-P", SAVED, f"--ca-certificate={CA_FILE}", "-i")


def wget2(task: Task, *best: str) -> Invocation:
    """wget2: 5 threads, HTTP/2 where the server has it."""
    version = "on" if task.http == "2" else "off"
    own = ("--no-config", "-q", "-P", SAVED, f"--ca-certificate={CA_FILE}", f"--http2={version}")
    return _listed(task, "wget2", *own, *best, "-i")


def wget2_best(task: Task) -> Invocation:
    """As many threads as connections are allowed; over HTTP/2 with its most requests at once."""
    return wget2(task, f"--max-threads={MOST_CONNECTIONS}", "--http2-request-window=30")


def curl(task: Task, *parallel: str) -> Invocation:
    """curl: one file after the other over one connection."""
    version = {"1.1": "--http1.1", "2": "--http2"}[task.http]
    lines = (f'url = "{task.url}/{name}"\noutput = "{SAVED}/{name}"\n' for name in task.files)
    own = ("-q", "-sS", "--fail", "--cacert", CA_FILE, version, "-w", CURL_TELLS, *_CURL_TRIES)
    return Invocation([["curl", *own, *parallel, "-K", f"{FOLDER}/{_LIST}"]], {_LIST: "".join(lines)})


def curl_parallel(task: Task) -> Invocation:
    """curl -Z: 50 files at once, and it waits whether a connection can be shared."""
    return curl(task, "-Z")


def curl_parallel_best(task: Task) -> Invocation:
    """curl -Z that opens connections at once, as many as are allowed."""
    return curl(task, "-Z", "--parallel-immediate", "--parallel-max", str(MOST_CONNECTIONS))


def aria2(task: Task, *best: str) -> Invocation:
    """aria2: 5 files at once, a connection each."""
    own = ("--no-conf", "-q", "-d", SAVED, f"--ca-certificate={CA_FILE}")
    return _listed(task, "aria2c", *own, *best, "-i")


def aria2_best(task: Task) -> Invocation:
    """All connections: as many files at once as there are, and of few files several parts of each at once."""
    at_once, parts = task.shared_out(16)
    return aria2(task, f"-j{at_once}", f"-x{parts}", f"-s{parts}", "-k1M")


def axel(task: Task, *best: str) -> Invocation:
    """axel: one file after the other, each in 4 parts at once."""
    argvs = [["axel", "-q", *best, "-o", f"{SAVED}/{name}", f"{task.url}/{name}"] for name in task.files]
    return Invocation(argvs, environment={"SSL_CERT_FILE": CA_FILE})


def axel_best(task: Task) -> Invocation:
    """16 parts at once."""
    return axel(task, "-n", "16")


def lftp(task: Task) -> Invocation:
    """lftp: one file after the other."""
    return _lftp(f"get1 {task.url}/{name} -o {SAVED}/{name}" for name in task.files)


def lftp_best(task: Task) -> Invocation:
    """All connections: as many files at once as there are, and of few files several parts of each at once."""
    at_once, parts = task.shared_out(16)
    verb = f"pget -n {parts}" if parts > 1 else "get1"
    jobs = (f"queue {verb} {task.url}/{name} -o {SAVED}/{name}" for name in task.files)
    return _lftp((f"set cmd:queue-parallel {at_once}", *jobs, "wait"))


def _lftp(lines: Iterable[str]) -> Invocation:
    script = "".join(f"{line}\n" for line in (f"set ssl:ca-file {CA_FILE}", "set cmd:fail-exit yes", *lines))
    return Invocation([["lftp", "--norc", "-f", f"{FOLDER}/{_LIST}"]], {_LIST: script})


def told_by_curl(stdout: str) -> tuple[int, str] | None:
    """Connections that curl opened, and the HTTP version that it spoke; None of what others print."""
    told = _CURL_TOLD.findall(stdout)
    return (
        (sum(int(connections) for connections, _ in told), max(version for _, version in told))
        if told
        else None
    )
