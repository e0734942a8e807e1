# SPDX-License-Identifier: Apache-2.0
"""What the clients that weigh energy look for, as it was asked for and as it came to be. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.loads.transfer.clients import ours
from netjoule.workload.load import LiveEnergy

EFFICIENCY, FRUGAL = "efficiency", "frugal"
_WEIGH = ("eht", "auto")
_NEED_ENERGY = (EFFICIENCY, "energy")


@dataclass(frozen=True, slots=True)
class Objective:
    """What a client looks for.

    Attributes:
        asked: a word of netjoule-transfer's.
        energy: of its host, which it is told; None where it needs none, or nobody tells.
    """

    asked: str
    energy: LiveEnergy | None

    @classmethod
    def of(cls, client: str, asked: str | None, energy: LiveEnergy | None) -> Objective | None:
        """Of a client; None where it looks for nothing. Unless asked: efficiency where energy is told."""
        if ours.algorithm(client) not in _WEIGH:
            return None
        asked = asked or (EFFICIENCY if energy else FRUGAL)
        return cls(asked, energy if asked in _NEED_ENERGY else None)

    def arguments(self) -> list[str]:
        """Of netjoule-transfer."""
        return ["--objective", self.asked, *(["--energy-stdin"] if self.energy else [])]

    def told(self, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """As transfer.json has it. Without energy netjoule-transfer takes one that needs it for frugal."""
        seen = [
            decision["seen"] for run in runs for record in run["records"] for decision in record["decisions"]
        ]
        knew = [self.asked not in _NEED_ENERGY or one["energy_uj"] is not None for one in seen]
        words = [self.asked] * any(knew) + [FRUGAL] * (not knew or not knew[-1])
        source = None if self.energy is None else self.energy.source
        return {"asked": self.asked, "energy_from": source, "in_force": words}
