# SPDX-License-Identifier: Apache-2.0
"""What Ansible's plugins ask for while a play runs, each time as a process: little is loaded here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from netjoule.core import secrets
from netjoule.core.errors import UsageError


def print_inventory(testbed: Path) -> None:
    """Print the hosts of a topology as Ansible's inventory; secrets stay references.

    Raises:
        UsageError: naming the field that does not fit.
    """
    from netjoule.provisioning.inventory import inventory_document
    from netjoule.topology.topology import load

    sys.stdout.write(json.dumps(inventory_document(load(testbed))) + "\n")


def print_secrets() -> None:
    """Print the values of the references on standard input, both as lists of JSON, for Ansible's lookup.

    Raises:
        UsageError: on a terminal, where everybody could read them.
        HostLacks: when one is missing; the name is shown, never a value.
    """
    if sys.stdout.isatty():
        raise UsageError("--reveal is for Ansible, which reads a pipe: nothing is revealed on a terminal")
    values = [secrets.resolve(one, where="wifi.passphrase").reveal() for one in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(values) + "\n")
