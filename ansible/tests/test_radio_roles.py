# SPDX-License-Identifier: Apache-2.0
"""access_point and wifi_client converge, change nothing twice, pass check mode, and keep the passphrase.

They run in a network namespace of their own, where recorded answers stand for the radio (programs/).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import warm_python
from networks import MODERN, SEED_2013
from render import ANSIBLE, PASSPHRASE, RECORDED

HERE = Path(__file__).resolve().parent
PROGRAMS = ("iw", "hostapd", "hostapd_cli", "wpa_supplicant", "wpa_cli")
NETWORKS = {
    "ht40": SEED_2013 | {"country": "US", "tx_power_dbm": 15},
    "vht80": MODERN | {"forwarding": "routing", "tx_power_dbm": 15},
}
MASKS = {
    "ht40": "ht-mcs-5 10 lgi-5",
    "vht80": f"ht-mcs-5 {' '.join(map(str, range(16)))} vht-mcs-5 1:0-9 2:0-9",
}
# What a radio that the host no longer has left behind.
OLD_SCRIPT = 'echo "$1" >>"$0.called"; rm "$0"\n'
OF_ROLE = {"access_point": ("wlan0", "hostapd"), "wifi_client": ("wlan1", "wpa_supplicant")}
# wlan0 and wlan1 are ends of a cable here. The namespaces live until standard input closes.
SET_UP = (
    "mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; "
    "ip link add wlan0 up type veth peer name wlan1; ip link set wlan1 up; echo ready; cat"
)
ADDRESSES = {
    "access_point_addresses": ["10.77.0.1/24", "fd77::1/64"],
    "access_point_wired_interface": "wlan1",
    "wifi_client_addresses": ["10.77.0.2/24"],
    "wifi_client_routes": [{"to": "10.78.0.0/24", "via": "10.77.0.1"}],
}


@dataclass(frozen=True)
class Outcome:
    """What one play did."""

    exit_code: int
    changed: int
    text: str
    message: str


@dataclass(frozen=True)
class Host:
    """One host under one role, with its recorded radio."""

    role: str
    network: str
    folder: Path
    namespace: int

    def play(
        self, entry: str = "main", *options: str, more: dict[str, Any] | None = None, **wifi: Any
    ) -> Outcome:
        """Run an entry of the role, with `more` variables, on a network that is changed by `wifi`."""
        interface, _ = OF_ROLE[self.role]
        programs = {f"{self.role}_{name}": str(self.folder / "bin" / name) for name in PROGRAMS}
        variables = (
            programs
            | ADDRESSES
            | {
                "test_role": self.role,
                "test_entry": entry,
                "ansible_connection": "local",
                "ansible_python_interpreter": warm_python.INTERPRETER,
                "netjoule_radio_interface": interface,
                "netjoule_service_manager": "none",
                "netjoule_wifi": NETWORKS[self.network] | wifi,
                "radio_iw": str(self.folder / "bin/iw"),
                "radio_run_dir": str(self.folder / "run"),
                "radio_install_packages": False,
                "wifi_client_associate_within_s": 3,
            }
        )
        file = self.folder / "variables.json"
        file.write_text(json.dumps(variables | (more or {})))
        file.chmod(0o600)
        playbook = shutil.which("ansible-playbook", path=_path()) or "ansible-playbook"
        command = [*self._inside, playbook, "-i", "host,", "-e", f"@{file}", str(HERE / "play.yml"), *options]
        done = subprocess.run(
            command,
            env=environment(self.folder, self.network),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        text = done.stdout + done.stderr
        changed = re.search(r"host +: ok=\d+ +changed=(\d+)", text)
        return Outcome(done.returncode, int(changed[1]) if changed else -1, text, _message(text))

    def says(self, *command: str) -> str:
        """What a command prints on the host."""
        return subprocess.run([*self._inside, *command], capture_output=True, text=True, check=True).stdout

    def ip(self, *words: str) -> str:
        """What ip says in the host's namespace."""
        return self.says("ip", *words)

    def old_radio(self, interface: str) -> Path:
        """The script of a radio that the topology once named; `.called` has what it was asked."""
        script = self.folder / f"run/radio-{interface}.sh"
        script.parent.mkdir(exist_ok=True)
        script.write_text(OLD_SCRIPT)
        return script

    @property
    def _inside(self) -> list[str]:
        return ["nsenter", "-t", str(self.namespace), "-U", "-m", "-n", "--preserve-credentials"]

    def state(self, name: str) -> str:
        file = self.folder / "state" / name
        return file.read_text() if file.exists() else ""

    @property
    def configuration(self) -> Path:
        interface, daemon = OF_ROLE[self.role]
        return self.folder / "run" / f"{daemon}-{interface}.conf"


def environment(folder: Path, network: str) -> dict[str, str]:
    """Of the plays and of the host, whose files are in the folder."""
    own = {
        "PATH": f"{folder}/bin:{_path()}",
        "PYTHONPATH": str(ANSIBLE.parent / "testbed/radio/src"),
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "NETJOULE_TEST_STATE": str(folder / "state"),
        "NETJOULE_TEST_DATA": str(RECORDED),
        "NETJOULE_TEST_NETWORK": network,
    }
    return os.environ | own | warm_python.environment(folder / "warm")


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"


