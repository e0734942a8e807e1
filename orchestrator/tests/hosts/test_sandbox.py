# SPDX-License-Identifier: Apache-2.0
"""The sandbox holds, forwards, and leaves nothing, as root and as an ordinary user."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sandbox_processes import host_state, parent, pid_inside, pids_in, wait_gone

from netjoule.hosts import sandbox

pytestmark = pytest.mark.netns

PACKAGE = Path(sandbox.__file__).parents[1]
OUTER = """
import sys
from netjoule.core import errors
from netjoule.hosts import sandbox
try:
    sys.exit(sandbox.run_inside(sys.argv[1:]))
except errors.NetjouleError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
# The worker makes what a campaign makes, says where it lives, then waits for its end.
WORKER = """
ip netns add client && ip netns add server &&
ip link add v0 netns client type veth peer name v0 netns server || exit 1
sleep 1000 &
echo "$(readlink /proc/self/ns/pid)"
exec sleep 1000
"""


@dataclass
class Outside:
    """How to start the supervisor as some user."""

    mode: str
    command: list[str]
    env: dict[str, str]
    cwd: Path
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def start(self, *argv: str, stdin: int | None = None) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*self.command, *argv],
            env=self.env,
            cwd=self.cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *argv: str, input_text: str = "") -> "subprocess.CompletedProcess[str]":
        process = self.start(*argv, stdin=subprocess.PIPE)
        out, err = process.communicate(input_text, timeout=120)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)


@pytest.fixture(params=["root", "rootless"])
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outside]:
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("this test run is not root")
    command = [sys.executable, "-c", OUTER]
    env = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    start_as_nobody = request.param == "rootless" and os.geteuid() == 0
    found = as_nobody(tmp_path) if start_as_nobody else Outside(request.param, command, env, tmp_path)
    yield found
    for process in found.started:
        process.kill()  # a failed test must not leave its sandbox behind
        process.communicate()


