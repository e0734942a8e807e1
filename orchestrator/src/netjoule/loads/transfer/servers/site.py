# SPDX-License-Identifier: Apache-2.0
"""What a web server has to serve, and how one is started that does: what the three of them have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netjoule.loads.transfer.private_folder import FOLDER

FILES = f"{FOLDER}/files"
"""What it serves."""
STATE = f"{FOLDER}/state"
"""Where it may write."""
NAME = "server.netjoule.test"
"""Of every server, as its clients alone know it: some programs hold no certificate to an address."""
CERTIFICATE, KEY = f"{FOLDER}/tls/server.pem", f"{FOLDER}/tls/server.key"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a server listens: plain HTTP/1.1 on one port, TLS on the other."""

    address: str
    http_port: int
    https_port: int

    @property
    def bracketed(self) -> str:
        """The address as URLs and configurations have it."""
        return f"[{self.address}]" if ":" in self.address else self.address

    @property
    def plain(self) -> str:
        """Address and port of plain HTTP."""
        return f"{self.bracketed}:{self.http_port}"

    @property
    def tls(self) -> str:
        """Those of TLS."""
        return f"{self.bracketed}:{self.https_port}"

    @property
    def host(self) -> str:
        """Its line in /etc/hosts."""
        return f"{self.address} {NAME}"

    def url(self, *, tls: bool) -> str:
        """Of all that it serves, without a slash at its end."""
        return f"https://{NAME}:{self.https_port}" if tls else f"http://{NAME}:{self.http_port}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a server is started for a site.

    Attributes:
        program: by its name.
        arguments: that make it stay in the foreground, with its own configuration.
        configuration: files by their path below FOLDER.
        version_arguments: with which it tells its version.
        environment: variables of its own.
    """

    program: str
    arguments: Sequence[str]
    configuration: Mapping[str, str]
    version_arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
