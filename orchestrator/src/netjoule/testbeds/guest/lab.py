# SPDX-License-Identifier: Apache-2.0
"""``netjoule guest lab``: three hosts in one guest, reached over SSH like those of a rack.

Access point, client and server are namespaces with an sshd each; radios are mac80211_hwsim's, which carries
frames without air time. This host reaches them through ports of 127.0.0.1 only, with keys that are made for
one boot and removed with it. What is set up inside: testbed/guest/lab.
"""

from __future__ import annotations

import importlib.util
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh
import yaml

from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed, file_errors
from netjoule.testbeds.guest import Network
from netjoule.testbeds.guest import boot as booting
from netjoule.testbeds.guest.machine import Forward
from netjoule.testbeds.guest.run import Request
from netjoule.testbeds.guest.run import run as run_in_guest
from netjoule.testbeds.guest.tools import tool

TOPOLOGY = "testbed-topology.yaml"
ONE_TIME = ("host_key", "host_key.pub", "user_key", "user_key.pub", "known_hosts", "passphrase")
"""Files of the folder that go with the boot."""
_SSH_CONFIG = "ssh_config"
_TEMPLATE = "testbed/guest/lab/topology.yaml"
_PACKAGES = {"hostapd": "hostapd", "wpa_supplicant": "wpasupplicant", "iw": "iw"}


def lab(
    folder: Path,
    network: Network,
    ready: Callable[[Path], None],
    say: Callable[[str], None],
    detail: Callable[[str], None],
    *,
    stop: int | None = None,
) -> None:
    """Boot the lab, tell when it can be used, keep it until it is to stop.

    Args:
        folder: made when missing; gets keys, topology and a configuration for ssh. Keys go when this ends.
        network: radio network of the topology.
        ready: told the topology's path once each sshd answers.
        say: told in one line what takes time.
        detail: told what was chosen, and what the guest writes.
        stop: a descriptor; its end of file ends the lab. None: until Ctrl-C.

    Raises:
        HostLacks: QEMU, the kernel, sshd, hostapd or another program is missing.
        RunFailed: the guest ended by itself.
    """
    words = _command(folder)
    hosts = template()["hosts"]
    ports = dict(zip(hosts, _free_ports(len(hosts)), strict=True))
    topology = furnish(folder, ports, network)
    forwards = [Forward(ports[name], host["control_address"], 22) for name, host in hosts.items()]
    request = Request(words, forwards=forwards, stop=stop)
    try:
        outcome = run_in_guest(
            request, _lines(lambda line: ready(topology) if line == "ready" else detail(line)),
            _lines(detail), say, detail,
        )  # fmt: skip
    finally:
        for name in ONE_TIME:
            with suppress(FileNotFoundError):
                (folder / name).unlink()
    if outcome.exit_code != 0:
        raise RunFailed(
            f"the guest's lab ended with exit code {outcome.exit_code}", next_step="-v shows what it said"
        )


def furnish(folder: Path, ports: Mapping[str, int], network: Network) -> Path:
    """Keys, passphrase, configuration of ssh and topology for one boot; the path of the topology.

    Args:
        folder: readable for this user only afterwards.
        ports: of 127.0.0.1, by host.
        network: what the topology's wifi section says.
    """
    with file_errors("make", folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    folder = folder.resolve()
    for name in ("host_key", "user_key"):
        key = asyncssh.generate_private_key("ssh-ed25519", comment="netjoule-guest")
        key.write_private_key(folder / name)
        (folder / name).chmod(0o600)
        key.write_public_key(folder / f"{name}.pub")
    public = (folder / "host_key.pub").read_text()
    known = "".join(f"[127.0.0.1]:{port} {public}" for port in ports.values())
    (folder / "known_hosts").write_text(known)
    passphrase = folder / "passphrase"
    passphrase.touch(mode=0o600)
    passphrase.write_text(secrets.token_urlsafe(18) + "\n")
    (folder / _SSH_CONFIG).write_text(_ssh_config(folder, ports))
    (folder / TOPOLOGY).write_text(
        "# SPDX-License-Identifier: Apache-2.0\n# Written by `netjoule guest lab` for one boot.\n"
        + yaml.safe_dump(_topology(folder, ports, network), sort_keys=False)
    )
    return folder / TOPOLOGY


def _ssh_config(folder: Path, ports: Mapping[str, int]) -> str:
    hosts = "".join(f"Host {name}\n  Port {port}\n" for name, port in ports.items())
    return (
        f"{hosts}Host *\n  HostName 127.0.0.1\n  User root\n  IdentityFile {folder}/user_key\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n"
    )


def template() -> dict[str, Any]:
    """Hosts and meters of every boot, and the networks that the radio roles are shown with."""
    found: dict[str, Any] = yaml.safe_load(programs.shipped(_TEMPLATE).read_text(encoding="utf-8"))
    return found


def _topology(folder: Path, ports: Mapping[str, int], network: Network) -> dict[str, Any]:
    made = template()
    wifi = made.pop("networks")[network]
    for name, host in made["hosts"].items():
        host["ssh"] = {
            "address": "127.0.0.1",
            "port": ports[name],
            "identity_file": str(folder / "user_key"),
            "known_hosts": str(folder / "known_hosts"),
        }
    for meter in made["meters"]:
        meter["resource"] = str(folder / meter["resource"])
    wifi["passphrase"] = f"file:{folder}/passphrase"
    return {**made, "name": f"guest-{network}", "wifi": wifi}


def _command(folder: Path) -> tuple[str, ...]:
    """What the guest runs, with everything it needs looked for here first."""
    for program, package in _PACKAGES.items():
        tool(program, package)
    # Ansible's library, which its modules need in the guest; only its place is asked for.
    found = importlib.util.find_spec("ansible")
    if found is None or found.origin is None:
        raise HostLacks("no ansible-core in this Python", next_step="run scripts/setup.sh run")
    library = Path(found.origin).parent.parent
    return str(programs.shipped("testbed/guest/lab/up")), str(folder.resolve()), str(library), _sshd()


def _sshd() -> str:
    """sshd's absolute path; tests bring an unpacked one where the package is not installed."""
    root = programs.checkout()
    unpacked = "" if root is None else str(root / ".setup/unpacked/usr/sbin")
    return str(Path(tool("sshd", "openssh-server", unpacked, "guest-test")).resolve())


def _free_ports(count: int) -> list[int]:
    """TCP ports that nobody uses now; QEMU says so when one is taken in between."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _lines(take: Callable[[str], None]) -> booting.Sink:
    """A sink that hands on whole lines."""
    rest = b""

    def sink(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            take(line.decode(errors="replace"))

    return sink
