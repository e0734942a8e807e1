# SPDX-License-Identifier: Apache-2.0
"""A campaign run by run, as beside hosts, on a testbed without any: no meter, and a clock that jumps.

Usage: fake_time.py WORKLOAD OUT    OUT is made or gone on with
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from runner_fakes import HOST, UTC_START, FakeClock, topology

from netjoule import loads
from netjoule.core.errors import RunFailed
from netjoule.design.run_table import of_session
from netjoule.execution.runner import run_campaign
from netjoule.radio import RadioReader
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import MeterPlace, Remark
from netjoule.workload.load import Condition, Load, Place


class JumpingTestbed:
    """Does what it is asked in its own time."""

    versions: dict[str, str | None] = {}  # noqa: RUF012
    passports: Sequence[dict[str, Any]] = ()
    radio_readers: Sequence[RadioReader] = ()
    power_grain_s = 0.0

    def __init__(self, clock: FakeClock, of_session: Mapping[str, Any]) -> None:
        self.of_session, self._clock = of_session, clock
        self.place = Place({}, simulate=self.simulate)

    async def simulate(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        start_ns = self._clock.now_ns
        end_ns = start_ns + round(document["wait_s"] * 1e9)
        await self._clock.sleep_until_ns(end_ns)
        return {"start_ns": start_ns, "end_ns": end_ns}

    async def failed(self) -> RunFailed:
        return await asyncio.get_running_loop().create_future()

    async def meter_places(self) -> Sequence[MeterPlace]:
        return ()

    async def apply(self, condition: Condition) -> Mapping[str, Any]:
        return {
            name: {"value": value, "since_start": self.of_session}
            for name, value in condition.testbed.items()
        }

    async def start_meters(self) -> None:
        return None

    def take_remarks(self) -> Sequence[Remark]:
        return ()

    async def clock_rows(self, _t_s: float) -> Sequence[dict[str, Any]]:
        return ()

    async def collect(self) -> None:
        return None

    async def returned(self) -> None:
        return None


def campaign(workload: Path, out: Path) -> Campaign:
    """The one that is there, or a new one."""
    if out.exists():
        return Campaign.open(out)
    return Campaign.create(
        out,
        workload=loads.read(workload),
        topology=topology(),
        seed=5,
        versions={"netjoule": "0"},
        host=HOST,
        created=UTC_START,
    )


def main() -> None:
    """Run it, or what is left of it."""
    clock = FakeClock()

    @asynccontextmanager
    async def opened(campaign: Campaign, _session: Session, _load: Load) -> AsyncIterator[JumpingTestbed]:
        upcoming = campaign.next_mini_block()
        yield JumpingTestbed(clock, {} if upcoming is None else of_session(upcoming.cell))

    with campaign(Path(sys.argv[1]), Path(sys.argv[2])) as open_campaign:
        run_campaign(open_campaign, lambda _event: None, clock=clock, open_testbed=opened)


if __name__ == "__main__":
    main()
