# SPDX-License-Identifier: Apache-2.0
"""All playbooks over SSH: a lab of two hosts is checked, provisioned, compared and torn down.

The hosts are namespaces with an sshd each (sshd_hosts); recorded answers stand for radios (programs/).
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import sshd_hosts
import warm_python
import wheels
from render import PASSPHRASE, RECORDED
from sshd_hosts import CONTROL, Lab

HERE = Path(__file__).resolve().parent
RADIO_PROGRAMS = ("iw", "hostapd", "hostapd_cli", "wpa_supplicant", "wpa_cli")
HOST_PROGRAMS = ("nmcli", "udevadm")
SYSCTL = "net.ipv4.tcp_no_metrics_save"

# Not the roles' defaults, because the hosts are namespaces; Ansible reads it beside the topology.
OF_NAMESPACES: dict[str, Any] = {
    "netjoule_install_packages": False,
    "radio_install_packages": False,
    "ansible_remote_tmp": "/run/ansible",
    "ansible_python_interpreter": warm_python.INTERPRETER,
    "wifi_client_associate_within_s": 3,
    "base_host_sysctls": {SYSCTL: 1},  # one that each network namespace has
    "clock_sync_chronyd_options": ["-x"],  # the clock is this machine's
    "meter_host_python": sys.executable,
    "meter_host_install_dir": "/run/opt",
    "meter_host_udev_rules_dir": "/run/udev-rules",
    "meter_host_pip_options": ["--no-index"],  # no network; PYTHONPATH has what it needs
    "web_server_python": sys.executable,
    "web_server_install_dir": "/run/opt-web",
}


def topology(lab: Lab) -> dict[str, Any]:
    ssh = {"identity_file": str(lab.keys.user), "known_hosts": str(lab.keys.known_hosts)}

    def host(name: str, *roles: str, **more: Any) -> dict[str, Any]:
        own = {"roles": list(roles), "control_address": CONTROL[name], "ssh": ssh, "service_manager": "none"}
        return own | more

    tower = host(
        "tower",
        "access_point",
        "server",
        "web_server",
        test_addresses={"ipv4": "10.77.0.1", "ipv6": "fd77::1"},
        radio={"interface": "wlan0", "addresses": ["10.77.0.1/24", "fd77::1/64"]},
    )
    laptop = host(
        "laptop",
        "client",
        "meter_host",
        test_addresses={"ipv4": "10.77.0.2/24", "ipv6": "fd77::2/64"},
        radio={"interface": "wlan1"},
        routes=[{"to": "10.78.0.0/24", "via": "10.77.0.1"}],
    )
    return {
        "schema_version": 1,
        "name": "namespaces",
        "kind": "lab",
        "hosts": {"tower": tower, "laptop": laptop},
        "wifi": {
            "ssid": "netjoule-seed-2013",
            "passphrase": "env:NETJOULE_TEST_PASSPHRASE",
            "country": "US",
            "mode": "11n",
            "width_mhz": 40,
            "channel": 36,
            "security": "wpa2",
            "rates": {"mcs": [10], "guard_interval": "long", "streams": 2},
            "power_save": "off",
        },
        "meters": [
            {
                "meter_id": "laptop-power",
                "node": "laptop",
                "host": "laptop",
                "adapter": "hm8115",
                "resource": "/dev/ptmx",
            }
        ],
    }


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for program, names in (("radio_program.py", RADIO_PROGRAMS), ("host_program.py", HOST_PROGRAMS)):
        for name in names:
            (stand_ins / name).symlink_to(HERE / "programs" / program)
    environment = {
        "NETJOULE_TEST_STATE": f"{tmp_path}/state/{{host}}",
        "NETJOULE_TEST_DATA": str(RECORDED),
        "NETJOULE_TEST_NETWORK": "ht40",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    (tmp_path / "group_vars").mkdir()
    with sshd_hosts.lab(tmp_path, stand_ins, environment) as up:
        (tmp_path / "rack.yaml").write_text(json.dumps(topology(up)))
        (tmp_path / "requirements.txt").touch()
        own = OF_NAMESPACES | {
            **wheels.caddy(tmp_path),
            "meter_host_wheel_dir": str(tmp_path / "wheels"),
            "meter_host_requirements": str(tmp_path / "requirements.txt"),
        }
        (tmp_path / "group_vars/all.json").write_text(json.dumps(own))
        yield up


def netjoule(lab: Lab, *words: str) -> CompletedProcess[str]:
    command = [sys.executable, "-m", "netjoule", *words, "--trust-vars"]
    command += ["--testbed", str(lab.folder / "rack.yaml")]
    # Only what brings the network up may ask for its passphrase.
    needed = words[0] == "provision" and "--teardown" not in words
    secret = {"NETJOULE_TEST_PASSPHRASE": PASSPHRASE} if needed else {}
    return lab.controller(*command, timeout_s=400, **secret)


def changes(done: CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"2 hosts [a-z ]+: (\d+) changes", done.stdout)
    assert found, done.stdout
    return int(found[1])


def packages(lab: Lab) -> dict[str, int]:
    """When each of those that meter hosts get was built."""
    found = {path.name: path.stat().st_mtime_ns for path in (lab.folder / "wheels").glob("*.whl")}
    assert len(found) == 2
    return found


@pytest.mark.netns
def test_life_of_a_lab(lab: Lab) -> None:
    assert changes(netjoule(lab, "provision", "--check")) > 0
    for host in CONTROL:
        assert "netjoule" not in lab.on(host, "ls /run /usr/local/bin")

    first = netjoule(lab, "provision")
    assert changes(first) > 0
    assert "battery" not in first.stdout + first.stderr
    record = json.loads(lab.on("laptop", "cat /run/netjoule/host.json"))
    assert record["offloads"]["wlan1"]["generic-receive-offload"] in ("on", "off")
    built = packages(lab)
    second = netjoule(lab, "provision")
    assert changes(second) == 0, second.stderr
    assert packages(lab) == built

    healthy = netjoule(lab, "doctor")
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert "ok    laptop: the path MTU" in healthy.stdout

    assert lab.on("tower", "caddy version").startswith(f"v{wheels.CADDY} ")

    assert changes(netjoule(lab, "provision", "--teardown")) > 0
    for host in CONTROL:
        assert lab.on(host, "ls /usr/local/bin /run/netjoule") == "/run/netjoule:\n\n/usr/local/bin:\n"
        assert lab.on(host, f"sysctl --values {SYSCTL}") == "0\n"
        assert "10.77" not in lab.on(host, "ip -brief address")
