# SPDX-License-Identifier: Apache-2.0
"""Dynamic energy of a host while its run is under way: what a meter reads above the idle power before it.

The meter is the first of that host in the topology. Its rows come as its logger writes them; they mean what
netjoule_energy takes them for. A meter that falls silent, or had no idle window yet, says nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from netjoule.core.clock import CampaignTime
from netjoule.core.errors import NetjouleError
from netjoule.design.timeline import Span
from netjoule.hosts.host import Process

if TYPE_CHECKING:
    from netjoule_energy.power.readings import Readings

STEP_S = 0.08
"""The least time from one word to the next, however often a meter is read: who listens acts by 0.1 s."""
_COLUMNS = ("t_s", "power_w", "energy_j", "flag")
Row = tuple[float, float, float, str]
"""One reading: campaign time (s), power (W), count of energy (J), both nan where there is none, and flag."""
Follow = Callable[[str, int], Awaitable[Process]]
"""Starts what says the header of a meter's table, its last rows, so many, and then each new one."""


class Integral:
    """Dynamic energy since a moment of the campaign, from a meter's rows in order. Pure."""

    def __init__(self, passport: Mapping[str, Any], idle: Span, start_s: float) -> None:
        """`idle`: the window of P_I, which ended before `start_s`."""
        self._passport, self._idle = passport, idle
        self._update_s, self._lag_s = float(passport["update_interval_s"]), float(passport["lag_s"])
        self._rows: list[Row] = []
        self._until_s = start_s
        self._idle_w: float | None = None
        self._energy_j = 0.0

    def add(self, row: Row) -> float | None:
        """Joules up to this row; None before any is known, and where it brings no news."""
        self._rows.append(row)
        end_s = row[0] - self._lag_s
        if end_s < self._until_s + STEP_S:
            return None
        if self._idle_w is None:
            self._idle_w = self._mean_w(self._idle)
        power_w = self._mean_w(Span(self._until_s, end_s))
        if self._idle_w is None or power_w is None:
            return None
        self._energy_j += (power_w - self._idle_w) * (end_s - self._until_s)
        self._until_s = end_s
        # Neighbours of what comes next: of a counter the count before it.
        self._rows = [one for one in self._rows if one[0] - self._lag_s > end_s - 3 * self._update_s]
        return self._energy_j

    def _mean_w(self, span: Span) -> float | None:
        """Mean power over a window; None where no good reading lies in it."""
        from netjoule_energy.power.readings import mean_power
        from netjoule_energy.power.windows import Window

        return mean_power(self._readings(), Window(span.t_start_s, span.t_end_s)).mean_w

    def _readings(self) -> Readings:
        import numpy as np

        from netjoule_energy.power.readings import INTERVAL_MEAN, Readings

        t_s, power_w, energy_j, flag = zip(*self._rows, strict=True)
        return Readings(
            t_s=np.array(t_s),
            power_w=np.array(power_w),
            flag=np.array(flag, dtype=np.str_),
            update_interval_s=self._update_s,
            lag_s=self._lag_s,
            semantics=str(self._passport.get("semantics") or INTERVAL_MEAN),
            energy_j=np.array(energy_j),
            counter_modulus_j=self._passport.get("counter_modulus_j"),
        )


class HostEnergy:
    """Dynamic energy of one host (`workload.load.LiveEnergy`)."""

    def __init__(self, passport: Mapping[str, Any], follow: Follow, time: CampaignTime) -> None:
        """`idle` is not known yet; until then nothing is told."""
        self.source = str(passport["meter_id"])
        self.idle: Span | None = None
        self._passport, self._follow, self._time = passport, follow, time

    async def since_now(self) -> AsyncGenerator[float, None]:
        """Joules since the first call, again with each reading, until the meter ends or nobody asks."""
        if self.idle is None:
            return
        start_s = self._time.now_s()
        integral = Integral(self._passport, self.idle, start_s)
        known_s = start_s - self.idle.t_start_s + float(self._passport["lag_s"])
        rows_n = math.ceil(known_s / float(self._passport["update_interval_s"])) + 5
        with contextlib.suppress(NetjouleError):  # what is wrong with the meter, its logger tells
            process = await self._follow(self.source, rows_n)
            try:
                header = await process.next_line()
                columns = header.decode().strip().split(",")
                while line := await process.next_line():
                    row = row_of(columns, line)
                    energy_j = None if row is None else integral.add(row)
                    if energy_j is not None:
                        yield energy_j
            finally:
                await process.stop()


def row_of(columns: Sequence[str], line: bytes) -> Row | None:
    """A line of meters/<meter_id>.csv; None of its header and of one that is cut."""
    cells = dict(zip(columns, line.decode("utf-8", "replace").rstrip("\r\n").split(","), strict=False))
    t_s, power_w, energy_j, flag = (cells.get(name, "") for name in _COLUMNS)
    if not line.endswith(b"\n") or len(cells) != len(columns) or t_s in ("", "t_s"):
        return None
    return float(t_s), float(power_w or "nan"), float(energy_j or "nan"), flag


def first_passport(
    node: str, meter_nodes: Iterable[tuple[str, str]], passports: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Passport of the first meter of a node; `meter_nodes`: id and node of each in the topology's order."""
    first = next((meter_id for meter_id, of in meter_nodes if of == node), None)
    return next((passport for passport in passports if passport["meter_id"] == first), None)
