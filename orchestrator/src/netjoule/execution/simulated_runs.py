# SPDX-License-Identifier: Apache-2.0
"""Runs of a simulated testbed: without hosts, meters and idle windows, each at time 0 and by itself.

The run alone decides what comes of it (its condition and its seed), so that it may be simulated again, alone,
and gives the same. Its power is what the model says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason, first_invalidating
from netjoule.design import timeline
from netjoule.design.run_table import PlanRow
from netjoule.execution.measurement import windows_of
from netjoule.execution.run_document import new_run_document
from netjoule.store.simulated_blocks import SimulatedRun
from netjoule.testbeds.simulated.simulator import FAILED, SimulatedTime, Simulator
from netjoule.topology.paths import asked_paths, in_force, is_path, path_access, path_elements
from netjoule.topology.topology import Topology
from netjoule.workload.load import Event, Load, Outcome, Place
from netjoule.workload.workload import Workload

_MOST_WORDS = 1000


@dataclass(frozen=True)
class Simulation:
    """What runs of a campaign are simulated by.

    Attributes:
        name: the campaign's.
        seed: of every random choice of the campaign.
        utc_now: wall clock, for `started_utc`.
    """

    name: str
    workload: Workload
    topology: Topology
    load: Load
    seed: int
    utc_now: Callable[[], datetime]

    async def run(self, row: PlanRow, simulator: Simulator) -> SimulatedRun:
        """Simulate one run; what it fails of makes it invalid.

        Raises:
            HostLacks: without the program that simulates.
        """
        now = self.utc_now()
        document = new_run_document(self.name, self.topology, row, now, roles=self.load.hosts)
        try:
            outcome = await self._outcome(row, simulator, document)
            return self._settled(document, outcome)
        except (
            RunFailed,
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
        ) as error:  # whatever it answers
            what = str(error) if isinstance(error, (RunFailed, ValueError)) else f"no outcome: {error!r}"
            reason = Reason(getattr(error, "code", "") or FAILED, what[:_MOST_WORDS])
            failed = document | {"status": "failed", "reasons": [reason.as_json()]}
            event = {"t_s": 0.0, "source": "generator", "event": "run_failed", **reason.as_json()}
            contracts.validate("run", failed)
            return SimulatedRun(failed, tables={"events": [event]})

    async def _outcome(self, row: PlanRow, simulator: Simulator, document: dict[str, Any]) -> Outcome:
        """What the load says of its work; its programs' versions go into the run's document."""
        condition, timing = row.condition(self.workload, self.seed), self.workload.timing
        elements = asked_paths(self.topology.document, condition.testbed)
        if condition.testbed:
            document["in_force"] = in_force(self.topology.document, condition.testbed, elements)
        values = (value for name, value in condition.testbed.items() if is_path(name))
        own = (self.topology.document, self.topology.host_with("server"), next(values, None))
        path = {"elements": next(iter(elements.values()), path_elements(*own))}
        if access := path_access(*own):
            path["access"] = access

        async def simulate(asked: Mapping[str, Any]) -> Mapping[str, Any]:
            return await simulator.simulate({**asked, **path})

        if self._until_done:
            least_s = timeline.least_work_s(timing, ())
        else:
            least_s = timeline.flow_duration_s(timing, 0)
        session = await self.load.open(condition, Place({}, simulate=simulate), least_s)
        try:
            document["versions"] = dict(session.versions)
            await session.go()
            outcome = await session.outcome(SimulatedTime())
            return replace(outcome, events=(*session.events, *outcome.events))
        finally:
            await session.end()

    @property
    def _until_done(self) -> bool:
        return bool(contracts.loads()[self.load.name]["window"] == timeline.UNTIL_DONE)

    def _settled(self, document: dict[str, Any], outcome: Outcome) -> SimulatedRun:
        """A run with its windows, its reasons and its numbers."""
        from netjoule_energy import simulated_result

        windows = windows_of(outcome, self.workload.timing, until_done=self._until_done)
        document |= outcome.run_fields
        for name in ("warm_up", "measure", "tail"):
            span = getattr(windows, name)
            document["windows"][name] = None if span is None else span.as_json()
        kind = timeline.UNTIL_DONE if self._until_done else "fixed"
        limit = {"clock_limit_s": outcome.clock_limit_s}
        document["window"] = {"kind": kind} | windows.measure.as_json() | limit
        reasons = [reason.as_json() for reason in outcome.judge(windows.measure.t_end_s)]
        status = "invalid" if first_invalidating(reasons) else "done"
        document |= {"status": status, "reasons": reasons}
        strangers = sorted({told["node"] for told in outcome.power} - set(self.topology.hosts))
        if strangers:
            raise ValueError(f"it tells the power of {', '.join(map(str, strangers))}, which is no host")
        result = simulated_result(document, outcome.intervals, outcome.power)
        if status == "done" and not result["valid"]:
            why = first_invalidating(result["reasons"])
            document |= {
                "status": "invalid",
                "reasons": [*reasons, *([] if why is None else [why.as_json()])],
            }
        contracts.validate("run", document)
        tables = {"intervals": outcome.intervals, "events": list(map(_event, outcome.events))}
        few = {"routers": outcome.routers, "power": _power(outcome)}
        tables |= {name: rows for name, rows in few.items() if rows}
        return SimulatedRun(document, result, outcome.documents, tables)


def _power(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {"node": told["node"], "t_start_s": step[0], "t_end_s": step[1], "power_w": step[2]}
        for told in outcome.power
        for step in told["steps"]
    ]


def _event(event: Event) -> dict[str, Any]:
    at_s = 0.0 if event.t_s is None else event.t_s
    rest = {"event": event.event, "code": event.code, "detail": event.detail}
    return {"t_s": at_s, "source": "generator", **rest}
