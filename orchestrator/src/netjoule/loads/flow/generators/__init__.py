# SPDX-License-Identifier: Apache-2.0
"""Programs that make flows, behind one interface: netjoule-traffic, iperf3 and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from netjoule.core.errors import HostLacks, UsageError
from netjoule.loads.flow.abilities import ABILITIES
from netjoule.loads.flow.builds import Build
from netjoule.loads.flow.generators.base import (
    Flow,
    FlowSpec,
    Generator,
    client_offset_ns,
    interval_rows,
)
from netjoule.loads.flow.generators.ditg import Ditg
from netjoule.loads.flow.generators.iperf3 import Iperf3
from netjoule.loads.flow.generators.iperf_dccp import IperfDccp
from netjoule.loads.flow.generators.netjoule_traffic import NetjouleTraffic
from netjoule.loads.flow.generators.netperfmeter import Netperfmeter

__all__ = [
    "Availability",
    "Flow",
    "FlowSpec",
    "Generator",
    "availability",
    "client_offset_ns",
    "generator",
    "interval_rows",
]

_GENERATORS = {made.name: made for made in (NetjouleTraffic, Iperf3, IperfDccp, Ditg, Netperfmeter)}
_INSTALLED = Build()


@dataclass(frozen=True)
class Availability:
    """Whether this host has a generator.

    Attributes:
        reason: why not, with what to do; empty when it is there.
        transports: those it does, where the kernel has them, the null floor apart.
    """

    name: str
    available: bool
    reason: str
    transports: tuple[str, ...]


def generator(name: str, build: Build = _INSTALLED) -> Generator:
    """The generator that a workload calls `name`; only our own has builds.

    Raises UsageError for another name.
    """
    if name not in _GENERATORS:
        raise UsageError(f"there is no generator '{name}'", next_step=f"use one of {', '.join(_GENERATORS)}")
    return NetjouleTraffic(build) if name == NetjouleTraffic.name else _GENERATORS[name]()


def availability() -> Iterator[Availability]:
    """Which generators this host has, tried."""
    for name in _GENERATORS:
        reason = ""
        try:
            generator(name).require()
        except HostLacks as error:
            reason = str(error)
        yield Availability(name, not reason, reason, tuple(sorted(ABILITIES[name].transports - {"null"})))