def _message(text: str) -> str:
    found = re.search(r"\[ERROR\]: (.*)|\"msg\": \"(.*)\"", text)
    return (found[1] or found[2]) if found else ""


@pytest.fixture(params=[("access_point", "ht40"), ("wifi_client", "vht80")], ids="-".join)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    role, network = request.param
    for name in ("bin", "state"):
        (tmp_path / name).mkdir()
    for name in PROGRAMS:
        (tmp_path / "bin" / name).symlink_to(HERE / "programs/radio_program.py")
    (tmp_path / "bin/systemctl").symlink_to(HERE / "programs/host_program.py")
    (tmp_path / "state/units").mkdir()
    holder = ["unshare", "-Urmn", "sh", "-c", warm_python.start(tmp_path / "warm") + SET_UP]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(holder, env=environment(tmp_path, network), text=True, **pipes) as namespace:
        assert namespace.stdout is not None
        assert namespace.stdout.readline() == "ready\n"
        yield Host(role, network, tmp_path, namespace.pid)
    for running in (tmp_path / "state").glob("*.running"):
        os.kill(int(running.read_text()), 15)


@pytest.mark.netns
def test_life_of_a_radio(host: Host) -> None:
    interface, daemon = OF_ROLE[host.role]

    before = host.play("main", "--check")
    assert before.exit_code == 0, before.text
    assert not (host.folder / "run").exists()
    assert not host.state("country")

    old = host.old_radio("wlan7")
    first = host.play("main", "--diff", "-vvv")
    assert first.exit_code == 0, first.text
    assert not old.exists()
    assert Path(f"{old}.called").read_text() == "leave\n"
    assert host.configuration.stat().st_mode & 0o777 == 0o600
    assert PASSPHRASE in host.configuration.read_text()
    assert host.state("country") == "US"
    assert host.state(f"power-{interface}") == "1500"
    assert host.state(f"bitrates-{interface}") == MASKS[host.network]

    second = host.play()
    assert (second.exit_code, second.changed) == (0, 0), second.text
    assert host.state(f"{daemon}.log-of-starts") == "started\n"

    read = host.play("verify", more={"test_role": "radio", "netjoule_radio_reader": "iw"})
    assert read.exit_code == 0, read.text

    other = host.play("main", "--diff", "-vvv", passphrase="another battery staple")
    assert other.exit_code == 0, other.text
    assert host.state(f"{daemon}.log-of-starts") == "started\n" * 2
    assert "battery" not in first.text + other.text + host.state("calls")

    old = host.old_radio("wlan8")
    down = host.play("teardown")
    assert down.exit_code == 0, down.text
    assert not host.configuration.exists()
    assert not host.state(f"{daemon}.running")
    assert not old.exists()


@pytest.mark.netns
def test_systemd_keeps_the_daemon(host: Host) -> None:
    interface, daemon = OF_ROLE[host.role]
    unit = f"netjoule-{daemon.replace('_', '-')}-{interface}.service"
    systemd = {"netjoule_service_manager": "systemd"}

    before = host.play("main", "--check", more=systemd)
    assert before.exit_code == 0, before.text
    assert host.says("ls", "/run/systemd/system") == ""

    first = host.play(more=systemd)
    assert first.exit_code == 0, first.text
    assert host.says("ls", "/run/systemd/system") == f"{unit}\n"
    assert host.state(f"bitrates-{interface}") == MASKS[host.network]
    second = host.play(more=systemd)
    assert (second.exit_code, second.changed) == (0, 0), second.text
    assert host.state(f"{daemon}.log-of-starts") == "started\n"

    down = host.play("teardown", more=systemd)
    assert down.exit_code == 0, down.text
    assert list((host.folder / "state/units").iterdir()) == []
    assert not host.state(f"{daemon}.running")
    assert not host.configuration.exists()
    assert host.says("ls", "/run/systemd/system") == ""
    assert host.state("calls").endswith("systemctl daemon-reload\n")


@pytest.mark.netns
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"channel": 52}, "or set dfs: true"),
        ({"country": "DE"}, "Install wireless-regdb"),
        ({"passphrase": "tooshort"[:7]}, "8 to 63 characters, this one has 7"),
        ({"ssid": "elsewhere"}, "ssid[0] is netjoule-seed-2013, wanted elsewhere"),
    ],
)
@pytest.mark.parametrize("host", [("access_point", "ht40")], indirect=True, ids=["access_point-ht40"])
def test_failure_tells_the_remedy(host: Host, change: dict[str, Any], words: str) -> None:
    outcome = host.play(**change)
    assert outcome.exit_code != 0
    assert words in outcome.text
    assert "tooshor" not in outcome.text


@pytest.mark.netns
@pytest.mark.parametrize("host", [("access_point", "ht40")], indirect=True, ids=["access_point-ht40"])
def test_bridge_to_the_server(host: Host) -> None:
    first = host.play(forwarding="bridging")
    assert first.exit_code == 0, first.text
    assert "bridge=br-netjoule\n" in host.configuration.read_text()
    second = host.play(forwarding="bridging")
    assert (second.exit_code, second.changed) == (0, 0), second.text
    assert "master br-netjoule" in host.ip("link", "show", "wlan1")
    assert "10.77.0.1/24" in host.ip("address", "show", "br-netjoule")
    assert host.play("teardown", forwarding="bridging").exit_code == 0
    assert "br-netjoule" not in host.ip("address", "show")