def as_nobody(tmp_path: Path) -> Outside:
    """An ordinary user, who may not be able to read this checkout or its interpreter: a copy for them."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    assert python is not None, "no system python3 for the ordinary user"
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and Path("/tmp") in folder.parents:
            folder.chmod(0o755)
    shutil.copytree(PACKAGE, tmp_path / "netjoule", ignore=shutil.ignore_patterns("__pycache__"))
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    return Outside("rootless", [*user, python, "-c", OUTER], env, tmp_path)


@dataclass
class Running:
    process: "subprocess.Popen[str]"
    pid_ns: str

    def pids(self) -> list[int]:
        return pids_in(self.pid_ns)

    def init(self) -> int:
        return next(p for p in self.pids() if pid_inside(p) == 1)


@pytest.fixture
def running(outside: Outside) -> Iterator[Running]:
    process = outside.start("sh", "-c", WORKER)
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line.startswith("pid:["), process.communicate()
    found = Running(process, line)
    # Held open, so that no other test's namespace gets the same number once this one has ended.
    held = os.open(f"/proc/{found.init()}/ns/pid", os.O_RDONLY)
    yield found
    os.close(held)


def test_the_worker_sees_namespaces_of_its_own(outside: Outside) -> None:
    before = host_state()
    script = 'ip netns add c; echo "$NETJOULE_SANDBOX $(id -u) $(ls /run) $(ip -j link) $PPID"'
    done = outside.run("sh", "-c", script)
    assert done.returncode == 0, done.stderr
    mode, uid, run_entries, rest = done.stdout.split(maxsplit=3)
    assert (mode, uid, run_entries) == (outside.mode, "0", "netns")
    links, ppid = rest.rsplit(maxsplit=1)
    assert [link["ifname"] for link in json.loads(links)] == ["lo"]
    assert "UP" in json.loads(links)[0]["flags"]
    assert ppid == "1"
    assert host_state() == before


def test_stdio_and_exit_code_pass_through(outside: Outside) -> None:
    done = outside.run("sh", "-c", "cat; echo to-stderr >&2; exit 7", input_text="to-stdin")
    assert (done.returncode, done.stdout, done.stderr) == (7, "to-stdin", "to-stderr\n")


def test_a_worker_that_dies_of_a_signal_gives_128_plus_its_number(outside: Outside) -> None:
    assert outside.run("sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_orphans_are_reaped_while_the_worker_runs(outside: Outside) -> None:
    # The grandchild outlives its parent, ends, and must not stay as a zombie.
    script = (
        "(sh -c 'echo $$ >/run/new; mv /run/new /run/orphan' &);"
        "while [ ! -s /run/orphan ]; do :; done;"
        "while kill -0 $(cat /run/orphan) 2>/dev/null; do :; done"
    )
    assert outside.run("timeout", "60", "sh", "-c", script).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_worker_once(outside: Outside, number: signal.Signals) -> None:
    script = (
        "import signal, sys\n"
        f"one = {{{int(number)}}}\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, one)\n"
        "print('ready', flush=True)\n"
        "signal.sigwait(one)\n"
        "sys.exit(41 if signal.sigtimedwait(one, 0.3) is None else 42)\n"
    )
    process = outside.start("python3", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(timeout=60) == 41
    process.communicate()


def test_a_hangup_that_nohup_keeps_away_ends_nothing(outside: Outside) -> None:
    script = "import signal; print(signal.getsignal(signal.SIGHUP).name, flush=True); input()"
    outside.command.insert(0, "nohup")
    process = outside.start("python3", "-c", script, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "SIG_IGN\n"
    process.send_signal(signal.SIGHUP)
    process.communicate("\n", timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("victim", ["supervisor", "unshare", "init", "worker"])
def test_kill_9_of_any_part_leaves_nothing(running: Running, victim: str) -> None:
    before = host_state()
    pids = running.pids()
    assert len(pids) >= 3
    init = running.init()
    unshare = parent(init)
    choose: dict[str, Callable[[], int]] = {
        "supervisor": lambda: running.process.pid,
        "unshare": lambda: unshare,
        "init": lambda: init,
        "worker": lambda: next(p for p in pids if parent(p) == init),
    }
    os.kill(choose[victim](), signal.SIGKILL)
    wait_gone([*pids, unshare, running.process.pid])
    assert running.pids() == []
    assert host_state() == before
    assert running.process.wait(timeout=60) == (-9 if victim == "supervisor" else 128 + 9)


def test_a_refusal_says_what_the_system_said_and_what_to_change() -> None:
    # User namespaces set to none, inside a user namespace so that the host keeps its setting.
    script = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script + '"$@"', "-"]
    done = subprocess.run(
        [*command, sys.executable, "-c", OUTER, "true"],
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
    assert "sysctl user.max_user_namespaces=10000" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# Root may mount a fresh /proc in spite of masks.
@pytest.mark.parametrize("outside", ["rootless"], indirect=True)
def test_a_masked_proc_is_named(outside: Outside) -> None:
    # As in a container that mounts something over parts of /proc: a fresh proc mount is then refused.
    command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc/tty && exec "$@"', "-"]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    done = subprocess.run(
        [*command, *outside.command, "true"],
        env=outside.env,
        cwd=outside.cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 3
    assert "PID namespace with its own /proc is refused" in done.stderr


def test_probe_tries_and_tells_the_mode() -> None:
    assert sandbox.probe() == ("root" if os.geteuid() == 0 else "rootless")


def test_paths_under_run_are_hidden(tmp_path: Path) -> None:
    assert sandbox.hidden_by_sandbox(Path("/run/user/0/results"))
    assert sandbox.hidden_by_sandbox(Path("/run"))
    assert not sandbox.hidden_by_sandbox(tmp_path)
    assert not sandbox.hidden_by_sandbox(Path("/runs/a"))


def test_a_process_outside_is_not_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sandbox.ENV_INSIDE, "root")
    assert sandbox.inside() is None  # the variable alone proves nothing
