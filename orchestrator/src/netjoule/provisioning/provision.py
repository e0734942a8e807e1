# SPDX-License-Identifier: Apache-2.0
"""``netjoule provision`` and ``netjoule doctor --testbed``: ansible-playbook run, its events read.

The playbooks (ansible/site.yml, verify.yml, teardown.yml) take their inventory from the topology file
itself. What they do comes back as one JSON document per line (ansible/plugins/callback/netjoule_events.py).
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from netjoule.core import programs, secrets
from netjoule.core.errors import RunFailed, UsageError
from netjoule.hosts import child_process
from netjoule.provisioning import inventory
from netjoule.topology import topology
from netjoule.topology.hosts import TopologyHost
from netjoule.topology.topology import Topology

Playbook = Literal["site", "verify", "teardown"]
Event = Mapping[str, Any]

VARIABLES = ("group_vars", "host_vars")
"""Where Ansible looks for more variables, beside a topology."""
_CONTROL_C = 130
_ENDS_WITHIN_S = 20
_SSH_PORT = 22  # known_hosts leaves it out
_WRAPPING = re.compile(
    r"^(Task failed: )?((Action|Module) failed: )?(Failed to connect to the host via ssh: )?"
)
# What Ansible says of its own workings, and ssh in a frame of some lines -> what that is.
_PLAIN = (
    (r".*REMOTE HOST IDENTIFICATION HAS CHANGED.*", "its SSH host key is not the known one"),
    (r"Failed to create temporary directory.*", "no folder for temporary files can be made there"),
    (r"Data could not be sent to remote host.*", "the connection broke off"),
    (r"The module interpreter '(.*?)' was not found.*", r"\1 is not there"),
)
# What ssh, sudo and Python say when a host cannot be used -> what to do about it.
_REMEDIES = (
    (
        r"host key is not the known one",
        "another machine answers there, or a new system: compare its key, then 'ssh-keygen -R {known}'",
    ),
    (
        r"Host key verification failed|host key is known",
        "its key is not in known_hosts: log in once by hand with ssh and compare the fingerprint",
    ),
    (
        r"Permission denied \(|Too many authentication failures",
        "no key of yours is accepted: 'ssh-copy-id', or correct ssh.user and ssh.identity_file",
    ),
    (r"Connection refused", "no sshd answers: install openssh-server there, or correct ssh.port"),
    (
        r"timed out|No route to host|Network is unreachable",
        "is it switched on and on the control network? control_address must be its address there",
    ),
    (r"Could not resolve hostname", "correct control_address in the topology"),
    (
        r"[Mm]issing sudo password|a password is required|not in the sudoers",
        "ssh.become needs sudo without a password; or log in as root (ssh.user: root)",
    ),
    (
        r"python3?(\.\d+)?: (1: )?(command )?not found|python\S* is not there|No python interpreters found",
        "install python3 there",
    ),
    (
        r"No space left on device|temporary files can be made",
        "its disk is full or read-only: see 'df' there, make room and repeat the command",
    ),
    (
        r"[Nn]o package matching|404 +Not Found|(Unable|Failed) to fetch|Failed to update apt cache",
        "can it reach its package server? Try 'apt-get update' there, or install the packages by hand",
    ),
    (
        r"[Cc]ould not get lock|[Ff]ailed to lock apt|is another process using it",
        "another apt runs there: let it end ('ps -C apt,apt-get,dpkg'), then repeat the command",
    ),
    (
        r"no result came back|connection broke off|Shared connection to \S+ closed",
        "was it switched off, or is its memory full ('dmesg' there)? Repeat the command when it is up",
    ),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        testbed: topology file.
        check: say what would change, change nothing.
        limit: a role or a host of the topology; None for all hosts.
        trust_vars: read group_vars and host_vars beside the topology, which may run programs here.
    """

    testbed: Path
    playbook: Playbook = "site"
    check: bool = False
    limit: str | None = None
    trust_vars: bool = False

    @property
    def variables(self) -> list[str]:
        """Folders of variables that stand beside the topology."""
        return [name for name in VARIABLES if (self.testbed.parent / name).is_dir()]


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that failed on a host, and why."""

    host: str
    task: str
    message: str


@dataclass(slots=True)
class Outcome:
    """What a playbook did.

    Attributes:
        of: topology whose hosts it was.
        tasks: tasks and handlers that began, on however many hosts.
        changed: changes by host, hosts without one included.
        seconds: how long it took.
    """

    of: Topology
    tasks: int = 0
    changed: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, event: Event) -> None:
        """Count an event."""
        if event["event"] == "task":
            self.tasks += 1
        elif event["event"] == "result" and event["status"] in ("failed", "unreachable"):
            self.failures.append(Failure(event["host"], event["task"], said(event, self.of)))
        elif event["event"] == "end":
            self.changed = {host: int(counts["changed"]) for host, counts in event["hosts"].items()}


def prepare(request: Request) -> Topology:
    """Read the topology and hold the request to it, before anything is started.

    Raises:
        UsageError: naming the field that does not fit, or what there is instead of an unknown limit.
        HostLacks: when the passphrase's reference leads nowhere and the playbook needs it.
    """
    loaded = topology.load(request.testbed)
    inventory.check_provisionable(loaded)
    roles = {role for name in loaded.hosts for role in loaded.host(name).roles}
    if request.limit is not None and request.limit not in roles | set(loaded.hosts):
        raise UsageError(
            f"--limit {request.limit}: {loaded.name} has no such role or host",
            next_step=f"roles: {', '.join(sorted(roles))}; hosts: {', '.join(loaded.hosts)}",
        )
    if request.playbook == "site" and _joins_the_network(loaded, request.limit):
        secrets.resolve(str(loaded.wifi["passphrase"]), where="wifi.passphrase")
    return loaded


@contextmanager
def written(of: Topology, beside: Path | None) -> Iterator[Path]:
    """A topology as a file, with the variables that stand beside the one that it came from, as they are now.

    They are not copied into a campaign when it begins: what users keep there may be secret.
    """
    with TemporaryDirectory(prefix="netjoule-") as folder:
        testbed = Path(folder) / f"{of.name}.yaml"
        testbed.write_text(json.dumps(of.document), encoding="utf-8")  # JSON is YAML, too
        found = [] if beside is None else [beside / name for name in VARIABLES]
        for variables in filter(Path.is_dir, found):
            (Path(folder) / variables.name).symlink_to(variables.resolve())
        yield testbed


@contextmanager
def by_rig(request: Request) -> Iterator[dict[str, Request]]:
    """The request for each rig that its topology describes, by name; for one without others itself."""
    of = topology.load(request.testbed)
    with ExitStack() as stack:
        if "rigs" not in of.document:
            yield {of.rig: request}
            return
        beside = request.testbed.parent
        yield {
            rig: replace(request, testbed=stack.enter_context(written(of.of_rig(rig), beside)))
            for rig in of.rigs
        }


def _joins_the_network(loaded: Topology, limit: str | None) -> bool:
    """Whether one of the hosts that are meant gets the passphrase."""
    if "passphrase" not in loaded.wifi:
        return False
    roles_of = {name: set(loaded.host(name).roles) for name in loaded.hosts}
    meant = (roles for name, roles in roles_of.items() if limit in {None, name, *roles})
    return any(roles & {"access_point", "client"} for roles in meant)


def run(request: Request, sink: Callable[[Event], None]) -> Outcome:
    """Run a playbook to its end; failures of hosts are in the outcome.

    Args:
        request: see ``prepare``, which is called first.
        sink: takes each event as it happens.

    Raises:
        UsageError: see ``prepare``.
        HostLacks: when this machine has no ansible-playbook or no playbooks.
        RunFailed: when ansible-playbook ends without having come to any host.
    """
    outcome, began = Outcome(prepare(request)), time.monotonic()
    folder = programs.shipped("ansible/site.yml").parent

    def take(event: Event) -> None:
        outcome.take(event)
        sink(event)

    code, stderr = child_process.run_for_events(
        _command(request, folder),
        _environment(folder, request),
        take,
        ask=(signal.SIGTERM,),  # it ends its connections, and has a Ctrl-C of its own already
        grace_s=_ENDS_WITHIN_S,
    )
    outcome.seconds = time.monotonic() - began
    if code == _CONTROL_C:
        raise KeyboardInterrupt
    if code != 0 and not outcome.failures:
        raise RunFailed(f"ansible-playbook: {_last_error(stderr) or f'ended with code {code}'}")
    return outcome


def said(event: Event, of: Topology) -> str:
    """A failure on a host of a topology in one sentence, with what to do where that is known."""
    message = _plainly(event)
    advice = "" if event["check"] else remedy(message, known_as(of.host(event["host"])))
    if event["status"] == "unreachable":
        message = f"cannot be logged in to: {message}"
    return f"{message}; {advice}" if advice else message


def provisioning_helps(event: Event) -> bool:
    """Whether a failure is one that `netjoule provision` may set right: it can use the host at all."""
    return bool(event["check"]) or (event["status"] != "unreachable" and not remedy(_plainly(event), ""))


def remedy(message: str, known: str) -> str:
    """What to do when a host cannot be logged in to or used; empty when nothing is known.

    Args:
        message: what is said of it.
        known: see `known_as`.
    """
    for pattern, advice in _REMEDIES:
        if re.search(pattern, message):
            return advice.format(known=known)
    return ""


def known_as(host: TopologyHost) -> str:
    """What `ssh-keygen -R` is told to forget a host's key: known_hosts names hosts by address (sshd(8))."""
    address, ssh = host.ssh.address, host.ssh
    name = f"{address}" if ssh.port == _SSH_PORT else f'"[{address}]:{ssh.port}"'
    return f'{name} -f "{Path(ssh.known_hosts).expanduser()}"' if ssh.known_hosts else name


def _plainly(event: Event) -> str:
    """What Ansible said of a failure, without its wrapping."""
    message = _WRAPPING.sub("", str(event.get("message") or "failed without an error message")).rstrip(".")
    for pattern, plain in _PLAIN:
        message = re.sub(pattern, plain, message)
    return message


def _command(request: Request, folder: Path) -> list[str]:
    """The command line; secrets are in none of its words."""
    command = [programs.find("ansible-playbook"), "-i", str(request.testbed.resolve())]
    if request.check:
        command.append("--check")
    if request.limit is not None:
        command += ["--limit", request.limit]
    return [*command, str(folder / f"{request.playbook}.yml")]


def _environment(folder: Path, request: Request) -> dict[str, str]:
    """The user's environment, references to secrets included, with Ansible held to the shipped settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return own | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "netjoule_events",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_VARS_ENABLED": "host_group_vars" if request.trust_vars else "",
    }


def _last_error(text: str) -> str:
    """The last complaint on Ansible's stderr, in one line."""
    complaints = [line.strip() for line in text.splitlines() if line.startswith(("[ERROR]", "ERROR"))]
    said = complaints or [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^(\[ERROR\]|ERROR!?):?\s*", "", said[-1]) if said else ""
