# SPDX-License-Identifier: Apache-2.0
"""The script that gives a radio its addresses and limits, in a network namespace; and the units that run it.

A recording stand-in answers for iw; addresses, routes and switches are the kernel's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from render import template

# Without the file `lifts` beside it, it does not lift limits.
IW = """#!/bin/sh
echo "$*" >>"$0.calls"
case "$*" in
    *"get power_save") echo "Power save: on" ;;
    *"set bitrates") [ -e "${0%/*}/lifts" ] || exit 161 ;;
    *bitrates*refused) echo "Invalid argument" >&2; exit 234 ;;
esac
"""
SYSCTLS = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]
# Units stop while there is a file `stops`.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$0.calls"
[ "$1" != stop ] || [ -e "${0%/*}/stops" ]
"""
SET_UP = (
    "mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; "
    "ip link add wlan0 up type veth peer name wlan1; ip link set wlan1 up; echo ready; exec cat"
)
UNIT = "netjoule-hostapd-wlan0.service"


@dataclass(frozen=True)
class Radio:
    """A radio's script on its host."""

    folder: Path
    namespace: int

    def write(self, **changed: Any) -> None:
        values: dict[str, Any] = {
            "ansible_managed": "Ansible managed",
            "netjoule_radio_interface": "wlan0",
            "netjoule_wifi": {"tx_power_dbm": 15},
            "radio_script": str(self.script),
            "radio_iw": str(self.folder / "iw"),
            "radio_address_interface": "wlan0",
            "radio_addresses": ["10.77.0.1/24", "fd77::1/64"],
            "radio_routes": [
                {"to": "10.78.0.0/24", "via": "10.77.0.254"},
                {"to": "fd78::/64", "via": "fd77::254"},
            ],
            "radio_bitrate_words": ["ht-mcs-5", "10"],
            "radio_power_save": "off",
            "radio_sysctls": SYSCTLS,
            "radio_bridge": "",
            "radio_service_manager": "none",
            "radio_pid_file": str(self.folder / "pid"),
            "radio_ask": ["sh", "-c", f"cat {self.folder}/answer"],
            "radio_ready": "state=(ENABLED|DISABLED)",
            "radio_ready_within_s": 5,
            "radio_files": [str(self.folder / "hostapd.conf")],
        }
        self.script.write_text(template("radio", "radio.sh").render(values | changed))

    def run(self, word: str, code: int = 0) -> str:
        done = self._inside("sh", str(self.script), word)
        assert done.returncode == code, done.stderr
        return done.stdout + (done.stderr if code else "")

    def sees(self) -> str:
        """Addresses and routes of the radio, and the kernel's switches."""
        asked = [["ip", "-brief", "address", "show", "dev", "wlan0"]]
        asked += [["ip", family, "route", "show", "dev", "wlan0"] for family in ("-4", "-6")]
        return "".join(self._inside(*words).stdout for words in [*asked, ["sysctl", *SYSCTLS]])

    def ip(self, *words: str) -> None:
        assert self._inside("ip", *words).returncode == 0

    def put(self, file: str) -> None:
        assert self._inside("touch", file).returncode == 0

    def has(self, file: str) -> bool:
        return self._inside("test", "-e", file).returncode == 0

    def _inside(self, *words: str) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "-t", str(self.namespace), "-U", "-m", "-n", "--preserve-credentials"]
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}:/usr/sbin:/sbin"}
        return subprocess.run(
            [*enter, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    @property
    def script(self) -> Path:
        return self.folder / "radio-wlan0.sh"

    @property
    def asked_of_iw(self) -> list[str]:
        return (self.folder / "iw.calls").read_text().splitlines()


@pytest.fixture
def radio(tmp_path: Path) -> Iterator[Radio]:
    for name, text in (("iw", IW), ("systemctl", SYSTEMCTL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name in ("lifts", "stops"):
        (tmp_path / name).touch()
    holder = ["unshare", "-Urmn", "sh", "-c", SET_UP]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as namespace:
        assert namespace.stdout is not None
        assert namespace.stdout.readline() == "ready\n"
        yield Radio(tmp_path, namespace.pid)


@pytest.mark.netns
def test_what_a_restarted_daemon_loses_comes_back(radio: Radio) -> None:
    radio.write()
    assert radio.run("set") == "changed\n"
    assert radio.run("set") == ""
    complete = radio.sees()
    assert "10.78.0.0/24 via 10.77.0.254" in complete
    assert "fd78::/64 via fd77::254" in complete

    radio.ip("link", "set", "wlan0", "down")
    radio.ip("link", "set", "wlan0", "up")
    assert "fd77::1" not in radio.sees()
    (radio.folder / "iw.calls").unlink()
    assert radio.run("set") == "changed\n"
    assert "fd77::1/64" in radio.sees()
    assert "10.78.0.0/24 via 10.77.0.254" in radio.sees()
    assert radio.asked_of_iw == [
        "dev wlan0 set power_save off",
        "dev wlan0 set txpower fixed 1500",
        "dev wlan0 set bitrates ht-mcs-5 10",
    ]


@pytest.mark.netns
def test_what_the_topology_no_longer_names_is_taken_away(radio: Radio) -> None:
    radio.write(radio_bridge="br-netjoule")
    radio.ip("link", "add", "br-netjoule", "type", "bridge")
    radio.run("set")
    radio.write(radio_addresses=["10.77.0.9/24"], radio_routes=[])
    assert radio.run("set") == "changed\n"
    seen = radio.sees()
    assert "10.77.0.9/24" in seen
    assert not [gone for gone in ("10.77.0.1", "fd77::1", "10.78", "fd78") if gone in seen]
    assert not (Path(f"/proc/{radio.namespace}/root/sys/class/net") / "br-netjoule").exists()


@pytest.mark.netns
def test_leaving_undoes_all(radio: Radio) -> None:
    before = radio.sees()
    assert "net.ipv4.ip_forward = 0" in before
    radio.write()
    (radio.folder / "hostapd.conf").touch()
    radio.run("set")
    assert "net.ipv4.ip_forward = 1" in radio.sees()
    radio.run("leave")
    left = [line for line in radio.sees().splitlines() if "fd7" in line or "10.7" in line]
    assert left == []
    assert "net.ipv4.ip_forward = 0" in radio.sees()
    assert "net.ipv6.conf.all.forwarding = 0" in radio.sees()
    undone = ["dev wlan0 set power_save on", "dev wlan0 set bitrates", "dev wlan0 set txpower auto"]
    assert radio.asked_of_iw[-3:] == undone
    assert files(radio) == ["iw", "iw.calls"]


def files(radio: Radio) -> list[str]:
    """What is in its folder, stand-ins for systemctl and switches of stand-ins left out."""
    others = ("systemctl", "systemctl.calls", "lifts", "stops")
    return sorted(path.name for path in radio.folder.iterdir() if path.name not in others)


@pytest.mark.netns
def test_a_daemon_that_does_not_stop_keeps_its_files(radio: Radio) -> None:
    unit_file = f"/run/systemd/system/{UNIT}"
    conf = radio.folder / "hostapd.conf"
    radio.write(
        radio_service_manager="systemd",
        radio_unit=UNIT,
        radio_files=[str(conf), unit_file],
        radio_power_save="",
    )
    conf.touch()
    radio.put(unit_file)
    radio.run("set")
    (radio.folder / "stops").unlink()
    radio.run("leave", code=1)
    assert conf.exists()
    assert radio.has(unit_file)
    assert "10.77.0.1/24" in radio.sees()

    (radio.folder / "stops").touch()
    (radio.folder / "systemctl.calls").unlink()
    radio.run("leave")
    assert files(radio) == ["iw", "iw.calls"]
    assert not radio.has(unit_file)
    assert (radio.folder / "systemctl.calls").read_text() == f"stop {UNIT}\ndaemon-reload\n"


@pytest.mark.netns
def test_limits_that_stay_are_told_and_can_be_lifted_again(radio: Radio) -> None:
    radio.write()
    radio.run("set")
    (radio.folder / "lifts").unlink()
    assert "iw dev wlan0 set bitrates: failed" in radio.run("leave", code=1)
    assert radio.script.exists()
    (radio.folder / "lifts").touch()
    radio.run("leave")
    assert files(radio) == ["iw", "iw.calls"]


@pytest.mark.netns
def test_limits_are_lifted_while_the_interface_is_up(radio: Radio) -> None:
    """A daemon that ended has taken it down, where mac80211 takes no rates."""
    up_only = IW.replace(
        '*"set bitrates") [ -e', '*"set bitrates") [ -n "$(ip -o link show wlan0 up)" ] && [ -e'
    )
    assert up_only != IW
    (radio.folder / "iw").write_text(up_only)
    radio.write()
    radio.run("set")
    radio.ip("link", "set", "wlan0", "down")
    radio.run("leave")
    assert "DOWN" in radio.sees()


@pytest.mark.netns
def test_a_radio_that_is_gone_is_left(radio: Radio) -> None:
    radio.write()
    radio.run("set")
    radio.ip("link", "delete", "wlan0")
    (radio.folder / "iw.calls").unlink()
    radio.run("leave")
    assert files(radio) == ["iw"]


@pytest.mark.netns
def test_what_the_driver_refuses_is_told_and_the_rest_is_set(radio: Radio) -> None:
    radio.write(radio_bitrate_words=["refused"])
    told = radio.run("set", code=1)
    assert "iw dev wlan0 set bitrates refused: failed" in told
    assert "fd77::1/64" in radio.sees()


@pytest.mark.netns
def test_waiting_ends_with_the_daemons_words(radio: Radio) -> None:
    radio.write(radio_ready_within_s=1)
    (radio.folder / "answer").write_text("state=HT_SCAN\n")
    assert radio.run("wait") == "state=HT_SCAN\n"
    radio.write(radio_ready_within_s=600)
    (radio.folder / "answer").write_text("state=ENABLED\nphy=phy0\n")
    assert radio.run("wait") == "state=ENABLED\nphy=phy0\n"


@pytest.mark.parametrize("role", ["access_point", "wifi_client"])
def test_systemd_accepts_the_unit(role: str, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    assert verify is not None, "there is no systemd-analyze here: 'scripts/setup.sh test' installs systemd"
    name = {"access_point": "hostapd", "wifi_client": "wpa_supplicant"}[role]
    unit = tmp_path / f"netjoule-{name.replace('_', '-')}-wlan0.service"
    values = {
        "ansible_managed": "Ansible managed",
        "netjoule_radio_interface": "wlan0",
        "radio_script": "/run/netjoule/radio-wlan0.sh",
        f"{role}_{name}": "/bin/true",  # the daemon may not be installed here
        "radio_config_file": f"/run/netjoule/{name}-wlan0.conf",
        "access_point_plan": {"start_within_s": 15},
        "wifi_client_associate_within_s": 40,
    }
    unit.write_text(template(role, f"{name}.service").render(values))
    command = [verify, "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert unit.read_text().count("ExecStartPost=-/bin/sh /run/netjoule/radio-wlan0.sh") == 2
