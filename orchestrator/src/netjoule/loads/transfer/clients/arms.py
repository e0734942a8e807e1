# SPDX-License-Identifier: Apache-2.0
"""The arms: what each value of the factor client is, and which HTTP versions it speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from netjoule.loads.transfer.clients import ours, peers
from netjoule.loads.transfer.clients.task import Invocation, Task


@dataclass(frozen=True, slots=True)
class Client:
    """A client.

    Attributes:
        program: that it is.
        http_versions: that it speaks, the oldest first.
        invocation: of a peer, from what is to be fetched; None of ours.
    """

    program: str
    http_versions: Sequence[str]
    invocation: Callable[[Task], Invocation] | None = None

    def version_for(self, asked: str) -> str:
        """The HTTP version that it uses where one is asked for: that, else the next older one that it has."""
        return next((own for own in reversed(self.http_versions) if own <= asked), self.http_versions[0])


_OLD, _BOTH, _ALL = ("1.1",), ("1.1", "2"), ("1.1", "2", "3")
CLIENTS: Mapping[str, Client] = {
    **{name: Client(ours.PROGRAM, _ALL) for name in ours.ALGORITHMS},
    "h1": Client(ours.PROGRAM, _OLD),
    "h2": Client(ours.PROGRAM, ("2",)),
    "h3": Client(ours.PROGRAM, ("3",)),
    "wget": Client("wget", _OLD, peers.wget),
    "wget2": Client("wget2", _BOTH, peers.wget2),
    "wget2-best": Client("wget2", _BOTH, peers.wget2_best),
    "curl": Client("curl", _BOTH, peers.curl),
    "curl-Z": Client("curl", _BOTH, peers.curl_parallel),
    "curl-Z-best": Client("curl", _BOTH, peers.curl_parallel_best),
    "aria2": Client("aria2c", _OLD, peers.aria2),
    "aria2-best": Client("aria2c", _OLD, peers.aria2_best),
    "axel": Client("axel", _OLD, peers.axel),
    "axel-best": Client("axel", _OLD, peers.axel_best),
    "lftp": Client("lftp", _OLD, peers.lftp),
    "lftp-best": Client("lftp", _OLD, peers.lftp_best),
    ours.NULL: Client(ours.PROGRAM, _OLD),
}
"""By name, which is a value of the factor client."""
