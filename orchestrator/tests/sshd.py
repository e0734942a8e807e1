# SPDX-License-Identifier: Apache-2.0
"""sshd for tests, with keys made for one test: on a loopback port, or in a network namespace.

Keys and sshd itself are here, for the tests of ansible/ too; hosts and cables are in two_host_lab
and in ansible/tests/sshd_hosts.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER = pwd.getpwuid(os.getuid()).pw_name
READY_S = 20.0
_NO_BASHRC = """
home=$(getent passwd 0 | cut -d: -f6)
if [ -e "$home/.bashrc" ]; then mount --bind /dev/null "$home/.bashrc"; fi
"""
"""bash reads ~/.bashrc for every command over SSH. What it does is not of the test: one that waits for a lock
which a killed shell has left makes each command take a minute."""


def search_path() -> str:
    """Where programs are looked for: a daemon may be unpacked, not installed (scripts/setup.sh test)."""
    unpacked = ROOT / ".setup/unpacked/usr"
    places = [Path(sys.executable).parent, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
    return ":".join(map(str, [*places, unpacked / "sbin", unpacked / "bin"]))


def find_sshd() -> str:
    """Its path; sshd insists on an absolute one."""
    found = shutil.which("sshd", path=search_path())
    if found is None:
        pytest.fail("no sshd here: 'scripts/setup.sh test' unpacks one, or install openssh-server")
    return found


@dataclass(frozen=True)
class Keys:
    """A host key, a user's key and the known_hosts file of the hosts that have that host key."""

    folder: Path

    @property
    def host(self) -> Path:
        return self.folder / "host"

    @property
    def user(self) -> Path:
        return self.folder / "user"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def ssh(self, port: int) -> dict[str, Any]:
        """The section `ssh` of a host in the topology."""
        return {
            "user": USER,
            "port": port,
            "identity_file": str(self.user),
            "known_hosts": str(self.known_hosts),
        }


def make_keys(folder: Path, hosts: Sequence[str]) -> Keys:
    """Keys, known for `hosts` as in a known_hosts file: ADDRESS or [ADDRESS]:PORT."""
    keys = Keys(folder)
    folder.mkdir()
    for key in (keys.host, keys.user):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = keys.host.with_suffix(".pub").read_text()
    keys.known_hosts.write_text("".join(f"{host} {public}" for host in hosts))
    return keys


def configuration(keys: Keys, address: str, port: int, cache: Path, **environment: str) -> Path:
    """A configuration that lets this user in with its key; programs' caches go to `cache`.

    `environment` goes to every command of a session.
    """
    path = keys.folder / f"sshd-{address}-{port}.conf"
    values = {"XDG_CACHE_HOME": str(cache), "PATH": search_path()} | environment
    words = " ".join(f"{key}={value}" for key, value in values.items())
    path.write_text(
        f"ListenAddress {address}\nPort {port}\nHostKey {keys.host}\n"
        f"AuthorizedKeysFile {keys.user}.pub\nPidFile none\nStrictModes no\nUsePAM no\nUseDNS no\n"
        f"PasswordAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\n"
        f"Subsystem sftp internal-sftp\nSetEnv {words}\n"
    )
    return path


def command(conf: Path, *, own_run: bool = True) -> list[str]:
    """sshd in the foreground; root's has mounts of its own."""
    return as_root(conf, own_run=own_run) if os.geteuid() == 0 else [find_sshd(), "-D", "-e", "-f", str(conf)]


def as_root(conf: Path, *, own_run: bool = True, more: str = "") -> list[str]:
    """sshd of root, or of a user namespace's root, in the foreground and with mounts of its own.

    It gets a /run with what it wants there, its unprivileged user where the host has none (an unpacked sshd),
    no .bashrc, and what `more`, shell commands, mounts.
    """
    prepare = ["mount -t tmpfs tmpfs /run", "mkdir -m 1777 /run/lock"] if own_run else []
    prepare.append("mkdir -p -m 755 /run/sshd")
    if "sshd" not in {entry.pw_name for entry in pwd.getpwall()}:
        users = conf.with_suffix(".passwd")
        users.write_text(
            Path("/etc/passwd").read_text() + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
        )
        prepare.append(f"mount --bind {users} /etc/passwd")
    script = "\n".join(["set -e", *prepare, _NO_BASHRC, more, 'exec "$@"'])
    return ["unshare", "--mount", "sh", "-c", script, "sh", find_sshd(), "-D", "-e", "-f", str(conf)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(argv: Sequence[str], address: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """sshd until the block ends; begins when it answers."""
    log = Path(argv[-1]).with_suffix(".log")  # a pipe would stay open as long as any session's program
    with log.open("ab") as stderr:
        process = subprocess.Popen(argv, stderr=stderr)
    try:
        wait_for_answer(process, address, port, log)
        yield process
    finally:
        process.terminate()
        process.wait(READY_S)


def wait_for_answer(process: subprocess.Popen[bytes], address: str, port: int, log: Path) -> None:
    end_s = time.monotonic() + READY_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > end_s:
            process.kill()
            raise AssertionError(f"sshd does not answer: {log.read_text()}")
        time.sleep(0.02)
