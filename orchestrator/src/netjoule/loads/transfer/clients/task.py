# SPDX-License-Identifier: Apache-2.0
"""What a client is asked to do, and how a program is started that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netjoule.loads.transfer.private_folder import FOLDER

MOST_CONNECTIONS = 64
"""Of any client at once, whatever its own limits are."""
CA_FILE = f"{FOLDER}/ca.pem"
SAVED = "saved"
"""Where a program saves files, below its working directory."""


@dataclass(frozen=True, slots=True)
class Task:
    """A set of files to fetch.

    Attributes:
        url: of the folder that they lie in, without a slash at its end.
        files: bytes of each file by name, in the order of the set.
        http: the HTTP version that is asked for, of those that the client speaks.
        tls: whether over TLS.
    """

    url: str
    files: Mapping[str, int]
    http: str
    tls: bool

    @property
    def urls(self) -> list[str]:
        """Of each file."""
        return [f"{self.url}/{name}" for name in self.files]

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(self.files.values())

    def shared_out(self, most_parts: int) -> tuple[int, int]:
        """Files at once, and connections for each, at most `most_parts`, when all connections are used."""
        at_once = min(MOST_CONNECTIONS, len(self.files))
        return at_once, min(most_parts, MOST_CONNECTIONS // at_once)


@dataclass(frozen=True, slots=True)
class Invocation:
    """Programs that are started one after the other, each in a working directory where SAVED is.

    Attributes:
        files: text of files by their path below FOLDER.
        environment: variables of the programs.
    """

    argvs: Sequence[Sequence[str]]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
