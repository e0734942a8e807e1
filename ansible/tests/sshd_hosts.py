# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one machine: network namespaces, each with an sshd of its own, and a cable between them.

The test's commands run in the controller's namespace, which reaches the hosts over a control network only::

    controller --- br-control --- tower (192.0.2.1), laptop (192.0.2.2)
    laptop wlan1 === wlan0 tower     (the test's network; a cable here)

Each host has a /run and a /usr/local/bin of its own, in memory; everything else is this machine's. All of it
ends with the standard input of the process that holds it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sshd
import warm_python

CONTROL = {"tower": "192.0.2.1", "laptop": "192.0.2.2"}
_LOGIN_WITHIN_S = 30
_CABLES = """
set -e
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add br-control up type bridge forward_delay 0
ip address add 192.0.2.254/24 dev br-control
"""
_HOST = """
ip netns add {name}
ip link add to-{number} up master br-control type veth peer name eth0 netns {name}
ip -n {name} link set lo up
ip -n {name} link set eth0 up
ip -n {name} address add {address}/24 dev eth0
"""
_TEST_SIDE = """
ip -n tower link add wlan0 up type veth peer name wlan1 netns laptop
ip -n laptop link set wlan1 up
"""
_OWN_FOLDERS = """
mount -t tmpfs tmpfs /usr/local/bin
"""


@dataclass(frozen=True)
class Lab:
    """The hosts while they are up.

    Attributes:
        folder: what sshd said, and a folder of state for each host's stand-ins.
        holder: process whose namespaces are the controller's.
        keys: one for all hosts, and one that all hosts accept.
    """

    folder: Path
    holder: int
    keys: sshd.Keys

    def controller(
        self, *command: str, timeout_s: float = 240, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command where the controller is."""
        inside = ["nsenter", "-t", str(self.holder), *_ENTER, "--", *command]
        own = {"HOME": str(self.folder), "PATH": sshd.search_path()}
        return subprocess.run(
            inside,
            env=os.environ | own | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def on(self, host: str, command: str) -> str:
        """What a command of the shell prints on a host; through its sshd."""
        done = self.controller(*self._ssh(host), command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait_for_logins(self) -> None:
        """Wait until every sshd lets the key in."""
        deadline = time.monotonic() + _LOGIN_WITHIN_S
        for host in CONTROL:
            while (done := self.controller(*self._ssh(host), "true")).returncode != 0:
                assert time.monotonic() < deadline, done.stderr + _log(self.folder, host).read_text()

    def _ssh(self, host: str) -> list[str]:
        files = ["-i", str(self.keys.user), "-o", f"UserKnownHostsFile={self.keys.known_hosts}"]
        return ["ssh", "-F", "none", "-o", "BatchMode=yes", *files, f"root@{CONTROL[host]}"]


# A real root keeps its user namespace. Everyone else needs a range of user numbers (newuidmap, of the package
# uidmap): sshd gives up its rights to a user of its own, which a namespace with one user does not have.
_AS_ROOT = os.geteuid() == 0
_UNSHARE = ["unshare", *([] if _AS_ROOT else ["-U", "--map-auto", "--map-root-user"]), "-mnpf"]
_ENTER = ["-m", "-n", "-p", *([] if _AS_ROOT else ["-U", "--setuid=0", "--setgid=0"])]


@contextmanager
def lab(folder: Path, stand_ins: Path, environment: dict[str, str]) -> Iterator[Lab]:
    """The hosts up, logins tried.

    Args:
        folder: for keys and state.
        stand_ins: folder that comes first in the search path of the hosts.
        environment: of every command on the hosts; `{host}` in a value is the host's name.
    """
    keys = sshd.make_keys(folder / "keys", list(CONTROL.values()))
    script = _CABLES + "".join(
        _HOST.format(name=name, number=number, address=address)
        for number, (name, address) in enumerate(CONTROL.items())
    )
    script += _TEST_SIDE + "".join(_serve(folder, keys, stand_ins, environment, name) for name in CONTROL)
    command = [*_UNSHARE, "--mount-proc", "--kill-child", "sh", "-c", script + "echo ready; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outer:
        assert outer.stdout is not None
        assert outer.stdout.readline() == "ready\n", "the namespaces did not come up; see above"
        inner = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        up = Lab(folder, int(inner[0]), keys)
        up.wait_for_logins()
        yield up


def _serve(folder: Path, keys: sshd.Keys, stand_ins: Path, environment: dict[str, str], name: str) -> str:
    """Shell that starts the sshd of a host."""
    (folder / "state" / name).mkdir(parents=True)
    own = {"PATH": f"{stand_ins}:/usr/local/bin:{sshd.search_path()}"} | environment
    own |= warm_python.environment(warm := folder / f"warm-{name}")
    values = {key: value.format(host=name) for key, value in own.items()}
    conf = sshd.configuration(keys, CONTROL[name], 22, folder / f"cache-{name}", **values)
    more = _OWN_FOLDERS + warm_python.start(warm, **values)
    start = shlex.join(["ip", "netns", "exec", name, *sshd.as_root(conf, more=more)])
    return f"{start} </dev/null >{_log(folder, name)} 2>&1 &\n"


def _log(folder: Path, name: str) -> Path:
    return folder / f"sshd-{name}.log"
