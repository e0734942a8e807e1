# SPDX-License-Identifier: Apache-2.0
"""What a testbed of any kind gives to a campaign: ends for its flows, meters, radios, clocks, remarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host
from netjoule.radio import RadioReader
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.topology.topology import Meter
from netjoule.workload.load import Condition, Load, Place


@dataclass(frozen=True)
class Remark:
    """Something a part of the testbed said, for events.csv.

    Attributes:
        frozen_since_s: from when on a meter's values were stuck; runs since then do not count.
    """

    t_s: float
    source: str
    event: str
    detail: str
    frozen_since_s: float | None = None


@dataclass(frozen=True, slots=True)
class MeterPlace:
    """A host that has meters.

    Attributes:
        config: path there of their meter_config.
        environment: secrets that it refers to.
    """

    host: Host
    config: str
    meters: Sequence[Meter]
    environment: Mapping[str, str] = field(default_factory=dict)


class Testbed(Protocol):
    """Hosts and link, up and running, and meters, which begin with `start_meters`."""

    @property
    def place(self) -> Place:
        """The hosts that the campaign's load runs on."""

    @property
    def passports(self) -> Sequence[dict[str, Any]]:
        """The meters as they answered."""

    @property
    def power_grain_s(self) -> float:
        """Time over which the metered power is smeared by how it is made; 0 for a real device."""

    @property
    def radio_readers(self) -> Sequence[RadioReader]:
        """One per node whose radio is logged; not opened yet."""

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of the programs it started."""

    async def failed(self) -> RunFailed:
        """Wait until a part ends that must not; the error carries the reason code."""

    async def meter_places(self) -> Sequence[MeterPlace]:
        """Where its meters are, for a ranging pass; nobody has them open yet."""

    async def apply(self, condition: Condition) -> Mapping[str, Any]:
        """Set what the condition asks of the testbed; what is then in force, parameters by factor.

        Between runs. What holds for a whole session (`run_table.of_session`) it has had since it came up.

        Raises RunFailed when it does not come into force.
        """
        ...

    async def start_meters(self) -> None:
        """Start to log every meter; their passports are known then."""

    def take_remarks(self) -> Sequence[Remark]:
        """What its parts said since the last call: a meter's gap or reconnection, for instance."""

    async def clock_rows(self, t_s: float) -> Sequence[dict[str, Any]]:
        """Rows of clocks.csv: each host's clock against the controller's at campaign time `t_s`."""

    async def collect(self) -> None:
        """Bring the meters' tables up to now into the campaign's folder; called between runs only."""

    async def returned(self) -> None:
        """Return when all hosts are in reach. Raises RunFailed when one is given up."""


TestbedOpener = Callable[[Campaign, Session, Load], AbstractAsyncContextManager[Testbed]]
