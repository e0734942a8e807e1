# SPDX-License-Identifier: Apache-2.0
"""Ansible's inventory out of a topology file, as ansible itself sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from networks import TOPOLOGIES
from render import ANSIBLE

CANARY = "hunter2-canary"
MODERN = TOPOLOGIES / "modern.yaml"


@pytest.fixture
def passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETJOULE_WIFI_PASSPHRASE", CANARY)


def ask(program: str, inventory: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one of ansible's programs of this environment with the repository's configuration."""
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [str(Path(sys.executable).parent / program), "-i", str(inventory), *words]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd=folder
    )


def debug(host: str, expression: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What an expression is on one host, without connecting to it."""
    return ask("ansible", MODERN, folder, host, "-m", "debug", "-a", f"msg=<{{{{ {expression} }}}}>")


def test_groups_are_roles_and_hosts_have_their_variables(tmp_path: Path, passphrase: None) -> None:
    listed = ask("ansible-inventory", MODERN, tmp_path, "--list")
    assert listed.returncode == 0, listed.stderr
    assert CANARY not in listed.stdout + listed.stderr
    found = json.loads(listed.stdout)
    assert found["client"]["hosts"] == ["laptop", "mini-pc", "raspberry-pi"]
    assert found["access_point"]["hosts"] == ["access-point"]
    assert found["server"]["hosts"] == ["tower"]
    assert found["meter_host"]["hosts"] == ["meter-shelf"]
    variables = found["_meta"]["hostvars"]
    assert len(variables["meter-shelf"]["netjoule_meters"]) == 4
    assert variables["laptop"]["netjoule_wifi"]["passphrase"].startswith("{{ lookup(")
    assert "netjoule_wifi" not in variables["tower"]


def test_the_passphrase_is_read_when_a_task_uses_it(tmp_path: Path, passphrase: None) -> None:
    for host in ("laptop", "access-point"):
        answer = debug(host, "netjoule_wifi.passphrase | length", tmp_path)
        assert f"<{len(CANARY)}>" in answer.stdout, answer.stdout + answer.stderr


def test_a_passphrase_that_is_not_there_stops_only_the_task_that_uses_it(tmp_path: Path) -> None:
    assert "NETJOULE_WIFI_PASSPHRASE" not in os.environ
    assert "<netjoule-modern>" in debug("laptop", "netjoule_wifi.ssid", tmp_path).stdout
    answer = debug("laptop", "netjoule_wifi.passphrase", tmp_path)
    assert answer.returncode != 0
    assert (
        "wifi.passphrase: the environment variable NETJOULE_WIFI_PASSPHRASE is not set; "
        "export NETJOULE_WIFI_PASSPHRASE=..." in answer.stdout
    )


def test_clients_get_download_programs_where_a_host_has_web_servers(tmp_path: Path) -> None:
    transfers = tmp_path / "transfers.yaml"
    transfers.write_text(MODERN.read_text().replace("roles: [server]", "roles: [server, web_server]"))
    defaults = ANSIBLE / "roles/traffic_host/defaults/main.yml"
    show = ("-m", "debug", "-a", "var=traffic_host_packages", "-e", f"@{defaults}")
    for inventory, host, found in (
        (transfers, "laptop", True),
        (transfers, "tower", False),
        (MODERN, "laptop", False),
    ):
        answer = ask("ansible", inventory, tmp_path, host, *show).stdout
        assert '"iperf3"' in answer
        assert ('"wget2"' in answer) == found


def test_text_of_the_topology_is_never_a_template(tmp_path: Path) -> None:
    odd = tmp_path / "odd.yaml"
    odd.write_text(MODERN.read_text().replace("ssid: netjoule-modern", 'ssid: "{{ 6 * 7 }}"'))
    answer = ask("ansible", odd, tmp_path, "laptop", "-m", "debug", "-a", "var=netjoule_wifi.ssid")
    assert "{{ 6 * 7 }}" in answer.stdout, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("width_mhz: 80", "width_mhz: 60", "field wifi.width_mhz: 60 is not one of"),
        ("node: laptop", "node: attic", "field meters.0.node: no host is called 'attic'"),
        ("host: meter-shelf", "plug: meter-shelf", "field meters.0.plug: unknown field"),
        ("env:NETJOULE_WIFI_PASSPHRASE", CANARY, "field wifi.passphrase: a secret is given by reference"),
    ],
)
def test_a_fault_ends_the_run_with_line_and_field(tmp_path: Path, old: str, new: str, words: str) -> None:
    wrong = tmp_path / "wrong.yaml"
    text = MODERN.read_text()
    wrong.write_text(text.replace(old, new, 1))
    line = text[: text.index(old)].count("\n") + 1
    answer = ask("ansible-inventory", wrong, tmp_path, "--list")
    assert answer.returncode != 0
    said = answer.stdout + answer.stderr
    assert f"{wrong}, line {line}, {words}" in " ".join(said.split())
    assert CANARY not in said


@pytest.mark.parametrize(
    ("reader", "package"), [("nl80211", "python3-pyroute2"), ("iwconfig", "wireless-tools")]
)
def test_what_the_radio_is_read_with_is_installed(tmp_path: Path, reader: str, package: str) -> None:
    changed = tmp_path / "rack.yaml"
    changed.write_text(MODERN.read_text().replace("reader: nl80211", f"reader: {reader}"))
    defaults = f"@{ANSIBLE}/roles/radio/defaults/main.yml"
    words = ["-m", "debug", "-a", "msg=<{{ radio_packages | join(' ') }}>", "-e", defaults]
    answer = ask("ansible", changed, tmp_path, "laptop", *words)
    assert package in answer.stdout, answer.stdout + answer.stderr
    assert ("wireless-tools" in answer.stdout) == (reader == "iwconfig")


def test_packages_of_the_meters_have_the_versions_of_the_source_tree(tmp_path: Path) -> None:
    for package, version in (("protocols/contracts", "7.8.9"), ("meters", "10.0.0rc1")):
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\nname = "x"\n')
    role = tmp_path / "ansible/roles/meter_host"
    role.mkdir(parents=True)
    words = ["-m", "debug", "-a", "msg=<{{ meter_host_wheels | join(' ') }}>", "-e", f"role_path={role}"]
    words += ["-e", f"@{ANSIBLE}/roles/meter_host/vars/main.yml"]
    answer = ask("ansible", MODERN, tmp_path, "meter-shelf", *words)
    wheels = "<netjoule_contracts-7.8.9-py3-none-any.whl netjoule_meters-10.0.0rc1-py3-none-any.whl>"
    assert wheels in answer.stdout, answer.stdout + answer.stderr


def test_an_emulated_testbed_has_nothing_to_provision(tmp_path: Path) -> None:
    answer = ask("ansible-inventory", ANSIBLE.parent / "testbed-topology.yaml", tmp_path, "--list")
    assert answer.returncode != 0
    assert "there is nothing to provision" in " ".join(answer.stderr.split())
