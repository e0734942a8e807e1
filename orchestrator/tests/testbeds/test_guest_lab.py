# SPDX-License-Identifier: Apache-2.0
"""The guest's lab without booting it: what QEMU forwards, what is written for one boot."""

from pathlib import Path

import pytest

from netjoule.core import secrets
from netjoule.design import instruments
from netjoule.provisioning import inventory
from netjoule.testbeds.guest import lab, machine
from netjoule.testbeds.guest.machine import Forward, Machine
from netjoule.topology import topology

FORWARDS = (Forward(2201, "10.0.2.21", 22), Forward(2202, "10.0.2.22", 22))
HOSTS = tuple(lab.template()["hosts"])
PORTS = dict(zip(HOSTS, (2201, 2202, 2203), strict=True))


def test_only_named_ports_of_this_host_lead_into_the_guest():
    ports = {"console": 5, "control": 6, "out": 7, "err": 8}
    hardware = Machine("tcg", 1024, 2, forwards=FORWARDS)
    words = machine.qemu_arguments(hardware, Path("/k/vmlinux"), 9, ports, ())
    assert "-nic" not in words
    (network,) = (words[at + 1] for at, word in enumerate(words) if word == "-netdev")
    assert network.split(",")[:3] == ["user", "id=net", "restrict=on"]
    assert network.split(",")[4:] == [
        "hostfwd=tcp:127.0.0.1:2201-10.0.2.21:22",
        "hostfwd=tcp:127.0.0.1:2202-10.0.2.22:22",
    ]


@pytest.mark.parametrize("network", lab.template()["networks"])
def test_the_topology_of_a_boot_can_be_provisioned(tmp_path, network):
    path = lab.furnish(tmp_path / "lab", PORTS, network)
    loaded = topology.load(path)
    inventory.check_provisionable(loaded)
    assert loaded.radio_source == "hwsim"
    assert [instruments.pace_of(meter) for meter in loaded.meters]
    assert {meter.power_source for meter in loaded.meters} == {"modelled"}
    assert [loaded.host(name).ssh.port for name in HOSTS] == [2201, 2202, 2203]
    assert {loaded.host(name).ssh.address for name in HOSTS} == {"127.0.0.1"}
    assert len(secrets.resolve(loaded.wifi["passphrase"]).reveal()) >= 16


def test_keys_are_for_one_boot_and_this_user(tmp_path):
    folder = tmp_path / "lab"
    lab.furnish(folder, PORTS, "ht40-wpa2")
    first = (folder / "user_key").read_text(), (folder / "passphrase").read_text()
    lab.furnish(folder, PORTS, "ht40-wpa2")
    second = (folder / "user_key").read_text(), (folder / "passphrase").read_text()
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert folder.stat().st_mode & 0o077 == 0
    for name in ("user_key", "host_key", "passphrase"):
        assert (folder / name).stat().st_mode & 0o077 == 0
    assert first[1].strip() not in (folder / lab.TOPOLOGY).read_text()
