# SPDX-License-Identifier: Apache-2.0
"""Inventory plugin: hosts, groups and variables of a topology, as `netjoule provision --inventory` says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.template import trust_as_template

DOCUMENTATION = """
name: netjoule_topology
short_description: Hosts of a netjoule topology file
description:
  - Groups are the roles of the topology (client, access_point, server, web_server, meter_host,
    observer, controller).
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
        self._fill(_described(path))

    def _fill(self, described: dict[str, Any]) -> None:
        variables = described.pop("_meta")["hostvars"]
        for key, value in described.pop("all")["vars"].items():
            self.inventory.set_variable("all", key, value)
        for group, members in described.items():
            self.inventory.add_group(group)
            for name in members["hosts"]:
                self.inventory.add_host(name, group=group)
        for name, own in variables.items():
            for key, value in own.items():
                self.inventory.set_variable(name, key, value)
                if key == "netjoule_wifi":
                    self.inventory.set_variable(name, "netjoule_network", value | _NO_PASSPHRASE)
                    self.inventory.set_variable(name, key, _with_passphrase(value))


def _described(path: str) -> dict[str, Any]:
    """The inventory that netjoule prints: that of this Python, else the one on the search path."""
    own = Path(sys.executable).parent / "netjoule"
    command = [str(own) if own.is_file() else "netjoule", "provision", "--inventory", "--testbed", path]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise AnsibleParserError(
            "the Python that runs Ansible has no netjoule; use `netjoule provision`, or install "
            "orchestrator there"
        ) from error
    if ended.returncode != 0:
        raise AnsibleParserError(ended.stderr.strip().removeprefix("netjoule: "))
    described: dict[str, Any] = json.loads(ended.stdout)
    return described


def _with_passphrase(value: dict[str, Any]) -> dict[str, Any]:
    if value["security"] == "open":
        return value
    return value | {"passphrase": trust_as_template(_LOOKED_UP_LATE)}
