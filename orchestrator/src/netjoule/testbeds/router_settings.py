# SPDX-License-Identifier: Apache-2.0
"""Can routers have the settings that a workload asks for? The model says so before anything starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from netjoule.core.errors import RunFailed, UsageError
from netjoule.testbeds.simulated.simulator import Simulator
from netjoule.topology.hosts import wired_hosts
from netjoule.topology.paths import OF_ELEMENTS, asked_paths, is_path, path_elements
from netjoule.topology.topology import EMULATED, SIMULATED, Topology
from netjoule.workload.workload import Workload

_A_MOMENT = {"seed": 0, "duration_s": 0.001, "interval_s": 0.001, "flows": [{}]}


def require(workload: Workload, topology: Topology) -> None:
    """Refuse settings with which a router could not work: a rate that could never rise again, for instance.

    The program that simulates has the same model as netjoule-link.

    Raises:
        UsageError: with what was asked for, in the words of the model.
        HostLacks: without the program.
    """
    if topology.kind in (EMULATED, SIMULATED):
        asyncio.run(_require(workload, topology))


async def _require(workload: Workload, topology: Topology) -> None:
    simulator = Simulator()
    try:
        for values, elements in _asked(workload, topology.document):
            try:
                await simulator.simulate(_A_MOMENT | {"elements": elements})
            except RunFailed as error:
                named = ", ".join(f"{name} {value}" for name, value in values.items())
                where = f"workload {workload.name}" if values else f"topology {topology.name}"
                raise UsageError(f"{named or 'path'}: {error.what}", where=where) from error
    finally:
        await simulator.close()


def _asked(
    workload: Workload, document: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Values of factors, and elements of each path with a router that they come to."""
    names = [name for name in workload.factors if name in OF_ELEMENTS or is_path(name)]
    own = {host: path_elements(document, host) for host in wired_hosts(document["hosts"])}
    for combination in product(*(workload.factors[name] for name in names)):
        values = dict(zip(names, combination, strict=True))
        for elements in (own | asked_paths(document, values)).values():
            if any("scaling" in one for one in elements):
                yield values, elements
