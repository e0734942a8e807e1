# SPDX-License-Identifier: Apache-2.0
"""How the clocks of a testbed's hosts stand against the controller's. They are looked at, never set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netjoule.core.clock import CampaignTime, offset_ns_at
from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason
from netjoule.store.campaign import Campaign

if TYPE_CHECKING:
    from netjoule.testbeds.base import Testbed


class HostClocks:
    """The clocks of all hosts as last seen."""

    def __init__(self, campaign: Campaign, testbed: Testbed, time: CampaignTime) -> None:
        """Nothing is known yet."""
        self._campaign, self._testbed, self._time = campaign, testbed, time
        self._rows: Sequence[dict[str, Any]] = ()
        self._of_host: dict[str, dict[str, Any]] = {}

    async def look(self) -> list[Reason]:
        """Record each host's clock in clocks.csv; a reason for each that was stepped since the last look."""
        from netjoule_meters.logger.clock_exchange import clock_was_stepped

        self._rows = await self._testbed.clock_rows(self._time.now_s())
        self._campaign.append_clocks(self._rows)
        stepped = []
        for row in self._rows:
            before = self._of_host.get(row["host"])
            moved = clock_was_stepped(before, row) if before is not None else None
            if moved is not None:
                stepped.append(Reason("clock_unsure", moved))
            self._of_host[row["host"]] = row
        return stepped

    def require_usable(self, measure_s: float) -> None:
        """Refuse a run whose windows a host's clock, as last seen, could not place.

        Args:
            measure_s: length of the measure window.

        Raises:
            RunFailed: with the code clock_unsure.
        """
        from netjoule_meters.logger.clock_exchange import clock_is_usable

        for row in self._rows:
            problem = clock_is_usable(row, measure_s)
            if problem is not None:
                raise RunFailed(problem, code="clock_unsure")

    def campaign_s(self, host: str, at_ns: int) -> float:
        """Campaign time of a moment on a host's clock."""
        return self._time.from_ns(at_ns - self.offset_ns(host))

    def host_ns(self, host: str, t_s: float) -> int:
        """A moment of campaign time on a host's clock."""
        return self._time.origin_ns + round(t_s * 1e9) + self.offset_ns(host)

    def offset_ns(self, host: str) -> int:
        """A host's clock minus the controller's, as last seen, carried on to now."""
        row = self._of_host.get(host)
        return offset_ns_at(row, self._time.now_s()) if row is not None else 0
