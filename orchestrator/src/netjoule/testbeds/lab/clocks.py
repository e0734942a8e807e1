# SPDX-License-Identifier: Apache-2.0
"""Each host's CLOCK_MONOTONIC against the controller's: time stamps over the control connection."""

from __future__ import annotations

from collections import deque
from typing import Any

from netjoule.core.clock import boot_id, offset_ns_at
from netjoule.core.errors import RunFailed
from netjoule.hosts.ssh import SshHost

EXCHANGES = 10
ANSWER_TIMEOUT_S = 2.0
OFFSETS_KEPT = 60
"""For the drift: an hour of runs. A quartz changes its rate with temperature."""


class HostClock:
    """The clock of one host."""

    def __init__(self, host: SshHost, origin_ns: int) -> None:
        """`origin_ns`: the controller's CLOCK_MONOTONIC at campaign time 0."""
        self._host = host
        self._origin_ns = origin_ns
        self._boot = ""
        self._offsets: deque[Any] = deque(maxlen=OFFSETS_KEPT)
        self._row: dict[str, Any] = {}

    async def look(self, t_s: float) -> dict[str, Any]:
        """A row of clocks.csv, measured now (`t_s`).

        Raises:
            RunFailed: when the host gives no answer (host_unreachable).
        """
        from netjoule_meters.logger.clock_exchange import clock_row

        await self._host.wait_up()
        if self._host.boot_id == boot_id():
            same = {"offset_s": 0.0, "drift_ppm": 0.0, "residual_s": 0.0, "method": "same_boot"}
            self._row = {"t_s": t_s, "host": self._host.name, **same}
            return self._row
        if self._boot != self._host.boot_id:
            self._boot = self._host.boot_id
            self._offsets.clear()
        self._offsets.append(await self._measured())
        self._row = clock_row(self._host.name, list(self._offsets), self._origin_ns)
        return self._row

    def campaign_s(self, t_ns: int) -> float:
        """Campaign time in seconds of a CLOCK_MONOTONIC reading of the host in nanoseconds."""
        about_ns = t_ns - offset_ns_at(self._row, self._row["t_s"])
        about_s = (about_ns - self._origin_ns) / 1e9
        return (t_ns - offset_ns_at(self._row, about_s) - self._origin_ns) / 1e9

    async def _measured(self) -> Any:
        from netjoule_meters.errors import GarbageReply
        from netjoule_meters.logger.clock_exchange import Exchange, offset_of

        try:
            stamps = [Exchange(*await self._host.exchange(ANSWER_TIMEOUT_S)) for _ in range(EXCHANGES)]
            return offset_of(stamps)
        except (TimeoutError, GarbageReply) as error:
            raise RunFailed(
                f"its clock could not be compared with the controller's: {error or 'no answer in time'}",
                where=f"host {self._host.name}",
                code="host_unreachable" if isinstance(error, TimeoutError) else "clock_unsure",
            ) from error
