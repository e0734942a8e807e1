# SPDX-License-Identifier: Apache-2.0
"""The topology as Ansible's variables."""

import io
import json
from pathlib import Path

import pytest
from golden_sentences import raises
from lab_topology import LAB, changed

from netjoule.cli.app import run_command
from netjoule.core.errors import UsageError
from netjoule.provisioning import inventory
from netjoule.topology import topology

SHIPPED = Path(__file__).parents[3] / "testbed-topology.yaml"


def of(name, *changes):
    loaded = topology.Topology.from_document(changed(*changes), where="lab.yaml")
    return inventory.host_variables(loaded, name)


def test_a_client_is_told_its_radio_network_and_addresses():
    variables = of("laptop")
    assert variables["ansible_host"] == variables["netjoule_control_address"] == "192.0.2.11"
    assert (variables["ansible_user"], variables["ansible_port"]) == ("root", 22)
    assert variables["ansible_become"] is False
    assert variables["netjoule_test_addresses"] == {"ipv4": "10.77.0.11", "ipv6": "fd77::11"}
    assert (variables["netjoule_radio_interface"], variables["netjoule_radio_reader"]) == ("wlp2s0", "iw")
    assert variables["wifi_client_addresses"] == ["10.77.0.11/24", "fd77::11/64"]
    assert variables["wifi_client_routes"][0] == {"to": "10.78.0.0/24", "via": "10.77.0.1"}
    assert variables["netjoule_passphrase_reference"] == "env:RACK_PASSPHRASE"
    assert variables["netjoule_wifi"] == {
        "ssid": "rack",
        "country": "DE",
        "mode": "11n",
        "width_mhz": 40,
        "channel": 36,
        "security": "wpa2",
        "dfs": False,
        "forwarding": "routing",
        "rates": "automatic",
        "power_save": "off",
    }


@pytest.mark.parametrize(("given", "told"), [("on", "on"), (True, "on"), ("off", "off"), (False, "off")])
def test_power_save_is_a_word_whatever_yaml_made_of_it(given, told):
    assert of("laptop", ("wifi.power_save", given))["netjoule_wifi"]["power_save"] == told


def test_an_access_point_is_told_cable_and_both_networks():
    variables = of("ap")
    assert variables["access_point_addresses"] == ["10.77.0.1/24", "fd77::1/64"]
    assert variables["access_point_wired_interface"] == "enp3s0"
    assert variables["base_host_wired_addresses"] == ["10.78.0.1/24", "fd78::1/64"]
    assert "wifi_client_addresses" not in variables


def test_a_bridge_takes_the_cable():
    variables = of("ap", ("wifi.forwarding", "bridging"), ("hosts.ap.wired", {"interface": "enp3s0"}))
    assert variables["access_point_wired_interface"] == "enp3s0"
    assert variables["base_host_wired_interface"] == "enp3s0"
    assert variables["base_host_wired_addresses"] == []
    assert "base_host_routes" not in variables


def test_a_host_may_answer_elsewhere_than_where_hosts_meet():
    variables = of("tower", ("hosts.tower.ssh", {"address": "127.0.0.1", "port": 40022}))
    assert (variables["ansible_host"], variables["ansible_port"]) == ("127.0.0.1", 40022)
    assert variables["netjoule_control_address"] == "192.0.2.2"


def test_a_server_is_told_no_secret_and_no_radio():
    variables = of("tower")
    assert not [key for key in variables if "wifi" in key or "radio" in key or "passphrase" in key]
    assert variables["base_host_wired_addresses"] == ["10.78.0.2/24", "fd78::2/64"]
    assert variables["base_host_routes"][0] == {"to": "10.77.0.0/24", "via": "10.78.0.1"}


def test_keys_and_known_hosts_are_the_users_and_nothing_is_asked(monkeypatch):
    monkeypatch.setenv("HOME", "/home/lab user")
    variables = of("board", ("hosts.board.ssh.known_hosts", "~/known"))
    assert variables["ansible_become"] is True
    assert variables["ansible_ssh_private_key_file"] == "/home/lab user/.ssh/lab"
    assert variables["ansible_ssh_common_args"] == (
        "-o BatchMode=yes -o StrictHostKeyChecking=yes"
        " -o 'UserKnownHostsFile=\"/home/lab user/known\"' -o IdentitiesOnly=yes"
    )


def test_meters_belong_to_the_host_they_are_plugged_into():
    controller = {"roles": ["controller"], "control_address": "192.0.2.99"}
    assert [m["meter_id"] for m in of("shelf")["netjoule_meters"]] == ["laptop-power"]
    variables = of("desk", ("hosts.desk", controller))
    assert [m["meter_id"] for m in variables["netjoule_meters"]] == ["ap-power"]
    assert variables["ansible_connection"] == "local"
    assert of("laptop")["netjoule_meters"] == []


def test_hosts_are_provisioned_with_the_program_that_campaigns_run(monkeypatch):
    builds = {"aarch64": {"path": "/tree/dist/aarch64/netjoule-traffic", "problem": ""}}
    monkeypatch.setattr("netjoule.testbeds.lab.binaries.builds", lambda root: builds)
    loaded = topology.Topology.from_document(LAB, where="lab.yaml")
    assert inventory.common_variables(loaded)["netjoule_traffic_builds"] == builds


def test_every_variable_is_read_by_a_role():
    loaded = topology.Topology.from_document(LAB, where="lab.yaml")
    told = set(inventory.common_variables(loaded)).union(
        *(inventory.host_variables(loaded, name) for name in loaded.hosts)
    )
    roles = SHIPPED.parent / "ansible"
    texts = [path.read_text() for kind in ("*.yml", "*.j2") for path in roles.glob(f"roles/**/{kind}")]
    # The inventory plugin resolves the reference; ansible_* are Ansible's own.
    unread = {name for name in told if not any(name in text for text in texts)}
    assert {name for name in unread if not name.startswith("ansible_")} == {"netjoule_passphrase_reference"}


def test_what_cannot_be_provisioned_is_refused():
    with raises(UsageError):
        inventory.check_provisionable(topology.load(SHIPPED))
    document = changed(("kind", "guest"))
    del document["hosts"]["ap"]["control_address"]
    loaded = topology.Topology.from_document(document, where="lab.yaml")
    with raises(UsageError):
        inventory.check_provisionable(loaded)


def test_the_inventory_is_that_of_ansibles_scripts(capsys):
    modern = SHIPPED.parent / "testbed/topologies/modern.yaml"
    assert run_command(["provision", "--inventory", "--testbed", str(modern)]) == 0
    printed = json.loads(capsys.readouterr().out)
    loaded = topology.load(modern)
    assert printed.pop("_meta") == {
        "hostvars": {name: inventory.host_variables(loaded, name) for name in loaded.hosts}
    }
    assert printed.pop("all") == {"vars": inventory.common_variables(loaded)}
    assert set(printed) == set(inventory.ROLES)
    assert printed["client"] == {"hosts": ["laptop", "mini-pc", "raspberry-pi"]}


def test_secrets_are_revealed_to_a_pipe_only(capsys, monkeypatch, tmp_path):
    (tmp_path / "other").write_text("hunter3\n")
    monkeypatch.setenv("RACK_PASSPHRASE", "hunter2 canary")
    monkeypatch.setattr(
        "sys.stdin", io.StringIO(json.dumps(["env:RACK_PASSPHRASE", f"file:{tmp_path}/other"]))
    )
    assert run_command(["provision", "--reveal"]) == 0
    assert json.loads(capsys.readouterr().out) == ["hunter2 canary", "hunter3"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run_command(["provision", "--reveal"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "terminal" in told.err
