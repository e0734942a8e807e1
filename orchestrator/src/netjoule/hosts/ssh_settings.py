# SPDX-License-Identifier: Apache-2.0
"""How SSH reaches a host of the topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SshSettings:
    """Where and as whom: with keys and known hosts of the user, never with a password.

    Attributes:
        address: where its sshd answers; None where the topology tells neither that nor a control address.
        identity_file: private key; None leaves it to the user's configuration and agent.
        known_hosts: file with the host's key; None is the user's own.
        become: whether programs run by ``sudo -n``, for a user other than root.
    """

    name: str
    address: str | None
    user: str = "root"
    port: int = 22
    identity_file: str | None = None
    known_hosts: str | None = None
    become: bool = False

    @classmethod
    def of(cls, name: str, host: Mapping[str, Any]) -> SshSettings:
        """From a host's section of the topology; ``control_address`` unless ``ssh.address`` is given."""
        return cls(name, **{"address": host.get("control_address"), **host.get("ssh", {})})
