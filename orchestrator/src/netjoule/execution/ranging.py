# SPDX-License-Identifier: Apache-2.0
"""The ranging pass of a campaign: meters choose their ranges under its heaviest work; then those are fixed.

A topology says ``auto`` for a range that nobody knows yet. Before the first mini-block all such meters are
watched while the load does the work of its heaviest conditions; the ranges found stand in campaign.json, and
a resumed campaign keeps them. No run is ever measured in autorange.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import programs
from netjoule.core.errors import RunFailed, UsageError
from netjoule.design import instruments
from netjoule.design.timeline import UNTIL_DONE
from netjoule.hosts.host import Process
from netjoule.store.campaign import Campaign
from netjoule.testbeds.base import MeterPlace, Testbed
from netjoule.topology.topology import Meter
from netjoule.workload.load import Condition, Load, Place

LEAST_PASS_S = 4.0
PASS_UPDATES = 12
_START_S = 10.0  # interpreter, opening and setting up an instrument
_EXIT_USAGE = 2


def pass_s(meters: Sequence[Meter]) -> float:
    """How long the work of each heavy condition lasts, seconds: a dozen updates of the slowest meter."""
    slowest_s = max(instruments.pace_of(meter).update_interval_s for meter in meters)
    return max(LEAST_PASS_S, PASS_UPDATES * slowest_s)


async def find_ranges(campaign: Campaign, testbed: Testbed, load: Load) -> dict[str, dict[str, Any]]:
    """What the pass found by meter_id (settings, most_v, most_a, ...); empty when no range is ``auto``.

    Args:
        campaign: tells the meters.
        testbed: that is up, its meters not logged yet.
        load: of the campaign.

    Raises:
        UsageError: when a meter has no range that holds the load.
        RunFailed: when the pass did not work.
    """
    if not any(instruments.wants_ranging(meter) for meter in campaign.topology.meters):
        return {}
    wanted = [
        (place, meter)
        for place in await testbed.meter_places()
        for meter in place.meters
        if instruments.wants_ranging(meter)
    ]
    work_s = pass_s([meter for _, meter in wanted])
    conditions = load.heaviest()
    lengths_s = [max(work_s, await _warmed_up_s(load, one, testbed.place, work_s)) for one in conditions]
    watched_s = sum(lengths_s) + 1.0
    watches: list[Process] = []
    try:
        for place, meter in wanted:
            watches.append(await _start_watch(meter, place, watched_s))
        for condition in conditions:
            session = await load.open(condition, testbed.place, work_s)
            try:
                await session.go()
                await session.outcome(_OwnTime())
            finally:
                await session.end()
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
    return f"{meter_id}: at most {seen} under the heaviest work; now fixed: {settings}"


async def _warmed_up_s(load: Load, condition: Condition, place: Place, work_s: float) -> float:
    """How long work until done may take, seconds: getting ready for the first time is such work, too.

    0 for work that is as long as it is asked to be.
    """
    if contracts.loads()[load.name]["window"] != UNTIL_DONE:
        return 0.0
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    session = await load.open(condition, place, work_s)
    await session.end()
    return loop.time() - began_s


async def _start_watch(meter: Meter, place: MeterPlace, seconds: float) -> Process:
    argv = [programs.find("netjoule-meters"), "range", "--config", place.config, "--meter-id", meter.meter_id]
    argv += ["--seconds", f"{seconds:g}", "--json"]
    return await place.host.start(argv, name="netjoule-meters range", env=place.environment)


class _OwnTime:
    """Of no campaign yet: nobody asks when this work was done."""

    def campaign_s(self, _host: str, at_ns: int) -> float:
        return at_ns / 1e9

    def host_ns(self, _host: str, t_s: float) -> int:
        return round(t_s * 1e9)


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
