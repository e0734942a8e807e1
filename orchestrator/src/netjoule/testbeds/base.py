# SPDX-License-Identifier: Apache-2.0
"""What a testbed of any kind gives to a campaign: ends for its flows, meters, radios, clocks, remarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from netjoule.core.errors import RunFailed
from netjoule.loads.flow.generators import Generator
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.radio import RadioReader
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session

__all__ = ["Remark", "Testbed", "TestbedOpener"]


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


class Testbed(Protocol):
    """Hosts, link and meters, up and running."""

    @property
    def endpoints(self) -> Endpoints:
        """The two ends of the campaign's flows."""
        ...

    @property
    def passports(self) -> Sequence[dict[str, Any]]:
        """The meters as they answered."""
        ...

    @property
    def power_grain_s(self) -> float:
        """Time over which the metered power is smeared by how it is made; 0 for a real device."""
        ...

    @property
    def radio_readers(self) -> Sequence[RadioReader]:
        """One per node whose radio is logged; not opened yet."""
        ...

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of the programs it started."""
        ...

    async def failed(self) -> RunFailed:
        """Wait until a part ends that must not; the error carries the reason code."""
        ...

    async def ensure_server(self, generator: Generator) -> bool:
        """Start the generator's server when it is not running; True when it had died before."""
        ...

    def take_remarks(self) -> Sequence[Remark]:
        """What its parts said since the last call: a meter's gap or reconnection, for instance."""
        ...

    async def clock_rows(self, t_s: float) -> Sequence[dict[str, Any]]:
        """Rows of clocks.csv: each host's clock against the controller's at campaign time `t_s`."""
        ...

    async def collect(self) -> None:
        """Bring the meters' tables up to now into the campaign's folder; called between runs only."""
        ...

    async def returned(self) -> None:
        """Return when all hosts are in reach. Raises RunFailed when one is given up."""
        ...


TestbedOpener = Callable[[Campaign, Session], AbstractAsyncContextManager[Testbed]]
