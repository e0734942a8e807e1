# SPDX-License-Identifier: Apache-2.0
"""Inventory plugin: hosts, groups and variables of a topology file. See netjoule.provisioning.inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.template import trust_as_template

DOCUMENTATION = """
name: netjoule_topology
short_description: Hosts of a netjoule topology file
description:
  - Groups are the roles of the topology (client, access_point, server, meter_host, observer, controller).
  - The passphrase of the radio network is looked up when a task uses netjoule_wifi, and not before;
    netjoule_network is the network without it, for what only compares.
author: [netjoule]
options: {}
"""

EXAMPLES = """
# ansible-inventory -i testbed-topology.yaml --graph
"""

# What the reference names is read by the one lookup, when a task asks for it.
_LOOKED_UP_LATE = "{{ lookup('netjoule_secret', netjoule_passphrase_reference) }}"

# Stands for it where nothing is configured: the settings of a secured network are refused without one.
_NO_PASSPHRASE = {"passphrase": "not looked up"}


class InventoryModule(BaseInventoryPlugin):
    """Fills Ansible's inventory from one topology file."""

    NAME = "netjoule_topology"

    def verify_file(self, path: str) -> bool:
        """Whether this may be a topology: a YAML file. Its contents are judged by parse."""
        return super().verify_file(path) and Path(path).suffix in (".yaml", ".yml")

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Read the file. AnsibleParserError names file, line and field of what does not fit."""
        super().parse(inventory, loader, path, cache)
        try:
            from netjoule.core.errors import NetjouleError
            from netjoule.provisioning import inventory as described
            from netjoule.topology import topology
        except ImportError as error:
            raise AnsibleParserError(
                "the Python that runs Ansible has no netjoule; use `netjoule provision`, or install "
                "orchestrator there"
            ) from error
        try:
            loaded = topology.load(Path(path))
            described.check_provisionable(loaded)
        except NetjouleError as error:
            raise AnsibleParserError(str(error)) from error
        self._fill(described, loaded)

    def _fill(self, described: Any, loaded: Any) -> None:
        for group in described.GROUPS:
            self.inventory.add_group(group)
        for key, value in described.common_variables(loaded).items():
            self.inventory.set_variable("all", key, value)
        for name in loaded.hosts:
            for role in loaded.host(name).roles:
                self.inventory.add_host(name, group=role)
            for key, value in described.host_variables(loaded, name).items():
                self.inventory.set_variable(name, key, value)
                if key == "netjoule_wifi":
                    self.inventory.set_variable(name, "netjoule_network", value | _NO_PASSPHRASE)
                    self.inventory.set_variable(name, key, _with_passphrase(value))


def _with_passphrase(value: dict[str, Any]) -> dict[str, Any]:
    if value["security"] == "open":
        return value
    return value | {"passphrase": trust_as_template(_LOOKED_UP_LATE)}
