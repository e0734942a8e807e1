# SPDX-License-Identifier: Apache-2.0
"""How SSH reaches a host of the topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_USUAL_KNOWN_HOSTS = Path("~/.ssh/known_hosts")


@dataclass(frozen=True, slots=True)
class SshSettings:
    """Where and as whom; keys and known hosts are the user's unless the topology names files.

    Attributes:
        become: whether programs run by ``sudo -n``, for a user other than root.
    """

    name: str
    address: str
    user: str = "root"
    port: int = 22
    identity_file: Path | None = None
    known_hosts: Path | None = None
    become: bool = False

    @classmethod
    def of(cls, name: str, host: Mapping[str, Any]) -> SshSettings:
        """From a host's section of the topology; ``control_address`` unless ``ssh.address`` is given."""
        told = host.get("ssh", {})
        paths = {k: Path(told[k]).expanduser() for k in ("identity_file", "known_hosts") if k in told}
        return cls(
            name=name,
            address=str(told.get("address", host.get("control_address", name))),
            user=str(told.get("user", "root")),
            port=int(told.get("port", 22)),
            become=bool(told.get("become", False)),
            **paths,
        )

    @property
    def known(self) -> Path:
        """The known_hosts file in use."""
        return self.known_hosts or _USUAL_KNOWN_HOSTS
