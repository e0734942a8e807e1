# SPDX-License-Identifier: Apache-2.0
"""The ranging pass of a campaign: meters choose their ranges under its heaviest flows; then those are fixed.

A topology says ``auto`` for a range that nobody knows yet. Before the first mini-block all such meters are
watched while the workload's greatest and smallest messages go out at its greatest rate; the ranges found
stand in campaign.json, and a resumed campaign keeps them. No run is ever measured in autorange.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from netjoule.core import programs
from netjoule.core.errors import RunFailed, UsageError
from netjoule.design import instruments
from netjoule.design.run_table import PlanRow
from netjoule.hosts.host import Host, Process
from netjoule.loads.flow.flows import RunFlow, flows_of
from netjoule.loads.flow.generators import FlowSpec, Generator, generator
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.run_document import flow_spec
from netjoule.loads.flow.senders import open_group
from netjoule.store.campaign import Campaign
from netjoule.topology.topology import Meter
from netjoule.workload.workload import Workload

__all__ = ["Place", "find_ranges", "heaviest_flows", "pass_s", "words"]

LEAST_PASS_S = 4.0
PASS_UPDATES = 12
_START_S = 10.0  # interpreter, opening and setting up an instrument
_EXIT_USAGE = 2


@dataclass(frozen=True, slots=True)
class Place:
    """A host that has meters, which nobody has open yet.

    Attributes:
        config: path there of their meter_config.
        environment: secrets that it refers to.
    """

    host: Host
    config: str
    meters: Sequence[Meter]
    environment: Mapping[str, str] = field(default_factory=dict)


class _Ends(Protocol):
    """What the pass needs of a testbed."""

    @property
    def endpoints(self) -> Endpoints: ...

    async def ensure_server(self, generator: Generator) -> bool: ...


def pass_s(meters: Sequence[Meter]) -> float:
    """How long each heavy load of a pass lasts, seconds: a dozen updates of the slowest meter."""
    slowest_s = max(instruments.pace_of(meter).update_interval_s for meter in meters)
    return max(LEAST_PASS_S, PASS_UPDATES * slowest_s)


def heaviest_flows(
    workload: Workload, duration_s: float, clients: Sequence[str]
) -> list[list[tuple[RunFlow, FlowSpec]]]:
    """What loads the clients most: greatest rate with the greatest and the smallest messages.

    Args:
        clients: hosts that take part.

    Returns:
        loads, to be sent one after the other; each has all flows of a run, which go at once.
    """
    transport = next((t for t in workload.transports if t != "null"), "udp")
    row = PlanRow(
        run_id="ranging",
        block=1,
        mini_block=1,
        order=1,
        attempt=1,
        transport=transport,
        payload_bytes=max(workload.payload_bytes),
        offered_rate_mbps=max(workload.offered_rate_mbps),
        direction=workload.direction,
        generator=workload.generator_of(transport),
        seed=0,
    )
    rows = [row, replace(row, payload_bytes=min(workload.payload_bytes))]
    return [
        [
            (flow, replace(flow_spec(workload, one, 0.0, 0, flow=flow), duration_s=duration_s))
            for flow in flows_of(workload, one, clients)
        ]
        for one in dict.fromkeys(rows)
    ]


async def find_ranges(campaign: Campaign, places: Sequence[Place], ends: _Ends) -> dict[str, dict[str, Any]]:
    """What the pass found by meter_id (settings, most_v, most_a, ...); empty when no range is ``auto``.

    Args:
        campaign: tells workload and topology.
        places: where the campaign's meters are.
        ends: the testbed, with its link up.

    Raises:
        UsageError: when a meter has no range that holds the load.
        RunFailed: when the pass did not work.
    """
    wanted = [
        (place, meter) for place in places for meter in place.meters if instruments.wants_ranging(meter)
    ]
    if not wanted:
        return {}
    flow_s = pass_s([meter for _, meter in wanted])
    # By the hosts' names, which are the topology's.
    of_clients = {one.client.name: one for one in ends.endpoints.of_each_client()}
    loads = heaviest_flows(campaign.workload, flow_s, tuple(of_clients))
    watched_s = flow_s * len(loads) + 1.0
    watches: list[Process] = []
    try:
        for place, meter in wanted:
            watches.append(await _start_watch(meter, place, watched_s))
        maker = generator(campaign.workload.generator_of(loads[0][0][1].transport))
        await ends.ensure_server(maker)
        for load in loads:
            await _send(load, maker, of_clients)
        return {
            meter.meter_id: await _answer(meter, watch, watched_s)
            for (_, meter), watch in zip(wanted, watches, strict=True)
        }
    finally:
        for watch in watches:
            await watch.stop()


def words(meter_id: str, found: Mapping[str, Any]) -> str:
    """What a pass found, for people."""
    settings = ", ".join(f"{name} {value:g}" for name, value in found["settings"].items())
    seen = f"{found['most_v']:.4g} V, {found['most_a']:.4g} A, {found['most_w']:.4g} W"
    return f"{meter_id}: at most {seen} under the heaviest flows; now fixed: {settings}"


async def _start_watch(meter: Meter, place: Place, seconds: float) -> Process:
    argv = [programs.find("netjoule-meters"), "range", "--config", place.config, "--meter-id", meter.meter_id]
    argv += ["--seconds", f"{seconds:g}", "--json"]
    return await place.host.start(argv, name="netjoule-meters range", env=place.environment)


async def _send(
    load: Sequence[tuple[RunFlow, FlowSpec]], maker: Generator, ends: Mapping[str, Endpoints]
) -> None:
    """Send the flows of one load, from the first `go` to the last report."""
    group = await open_group(maker, load, ends)
    try:
        await group.go()
        await group.reports()
    finally:
        await group.end()


async def _answer(meter: Meter, watch: Process, seconds: float) -> dict[str, Any]:
    """The line that a watch ends with."""
    try:
        async with asyncio.timeout(seconds + _START_S):
            line = await watch.next_line()
            status = await watch.wait()
    except TimeoutError:
        raise RunFailed(f"the ranging pass of meter {meter.meter_id} did not end") from None
    if status or not line:
        said = watch.said().removeprefix("netjoule-meters: ")
        where = f"ranging pass of meter {meter.meter_id}"
        if status == _EXIT_USAGE:
            raise UsageError(said, where=where)
        raise RunFailed(said or "it said nothing", where=where, next_step="set the ranges in the topology")
    return dict(json.loads(line))
