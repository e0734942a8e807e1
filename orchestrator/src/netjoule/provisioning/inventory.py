# SPDX-License-Identifier: Apache-2.0
"""A topology as Ansible's inventory: groups are roles, variables are what the roles of ansible/ take.

`netjoule provision --inventory` prints it, and ansible/plugins/inventory/netjoule_topology.py reads that.
References to secrets stay references here.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import UsageError
from netjoule.hosts.ssh_settings import SshSettings
from netjoule.testbeds.lab import binaries
from netjoule.topology.hosts import ROLES, TopologyHost
from netjoule.topology.topology import EMULATED, SIMULATED, Topology

_WITHOUT_HOSTS = {
    EMULATED: "an emulated testbed is set up by each run",
    SIMULATED: "a simulated testbed has no hosts",
}
_WIFI_DEFAULTS: dict[str, Any] = {"dfs": False, "forwarding": "routing", "rates": "automatic"}


def check_provisionable(topology: Topology) -> None:
    """Refuse a testbed without hosts to log in to.

    Raises:
        UsageError: for kind emulated or simulated, or a host of kind guest without an address.
    """
    if topology.kind in _WITHOUT_HOSTS:
        raise UsageError(
            f"{_WITHOUT_HOSTS[topology.kind]}; there is nothing to provision",
            where=f"topology {topology.name}",
            next_step="name a topology of kind lab or guest, such as one of testbed/topologies",
        )
    for name in topology.hosts:
        if topology.host(name).ssh.address is None:
            raise UsageError(
                "the field 'control_address' is missing",
                where=f"topology {topology.name}, field hosts.{name}",
                next_step="add the address at which its sshd answers",
            )


def inventory_document(topology: Topology) -> dict[str, Any]:
    """The inventory in the form of Ansible's inventory scripts ("Developing dynamic inventory").

    Raises:
        UsageError: see `check_provisionable`.
    """
    check_provisionable(topology)
    groups = {group: {"hosts": list(topology.hosts_with(group))} for group in ROLES}
    hosts = {name: host_variables(topology, name) for name in topology.hosts}
    return {"_meta": {"hostvars": hosts}, "all": {"vars": common_variables(topology)}, **groups}


def common_variables(topology: Topology) -> dict[str, Any]:
    """Variables of every host. netjoule_traffic_builds: what campaigns run, by architecture."""
    return {
        "netjoule_mtu_bytes": topology.mtu_bytes,
        "netjoule_traffic_builds": binaries.builds(programs.checkout()),
    }


def host_variables(topology: Topology, name: str) -> dict[str, Any]:
    """Variables of one host. netjoule_wifi has no passphrase; netjoule_passphrase_reference names it."""
    host = topology.host(name)
    # Meters plugged into it, as the document has them: secrets are references.
    plugged = {None, name} if "controller" in host.roles else {name}
    variables = _reached(host) | {
        "netjoule_service_manager": host.service_manager,
        "netjoule_control_address": host.control_address,
        "netjoule_test_addresses": {family: host.test_address(family) for family in host.test_addresses},
        "netjoule_meters": [one for one in topology.document["meters"] if one.get("host") in plugged],
    }
    return variables | _cable(host) | _radio(topology, host)


def wanted_wifi(topology: Topology) -> dict[str, Any]:
    """The variable netjoule_wifi of the radio roles, with defaults filled in and without the passphrase."""
    wifi = {key: value for key, value in topology.wifi.items() if key != "passphrase"}
    # YAML 1.1 reads a bare on as true.
    saves = wifi.get("power_save") in ("on", True)
    return _WIFI_DEFAULTS | wifi | {"power_save": "on" if saves else "off"}


def _reached(host: TopologyHost) -> dict[str, Any]:
    if "controller" in host.roles:
        return {"ansible_connection": "local", "ansible_become": host.ssh.become}
    reached: dict[str, Any] = {
        "ansible_host": host.ssh.address,
        "ansible_port": host.ssh.port,
        "ansible_user": host.ssh.user,
        "ansible_become": host.ssh.become,
        "ansible_ssh_common_args": shlex.join(_ssh_options(host.ssh)),
    }
    if host.ssh.identity_file:
        reached["ansible_ssh_private_key_file"] = _own(host.ssh.identity_file)
    return reached


def _ssh_options(ssh: SshSettings) -> list[str]:
    """Options of ssh(1): never ask, never trust a host whose key is not known."""
    options = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    if ssh.known_hosts:
        # ssh_config(5): the value is a list; quotes keep a name with a space together.
        options += ["-o", f'UserKnownHostsFile="{_own(ssh.known_hosts)}"']
    if ssh.identity_file:
        options += ["-o", "IdentitiesOnly=yes"]
    return options


def _own(path: str) -> str:
    """A path of this machine; Ansible runs elsewhere than in the working directory."""
    return str(Path(path).expanduser().absolute())


def _cable(host: TopologyHost) -> dict[str, Any]:
    """Interface, addresses and routes of the wired side; a host with a radio has its routes over that."""
    variables: dict[str, Any] = {}
    if host.wired:
        variables["base_host_wired_interface"] = host.wired.interface
        variables["base_host_wired_addresses"] = list(host.wired.addresses)
    if host.radio is None:
        variables["base_host_routes"] = _routes(host)
    return variables


def _routes(host: TopologyHost) -> list[dict[str, str]]:
    return [{"to": route.to, "via": route.via} for route in host.routes]


def _radio(topology: Topology, host: TopologyHost) -> dict[str, Any]:
    if host.radio is None:
        return {}
    variables: dict[str, Any] = {
        "netjoule_radio_interface": host.radio.interface,
        "netjoule_radio_reader": host.radio.reader,
        "netjoule_wifi": wanted_wifi(topology),
    }
    if "passphrase" in topology.wifi:
        variables["netjoule_passphrase_reference"] = topology.wifi["passphrase"]
    if "access_point" in host.roles:
        variables["access_point_addresses"] = list(host.radio.addresses)
        variables["access_point_routes"] = _routes(host)
        variables["access_point_wired_interface"] = host.wired.interface if host.wired else ""
    if "client" in host.roles:
        variables["wifi_client_addresses"] = list(host.radio.addresses)
        variables["wifi_client_routes"] = _routes(host)
    return variables
