# SPDX-License-Identifier: Apache-2.0
"""Which flows are tried: pairs of implementations x CCID x IP version x loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

LOSSES = (0, 1, 5)
"""Percent, on each direction: acknowledgements and packets of set-up and close can be lost as well."""

RATE_MBIT = 10
DELAY_MS = 20
QUEUE_PACKETS = 200
SECONDS = 5
MESSAGE_BYTES = 1380
"""With CCID 2 the kernel adds up to 40 bytes of options and loses its own packets when they do not fit."""

OFFERED = "9M"
"""Just below the path's rate: where no loss is made, none happens; 1 and 5 % hold every CCID far below it."""

_PATH = f"limit {QUEUE_PACKETS} delay {DELAY_MS}ms rate {RATE_MBIT}mbit"
CCIDS = (2, 3)
IP_VERSIONS = (4, 6)
REPETITIONS = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """Who sends to whom.

    Attributes:
        name: as the tables say it, client (sender of data) first.
        options: of ``netjoule-traffic send``.
        raw_ends: ends whose kernel must not answer for the user-space stack (``client``, ``server``).
    """

    name: str
    options: tuple[str, ...]
    raw_ends: tuple[str, ...]


KERNEL = Pair("kernel to kernel", ("--transport", "dccp-kernel"), ())
TO_KERNEL = Pair(
    "ours to kernel", ("--transport", "dccp", "--carrier", "raw", "--peer-carrier", "kernel"), ("client",)
)
FROM_KERNEL = Pair("kernel to ours", ("--transport", "dccp-kernel", "--peer-carrier", "raw"), ("server",))
RANDOM_LOSS_PERCENT = 5
ENCAPSULATED = Pair("ours to ours over UDP", ("--transport", "dccp", "--carrier", "udp"), ())
PAIRS = {pair.name: pair for pair in (KERNEL, TO_KERNEL, FROM_KERNEL, ENCAPSULATED)}


@dataclass(frozen=True, slots=True)
class Cell:
    """One flow."""

    pair: str
    ccid: int
    ip_version: int
    loss_percent: int
    repetition: int
    random: bool = False
    """Lost by chance (netem) instead of at regular distances: only judged for what must never happen."""

    @property
    def name(self) -> str:
        """For file names and messages."""
        pair = self.pair.replace(" ", "-")
        how = "random" if self.random else "loss"
        return f"{pair}.ccid{self.ccid}.ipv{self.ip_version}.{how}{self.loss_percent}.{self.repetition}"

    def document(self) -> dict[str, Any]:
        """What inside.py is told."""
        pair = PAIRS[self.pair]
        return {
            "name": self.name,
            "options": [*pair.options, "--ccid", str(self.ccid)],
            "raw_ends": list(pair.raw_ends),
            "ip_version": self.ip_version,
            "netem": _PATH + (f" loss {self.loss_percent}%" if self.random else ""),
            "lose": self._lose(),
            "offered": OFFERED,
            "message_bytes": MESSAGE_BYTES,
            "seconds": SECONDS,
            "capture": True,
        }

    def _lose(self) -> dict[str, int] | None:
        """Which packets of each direction are lost: one of ``every``, first the one with index ``first``.

        Repetitions begin late, with the very first packet (Request, Response), and with the second.
        """
        if self.random or self.loss_percent == 0:
            return None
        every = 100 // self.loss_percent
        return {"every": every, "first": (self.repetition - 1) % every}

    @property
    def path(self) -> tuple[int, int, int]:
        """CCID, IP version and loss: cells of one path are compared."""
        return self.ccid, self.ip_version, self.loss_percent


def whole() -> list[Cell]:
    """All pairs, CCIDs, IP versions and losses, three times; pairs of one path follow each other."""
    paths = product(IP_VERSIONS, CCIDS, LOSSES)
    return [cell for path in paths for cell in compared(*path, REPETITIONS)] + _by_chance(IP_VERSIONS)


def reduced() -> list[Cell]:
    """Once: each direction, CCID and IP version, with 1 % loss on one path; random losses over UDP."""
    paths = [(4, 2, LOSSES[1]), (4, 3, 0), (6, 2, 0)]
    return [cell for path in paths for cell in compared(*path, 1)] + _by_chance((4,))[:1]


def compared(
    ip_version: int, ccid: int, loss_percent: int, repetitions: int, first: int = 0
) -> Iterator[Cell]:
    """Ours in both directions beside kernel to kernel, back to back on one path."""
    for repetition in range(first, first + repetitions):
        for pair in (KERNEL, TO_KERNEL, FROM_KERNEL):
            yield Cell(pair.name, ccid, ip_version, loss_percent, repetition)


def _by_chance(ip_versions: tuple[int, ...]) -> list[Cell]:
    """Random losses; over UDP there is nothing of the kernel's to compare with, but others must read it."""
    return [
        Cell(pair.name, ccid, ip_version, RANDOM_LOSS_PERCENT, 0, random=True)
        for ip_version, ccid, pair in product(ip_versions, CCIDS, (ENCAPSULATED, TO_KERNEL, FROM_KERNEL))
    ]
