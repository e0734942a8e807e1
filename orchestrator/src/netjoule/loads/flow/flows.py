# SPDX-License-Identifier: Apache-2.0
"""Which flows a run has, as its generator is asked for them. Pure.

Most runs have one. A workload can ask for several of the run's transport (``parallel``), for both directions
at once, for others side by side with them (``beside``) and for several clients; each client then has all of
them. They are numbered from 1, client by client; flow 1 is one of the run's own transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from netjoule.design import run_table
from netjoule.loads.flow import transports
from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.settings import NULL, FlowSettings, Pace
from netjoule.workload.load import Condition

_SEEDS = 2**53


def flows_of(
    settings: FlowSettings, condition: Condition, clients: Sequence[str], duration_s: float = 0.0
) -> tuple[FlowSpec, ...]:
    """The flows of a run.

    Args:
        settings: says how many and what runs beside them.
        condition: of the run; in a null run what runs beside goes to null too.
        clients: hosts with the role client, in the topology's order; as many as are wanted take part.
        duration_s: how long each sends.
    """
    factors, pace = condition.factors, Pace.of(condition.factors)
    directions = ("up", "down") if factors["direction"] == "both" else (str(factors["direction"]),)
    asked = product(clients[: settings.clients], _kinds(settings, condition), directions)
    return tuple(
        FlowSpec(
            flow=number,
            client=client,
            run_id=condition.run_id,
            transport=kind[0],
            payload_bytes=kind[1],
            offered_rate_mbps=kind[2],
            duration_s=duration_s,
            direction=direction,
            ip_version=settings.ip_version,
            seed=_seed(condition.seed, number),
            pacing=pace.mode,
            window_us=pace.window_us,
            gso=pace.gso,
            pacing_limits=settings.pacing_limits,
            options=kind[3],
            profile=settings.profile,
            schedule_seed=_seed(condition.schedule_seed, number),
        )
        for number, (client, kind, direction) in enumerate(asked, 1)
    )


def _kinds(settings: FlowSettings, condition: Condition) -> list[tuple[str, int, float, dict[str, Any]]]:
    """Transport, payload size, rate and options of each flow of one client and direction."""
    factors = condition.factors
    transport = NULL if condition.control else str(factors["transport"])
    payload_bytes, rate_mbps = int(factors["payload_bytes"]), float(factors["offered_rate_mbps"])
    variant = settings.variant_of(transport)
    sends = (payload_bytes, variant.offered_rate_mbps or rate_mbps)
    own = (variant.transport, *sends, _options(settings, transport, factors))
    kinds = [own] * int(factors["parallel"])
    for other in settings.beside:
        name = NULL if transport == NULL else other.transport
        beside = settings.variant_of(name)
        beside_mbps = other.offered_rate_mbps or beside.offered_rate_mbps or rate_mbps
        sends = (other.payload_bytes or payload_bytes, beside_mbps)
        kinds.append((beside.transport, *sends, dict(beside.options)))
    return kinds


def heaviest(settings: FlowSettings) -> tuple[Condition, ...]:
    """Greatest rate with the greatest and with the smallest messages, each once with every build."""
    return tuple(
        Condition(
            arm=settings.transports[0],
            factors={
                "transport": settings.transports[0],
                "payload_bytes": payload_bytes,
                "offered_rate_mbps": max(settings.offered_rate_mbps),
                "direction": "both" if len(settings.directions) > 1 else settings.directions[0],
                "parallel": max(settings.parallel),
                "pacing": "absolute",
                "window_us": 0,
                "gso": False,
                **({"build": build.name} if build.name else {}),
            },
            run_id="ranging",
            seed=0,
            schedule_seed=run_table.schedule_seed(0, 1),
        )
        for build in settings.builds
        for payload_bytes in dict.fromkeys((max(settings.payload_bytes), min(settings.payload_bytes)))
    )


def _seed(of_run: int, flow: int) -> int:
    """A flow's seed by its number: the same for every transport of a mini-block, another for each flow."""
    return (of_run + flow - 1) % _SEEDS


def _options(settings: FlowSettings, transport: str, factors: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the run's own transport; a factor that it lets be chosen goes before all but a variant's."""
    variant, name = settings.variant_of(transport), "congestion_control"
    options = dict(variant.options)
    own = settings.variants.get(transport)
    is_chosen = own is not None and name in own.options
    if factors.get(name) is not None and transports.has_option(variant.transport, name) and not is_chosen:
        options[name] = factors[name]
    return options
