# SPDX-License-Identifier: Apache-2.0
"""The roles of hosts converge, change nothing twice, pass check mode, and are undone.

Recorded answers stand for systemd, NetworkManager, chrony and udev (programs/).

The host is a network namespace with a /run of its own.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import warm_python
import wheels
from networks import SEED_2013
from render import ANSIBLE
from sshd import search_path

from netjoule.core import programs
from netjoule.store.fingerprint import host_fingerprint
from netjoule.testbeds.lab import binaries

HERE = Path(__file__).resolve().parent
PROGRAMS = ("nmcli", "networkctl", "systemctl", "chronyc", "udevadm")
# pgrep says that there is a dhcpcd.
OTHERS_PROGRAMS = ("pgrep", "dhcpcd", "ifquery", "ifdown", "ifup")
SYSCTL = "net.ipv4.tcp_no_metrics_save"
RUNNING = {
    "base_host": [
        "apt-daily.timer",
        "iwd.service",
        "ssh.service",
        "systemd-networkd.service",
        "wpa_supplicant.service",
    ],
    "clock_sync": ["chrony.service"],
    "traffic_host": [],
    "web_server": [],
    "meter_host": [],
}
SET_UP = """
mount -t tmpfs tmpfs /run
ip link add wlan0 type veth peer name eth1
ip link set wlan0 up
ip address add 10.78.9.1/24 dev eth1
echo ready; cat
"""


@dataclass(frozen=True)
class Host:
    """One host under one role."""

    role: str
    folder: Path
    namespace: int

    def play(self, entry: str, *options: str, **more: Any) -> tuple[int, int, str]:
        """Exit code, changes, and all that was said."""
        variables = {
            "test_role": self.role,
            "test_entry": entry,
            "ansible_connection": "local",
            "ansible_python_interpreter": warm_python.INTERPRETER,
            "netjoule_install_packages": False,
            "netjoule_radio_interface": "wlan0",
            "netjoule_wired_interface": "eth1",
            "netjoule_wired_addresses": ["10.78.0.1/24", "10.78.9.1/24", "fd78::1/64"],
            "base_host_routes": [{"to": "fd77::/64", "via": "fd78::254"}],
            "base_host_sysctls": {SYSCTL: 1},
            "base_host_sys": str(self.folder / "sys"),
            "base_host_governor": "performance",
            "clock_sync_conf_dir": str(self.folder / "conf.d"),
            "traffic_host_bin_dir": "/run",
            "traffic_host_builds": binaries.builds(programs.checkout()),
            "web_server_bin_dir": "/run",
            "web_server_install_dir": "/run/opt-web",
            "web_server_python": sys.executable,
            **wheels.caddy(self.folder),
            "meter_host_bin_dir": "/run",
            "meter_host_install_dir": "/run/opt",
            "meter_host_udev_rules_dir": "/run/udev-rules",
            "meter_host_wheel_dir": str(self.folder.parent / "wheels"),  # built once
            "meter_host_python": sys.executable,
            # Without a network; what it needs beside itself is in PYTHONPATH.
            "meter_host_pip_options": ["--no-index"],
            "meter_host_requirements": str(self.folder / "requirements.txt"),
            "netjoule_meters": [{"meter_id": "laptop", "resource": "/dev/ptmx"}],
        }
        file = self.folder / "variables.json"
        file.write_text(json.dumps(variables | more))
        play = ["ansible-playbook", "-i", "host,", "-e", f"@{file}", str(HERE / "play.yml"), *options]
        done = subprocess.run(
            [*self._inside, *play],
            env=environment(self.folder),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        text = done.stdout + done.stderr
        changed = re.search(r"host +: ok=\d+ +changed=(\d+)", text)
        return done.returncode, int(changed[1]) if changed else -1, text

    def says(self, *command: str) -> str:
        """What a command prints on the host."""
        return subprocess.run([*self._inside, *command], capture_output=True, text=True, check=True).stdout

    @property
    def units(self) -> list[str]:
        """Units that run."""
        return sorted(path.name for path in (self.folder / "state/units").iterdir())

    @property
    def calls(self) -> str:
        """What the stand-ins were asked."""
        return (self.folder / "state/calls").read_text()

    @property
    def _inside(self) -> list[str]:
        return ["nsenter", "-t", str(self.namespace), "-U", "-m", "-n", "--preserve-credentials"]


def environment(folder: Path) -> dict[str, str]:
    """Of the plays and of the host, whose files are in the folder."""
    own = {
        "PATH": f"{folder}/bin:{search_path()}",
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "NETJOULE_TEST_STATE": str(folder / "state"),
        # Not what this machine's user has there.
        "XDG_CACHE_HOME": str(folder / "cache"),
        "SUDO_USER": "",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    return os.environ | own | warm_python.environment(folder / "warm")


@pytest.fixture(params=list(RUNNING))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "state/units").mkdir(parents=True)
    (tmp_path / "requirements.txt").touch()
    for name in PROGRAMS + (OTHERS_PROGRAMS if request.param == "base_host" else ()):
        (tmp_path / "bin" / name).symlink_to(HERE / "programs/host_program.py")
    for unit in RUNNING[request.param]:
        (tmp_path / "state/units" / unit).touch()
    for cpu in ("cpu0", "cpu1"):
        governor = tmp_path / f"sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"
        governor.parent.mkdir(parents=True)
        governor.write_text("powersave\n")
    holder = ["unshare", "-Urmn", "sh", "-ec", warm_python.start(tmp_path / "warm") + SET_UP]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(holder, env=environment(tmp_path), text=True, **pipes) as namespace:
        assert namespace.stdout is not None
        assert namespace.stdout.readline() == "ready\n"
        yield Host(request.param, tmp_path, namespace.pid)


def governors(host: Host) -> set[str]:
    return {
        path.read_text() for path in host.folder.glob("sys/devices/system/cpu/*/cpufreq/scaling_governor")
    }


@pytest.mark.netns
@pytest.mark.parametrize("host", ["base_host"], indirect=True)
def test_a_host_is_kept_quiet_and_given_back(host: Host) -> None:
    code, changed, text = host.play("main", "--check")
    assert code == 0, text
    assert changed > 0
    assert (host.units, governors(host)) == (RUNNING["base_host"], {"powersave\n"})
    assert host.says("ls", "/run") == ""

    code, _, text = host.play("main")
    assert code == 0, text
    assert host.units == ["ssh.service", "systemd-networkd.service", "wpa_supplicant.service"]
    assert governors(host) == {"performance\n"}
    assert "10.78.0.1/24" in host.says("ip", "-brief", "address", "show", "eth1")
    assert "fd77::/64 via fd78::254" in host.says("ip", "-6", "route", "show", "dev", "eth1")
    assert all(call in host.calls for call in ("dhcpcd --exit wlan0\n", "ifdown --force eth1\n"))
    record = json.loads(host.says("cat", "/run/netjoule/host.json"))
    assert (record["governor"], record["sysctls"]) == ("performance", {SYSCTL: 1})
    assert record["cpu_model"] == host_fingerprint()["cpu_model"]
    assert "nmcli general reload conf" in host.calls
    assert "networkctl reload" in host.calls
    assert "Name=wlan0 eth1\n" in host.says("cat", "/run/systemd/network/05-netjoule.network")
    code, changed, text = host.play("main")
    assert (code, changed) == (0, 0), text
    code, _, text = host.play("verify")
    assert code == 0, text

    no_longer_wanted = "sed -i /10.78.0.1/d /run/netjoule/host.sh; sh /run/netjoule/host.sh set"
    assert host.says("sh", "-c", no_longer_wanted) == "changed\n"
    assert "10.78.0.1/24" not in host.says("ip", "-brief", "address", "show", "eth1")
    assert host.calls.count("dhcpcd --exit eth1") == 1
    cache = host.folder / "cache/netjoule"
    for name in ("campaign-1", "session-1", "session-now", "guest"):
        (cache / name).mkdir(parents=True)
        (cache / name / "file").touch()
    for name in ("keeper-1.py", "netjoule-radio-1.pyz", "netjoule-traffic-1", "calibration-1.json"):
        (cache / name).touch()

    code, _, text = host.play("teardown")
    assert code == 0, text
    assert (host.units, governors(host)) == (
        RUNNING["base_host"],
        {"powersave\n"},
    )
    assert sorted(path.name for path in cache.iterdir()) == ["guest", "session-now"]
    assert host.says("sysctl", "--values", SYSCTL) == "0\n"
    assert host.says("ip", "-brief", "address", "show", "eth1").split()[1:] == ["DOWN", "10.78.9.1/24"]
    assert "fd77" not in host.says("ip", "-6", "route")
    assert all(call in host.calls for call in ("dhcpcd --rebind eth1\n", "ifup eth1\n"))
    assert "dhcpcd --rebind wlan0" not in host.calls  # it never had it
    assert host.says("find", "/run", "-type", "f") == ""
    code, changed, text = host.play("teardown")
    assert (code, changed) == (0, 0), text


@pytest.mark.netns
@pytest.mark.parametrize("host", ["base_host"], indirect=True)
@pytest.mark.parametrize(
    ("entry", "change", "words"),
    [
        ("main", {"netjoule_wired_interface": "eth7"}, "Correct wired.interface of this host"),
        ("main", {"base_host_sys": "/nowhere"}, "have no frequency governor"),
        ("verify", {}, "NetworkManager manages wlan0 (state disconnected)"),
    ],
)
def test_a_failure_tells_the_remedy(host: Host, entry: str, change: dict[str, Any], words: str) -> None:
    code, _, text = host.play(entry, **change)
    assert code != 0
    assert words in text


@pytest.mark.netns
@pytest.mark.parametrize("host", ["base_host"], indirect=True)
def test_a_wpa_supplicant_that_was_given_the_radio_stops(host: Host) -> None:
    command = "/sbin/wpa_supplicant -c /etc/wpa.conf -i wlan0"
    (host.folder / "state/wpa_supplicant.service.exec").write_text(f"{{ argv[]={command} ; pid=7 }}\n")
    code, _, text = host.play("main")
    assert code == 0, text
    assert host.units == ["ssh.service", "systemd-networkd.service"]


@pytest.mark.netns
@pytest.mark.parametrize("host", ["clock_sync"], indirect=True)
def test_chrony_of_the_distribution_follows_the_reference_and_its_own_sources_again(host: Host) -> None:
    follow = {"clock_sync_reference": "tower", "clock_sync_reference_address": "192.0.2.3"}
    configuration = host.folder / "conf.d/netjoule.conf"
    not_installed = host.folder / "state/not-installed"
    not_installed.write_text("chrony.service")
    code, changed, text = host.play("main", "--check", **follow)
    not_installed.unlink()
    assert code == 0, text
    assert changed > 0
    assert not configuration.exists()

    code, _, text = host.play("main", **follow)
    assert code == 0, text
    assert "server 192.0.2.3 iburst minpoll 2 maxpoll 4 prefer trust\n" in configuration.read_text()
    assert "pidfile" not in configuration.read_text()
    assert host.calls.count("systemctl restart chrony.service") == 1
    code, changed, text = host.play("main", **follow)
    assert (code, changed) == (0, 0), text

    code, _, text = host.play("teardown", **follow)
    assert code == 0, text
    assert not configuration.exists()
    assert host.calls.count("systemctl restart chrony.service") == 2
    assert host.units == ["chrony.service"]


@pytest.mark.netns
@pytest.mark.parametrize(
    ("host", "change", "words"),
    [
        (
            "traffic_host",
            {"traffic_host_builds": {}},
            "`make dist` builds it",
        ),
        (
            "traffic_host",
            {"traffic_host_builds": {platform.machine(): {"path": "", "problem": "The sources are of def."}}},
            "The sources are of def.",
        ),
        ("traffic_host", {}, "is missing or another build than the controller's"),
        ("web_server", {}, "/run/caddy version` of host says"),
        ("meter_host", {}, "netjoule-meters does not run on host"),
        (
            "traffic_host",
            {"test_role": "radio", "netjoule_radio_reader": "nl80211"},
            "install python3-pyroute2, or choose another reader",
        ),
    ],
    indirect=["host"],
)
def test_a_missing_program_is_named_with_the_remedy(host: Host, change: dict[str, Any], words: str) -> None:
    code, _, text = host.play("verify", **change)
    assert code != 0
    assert words in text


@pytest.mark.netns
@pytest.mark.parametrize("host", ["traffic_host"], indirect=True)
@pytest.mark.parametrize("role", ["access_point", "wifi_client"])
def test_a_host_without_iw_passes_check_mode(host: Host, role: str) -> None:
    """Before the first provisioning; what its radio can do is not known then."""
    nowhere = {"radio_iw": "/nowhere/iw", "radio_install_packages": False, "netjoule_wifi": SEED_2013}
    code, changed, text = host.play("main", "--check", test_role=role, **nowhere)
    assert (code, changed) == (0, 1), text


@pytest.mark.netns
@pytest.mark.parametrize("host", ["meter_host"], indirect=True)
def test_who_is_new_in_a_group_logs_in_again(host: Host) -> None:
    more = {"meter_host_user": "nobody", "meter_host_groups": ["root"]}
    code, _, text = host.play("main", "--check", "-vv", **more)
    assert code == 0, text
    assert "META: reset connection" in text


@pytest.mark.netns
@pytest.mark.parametrize("host", ["meter_host"], indirect=True)
@pytest.mark.parametrize("changed", [False, True])
def test_only_what_is_locked_is_installed(host: Host, changed: bool) -> None:
    other = f"other==2 \\\n    --hash=sha256:{'0' * 64}\n"
    locked = wheels.locked(host.folder, "shellingham", "1.0")
    (host.folder / "requirements.txt").write_text(f"{other}{locked}    # via typer\n")
    if changed:
        with zipfile.ZipFile(host.folder / "shellingham-1.0-py3-none-any.whl", "a") as file:
            file.writestr("shellingham.py", "# not what was locked")
    options = ["--no-index", "--find-links", str(host.folder)]
    code, _, text = host.play("main", meter_host_pip_options=options)
    if changed:
        assert code != 0
        assert "DO NOT MATCH THE HASHES" in " ".join(text.split())
    else:
        assert code == 0, text
        assert "shellingham==1.0" in host.says("/run/opt/venv/bin/pip", "freeze")


@pytest.mark.netns
@pytest.mark.parametrize("host", ["web_server"], indirect=True)
def test_a_web_server_gets_caddy_as_locked_and_gives_it_back(host: Host) -> None:
    code, changed, text = host.play("main", "--check")
    assert code == 0, text
    assert changed > 0
    assert host.says("ls", "/run") == ""

    code, _, text = host.play("main")
    assert code == 0, text
    assert host.says("/run/caddy", "version").startswith(f"v{wheels.CADDY} ")
    code, changed, text = host.play("main")
    assert (code, changed) == (0, 0), text
    code, _, text = host.play("verify")
    assert code == 0, text

    code, _, text = host.play("teardown")
    assert code == 0, text
    assert host.says("ls", "/run") == ""
    code, changed, text = host.play("teardown")
    assert (code, changed) == (0, 0), text


@pytest.mark.netns
@pytest.mark.parametrize("host", ["web_server"], indirect=True)
def test_a_caddy_of_the_hosts_own_stays(host: Host) -> None:
    host.says("sh", "-c", "echo theirs >/run/caddy")
    code, _, text = host.play("main")
    assert code != 0
    assert "host has a Caddy of its own in /run/caddy: remove it" in " ".join(text.split())
    code, changed, text = host.play("teardown")
    assert (code, changed) == (0, 0), text
    assert host.says("cat", "/run/caddy") == "theirs\n"
