# SPDX-License-Identifier: Apache-2.0
"""The guest's lab as its tests use it: logged in to by ssh, provisioned by ansible-playbook."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from netjoule.provisioning.provision import Outcome
from netjoule.testbeds.guest.lab import TOPOLOGY, Network, template
from netjoule.topology.topology import load

ROOT = Path(__file__).resolve().parents[4]
PLAYBOOK = ROOT / "testbed/guest/lab/radio.yml"
ANSIBLE = ROOT / "ansible"
PROGRAMS = Path(sys.executable).parent
# Far more than is needed: other programs may keep the host's cores busy.
COMMAND_S = 240
PLAY_S = 900
PLAYED: list[str] = []
"""Each play of this session with its tasks and seconds; pytest's summary prints them."""


@dataclass(frozen=True)
class GuestLab:
    """A running lab.

    Attributes:
        folder: keys and topology.
        sockets: for the sockets of shared SSH connections, whose paths must be short.
    """

    folder: Path
    sockets: Path

    def topology(self, network: Network, name: str = "", **wifi: Any) -> Path:
        """The lab's topology with another network, and with changes to it in a file of this name."""
        document = yaml.safe_load((self.folder / TOPOLOGY).read_text())
        document["wifi"] = {
            **template()["networks"][network],
            "passphrase": document["wifi"]["passphrase"],
            **wifi,
        }
        path = self.folder / f"{name or network}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    def ssh(self, host: str, *words: str) -> list[str]:
        """The command line that runs `words` on a host."""
        options = [
            "-o",
            "ControlMaster=auto",
            "-o",
            "ControlPersist=300",
            "-o",
            f"ControlPath={self.sockets}/%n",
        ]
        return ["ssh", "-F", str(self.folder / "ssh_config"), *options, host, shlex.join(words)]

    def ask(self, host: str, *words: str) -> str:
        """What a program on a host says; it must succeed."""
        ended = subprocess.run(
            self.ssh(host, *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert ended.returncode == 0, f"{host}: {shlex.join(words)}: {ended.stderr}"
        return ended.stdout

    @contextlib.contextmanager
    def running(self, host: str, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A program on a host that ends with its standard input."""
        with subprocess.Popen(
            self.ssh(host, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            try:
                yield process
            finally:
                process.stdin.close()
                process.wait(COMMAND_S)

    def play(self, topology: Path, entry: str = "main", *options: str, playbook: Path = PLAYBOOK) -> Outcome:
        """Run the radio roles on access point and client; says how many tasks and seconds that took."""
        outcome = Outcome(load(topology))
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
        } | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "netjoule_events",
            "ANSIBLE_PYTHON_INTERPRETER": str(ROOT / "testbed/guest/lab/python"),
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=300",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.sockets),
            "ANSIBLE_TIMEOUT": "120",
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "ansible"),
        }
        command = ["ansible-playbook", "-i", str(topology), "-e", f"entry={entry}", *options, str(playbook)]
        ended, outcome.seconds = timed(command, environment)
        for line in ended.stdout.splitlines():
            if line.startswith("{"):
                outcome.take(json.loads(line))
        assert ended.returncode == 0 or outcome.failures, ended.stdout + ended.stderr
        PLAYED.append(f"{entry} of {topology.stem}: {outcome.tasks} tasks in {outcome.seconds:.0f} s")
        return outcome


def timed(
    command: Sequence[str], environment: dict[str, str]
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a program to its end; how it ended and the seconds it took."""
    began_s = time.monotonic()
    ended = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PLAY_S,
        check=False,
    )
    return ended, time.monotonic() - began_s


@contextlib.contextmanager
def booted(folder: Path) -> Iterator[GuestLab]:
    """`netjoule guest lab` until the block ends."""
    command = [str(PROGRAMS / "netjoule"), "guest", "lab", str(folder)]
    with (
        tempfile.TemporaryDirectory(prefix="nj-") as sockets,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "the lab is ready" in said, "netjoule guest lab ended; its words are above"
        try:
            yield GuestLab(folder, Path(sockets))
        finally:
            process.stdin.close()
            process.wait(30)
    assert process.returncode == 0
    assert not (folder / "user_key").exists()
