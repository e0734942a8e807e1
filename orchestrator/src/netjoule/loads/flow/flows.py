# SPDX-License-Identifier: Apache-2.0
"""Which flows a run has. Pure.

Most runs have one. A workload can ask for several of the run's transport (``parallel``), for both directions
at once, for others side by side with them (``beside``) and for several clients; each client then has all of
them. They are numbered from 1, client by client; flow 1 is one of the run's own transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netjoule.loads.flow import transports
from netjoule.loads.flow.condition import FlowCondition
from netjoule.loads.flow.settings import NULL, FlowSettings

_LARGEST_SEED = 2**53 - 1


@dataclass(frozen=True, slots=True)
class RunFlow:
    """One flow of a run.

    Attributes:
        flow: its number, from 1: what its seeds go by, so that they are the same for every transport of a
            mini-block, and others for each flow, at whichever client.
        client: host of its client.
    """

    flow: int
    client: str
    transport: str
    direction: str
    payload_bytes: int
    offered_rate_mbps: float
    options: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As the work of a run has it."""
        return {
            "flow": self.flow,
            "client": self.client,
            "transport": self.transport,
            "direction": self.direction,
            "payload_bytes": self.payload_bytes,
            "offered_rate_mbps": self.offered_rate_mbps,
        }

    def seed(self, of_run: int) -> int:
        """Seed of this flow where the run's first has `of_run`."""
        return (of_run + self.flow - 1) % (_LARGEST_SEED + 1)

    def __str__(self) -> str:
        """In words: ``flow 2 (tcp down of laptop)``."""
        return f"flow {self.flow} ({self.transport} {self.direction} of {self.client})"


def flows_of(settings: FlowSettings, asked: FlowCondition, clients: Sequence[str]) -> tuple[RunFlow, ...]:
    """The flows of a run.

    Args:
        settings: says how many and what runs beside them.
        asked: of the run; in a null run what runs beside goes to null too.
        clients: hosts with the role client, in the topology's order; as many as are wanted take part.
    """
    own: tuple[str, int, float, Mapping[str, Any]] = (
        asked.transport,
        asked.payload_bytes,
        asked.offered_rate_mbps,
        _options(settings, asked, asked.transport),
    )
    kinds = [own] * asked.parallel
    for other in settings.beside:
        name = NULL if asked.transport == NULL else other.transport
        kinds.append(
            (
                name,
                other.payload_bytes or asked.payload_bytes,
                other.offered_rate_mbps or asked.offered_rate_mbps,
                settings.options_of(name),
            )
        )
    flows: list[RunFlow] = []
    for client in clients[: settings.clients]:
        for transport, payload, rate, options in kinds:
            for direction in _directions(asked.direction):
                number = len(flows) + 1
                flows.append(RunFlow(number, client, transport, direction, payload, rate, dict(options)))
    return tuple(flows)


def _options(settings: FlowSettings, asked: FlowCondition, transport: str) -> dict[str, Any]:
    """Options of the run's own transport; a factor that it lets be chosen wins."""
    options = dict(settings.options_of(transport))
    name = "congestion_control"
    if asked.congestion_control is not None and transports.has_option(transport, name):
        options[name] = asked.congestion_control
    return options


def _directions(direction: str) -> tuple[str, ...]:
    return ("up", "down") if direction == "both" else (direction,)
