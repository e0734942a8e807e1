# SPDX-License-Identifier: Apache-2.0
"""A load that no user has: it waits so many milliseconds, and each of them is a unit of work.

It is all that a load has to be: one class, its entry in loads.json and its factors in factors.json (both are
added by test_toy_load.py), and nothing of the program knows its name. On hosts it waits in a process of the
client; on a simulated testbed, which has none, the program that simulates says what came of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from netjoule.core.errors import RunFailed
from netjoule.core.yamlfile import Document
from netjoule.hosts.host import Process
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition, Event, HostTime, Load, LoadSession, Outcome, Part, Place
from netjoule.workload.workload import Workload

__all__ = ["WaitLoad"]


class WaitSession:
    """Waits back to back, with a pause behind each, in the client's process or in the testbed."""

    holds = True
    versions: Mapping[str, str] = {}

    def __init__(self, place: Place, wait_s: float, pause_s: float, repeat: int, seed: int) -> None:
        self._place, self._wait_s, self._repeat, self._seed = place, wait_s, repeat, seed
        self._length_s = (wait_s + pause_s) * repeat
        self._process: Process | None = None
        self._start_ns = 0
        self.events: Sequence[Event] = [Event("waits", f"{repeat} x {wait_s:g} s")]

    async def go(self) -> None:
        self._start_ns = time.monotonic_ns()
        for client in self._place.hosts("client", 1):
            self._process = await client.start(["sleep", f"{self._length_s:.6f}"], name="sleep")

    async def outcome(self, hosts: HostTime) -> Outcome:
        host, start_ns, end_ns, power = "client", self._start_ns, 0, ()
        if self._place.simulate is not None:
            asked = {"wait_s": self._length_s, "each_s": self._wait_s, "seed": self._seed}
            told = await self._place.simulate(asked)
            start_ns, end_ns, power = told["start_ns"], told["end_ns"], told.get("power", ())
        elif self._process is not None:
            if await self._process.wait():
                raise RunFailed("sleep failed", code="command_failed")
            end_ns = time.monotonic_ns()
        whole = Part(hosts.campaign_s(host, start_ns), hosts.campaign_s(host, end_ns))
        quantity = 1000 * self._wait_s * self._repeat
        work = {"quantity": quantity, "unit": "ms", "u": 0.0, "reconciles": True, "repeat": self._repeat}
        part = {"part": "1", "node": host, "quantity": quantity, "u": 0.0, "asked_per_s": None}
        return Outcome(
            parts=[whole],
            judge=lambda _t_end_s: [],
            run_fields={
                "work": {**work, "parts": [{**part, "measures": {}}]},
                "measures": {"late_ms": 1000 * (whole.t_end_s - whole.t_start_s) - quantity},
            },
            power=power,
            intervals=[
                {
                    "part": "1",
                    "node": host,
                    "t_start_s": whole.t_start_s,
                    "t_end_s": whole.t_end_s,
                    "work": quantity,
                }
            ],
        )

    async def end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            await process.stop()


class WaitLoad(Load):
    """`workload.load.Load`."""

    name = "wait"
    programs: Sequence[str] = ()

    def __init__(self, workload: Workload, topology: Topology) -> None:
        self._workload, self._topology = workload, topology

    @staticmethod
    def complete(document: Document, folder: Path | None) -> None:
        """It has no settings."""

    hosts: Mapping[str, int] = {"client": 1, "server": 1}

    def heaviest(self) -> Sequence[Condition]:
        return ()

    async def open(self, condition: Condition, place: Place, duration_s: float) -> LoadSession:
        wait_s = float(condition.factors["wait_ms"]) / 1000
        pause_s = float(condition.factors.get("pause_ms", 0)) / 1000
        return WaitSession(place, wait_s, pause_s, math.ceil(duration_s / wait_s), condition.seed)
