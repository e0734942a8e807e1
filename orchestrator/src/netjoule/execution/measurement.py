# SPDX-License-Identifier: Apache-2.0
"""The work of a run: brought to where only `go` is missing, told go, its outcome and windows written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.reason import Reason
from netjoule.design import timeline
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import Span, Windows
from netjoule.execution.active_run import Bench, OpenRun
from netjoule.execution.live_energy import HostEnergy, first_passport
from netjoule.store.session import rfc3339
from netjoule.testbeds.host_clocks import HostClocks
from netjoule.workload.load import Event, LoadSession, Outcome
from netjoule.workload.workload import Timing

LOOK_S = 0.1
"""Between two looks at whether the radios are idle."""


def windows_of(outcome: Outcome, timing: Timing, *, until_done: bool) -> Windows:
    """The windows that a run's work decides; the tail begins when all parts have ended."""
    starts_s = [part.t_start_s for part in outcome.parts]
    end_s = max(part.t_end_s for part in outcome.parts)
    if until_done:
        return timeline.done_windows(timing, min(starts_s), end_s)
    # All parts are on from the start of the last to begin.
    return timeline.flow_windows(timing, max(starts_s), end_s)


class Measurement:
    """Does the work of a campaign's runs on a testbed that is up."""

    def __init__(self, bench: Bench, clocks: HostClocks) -> None:
        """Nothing is under way yet; `clocks`: of the testbed's hosts."""
        self._bench, self._campaign, self._load = bench, bench.campaign, bench.load
        self._time, self._radio, self._clocks = bench.time, bench.radio, clocks
        self._timing = bench.campaign.workload.timing
        self._live: list[HostEnergy] = []  # that the work which was opened last has asked for
        self.until_done = contracts.loads()[bench.load.name]["window"] == timeline.UNTIL_DONE

    async def open(self, row: PlanRow, guard_s: float) -> LoadSession:
        """Bring a run's work to where only `go` is missing.

        Args:
            row: of the plan.
            guard_s: keeps its end out of the measure window's last reading.

        Raises:
            RunFailed: when something does not get ready.
        """
        condition = row.condition(self._campaign.workload, self._campaign.seed)
        if self.until_done:
            duration_s = timeline.least_work_s(self._timing, self._bench.meters)
        else:
            duration_s = timeline.flow_duration_s(self._timing, guard_s)
        self._live.clear()
        place = replace(self._bench.testbed.place, live_energy=self._energy_of)
        session = await self._load.open(condition, place, duration_s)
        self._campaign.set_versions(session.versions)
        for event in session.events:
            self._event(row, event)
        return session

    def _energy_of(self, host: str) -> HostEnergy | None:
        """Dynamic energy of a host, for the load whose work is being opened; None where it has no meter."""
        meters = ((meter.meter_id, meter.node) for meter in self._campaign.topology.meters)
        passport = first_passport(host, meters, self._bench.testbed.passports)
        if passport is None:
            return None
        self._live.append(HostEnergy(passport, self._bench.testbed.follow_meter, self._time))
        return self._live[-1]

    async def measure(self, run: OpenRun, session: LoadSession) -> None:
        """From `go` to the end of the tail; run.json then has its windows and the work's reasons.

        Raises:
            RunFailed: when the work failed.
        """
        run.document["started_utc"] = rfc3339(self._time.clock.utc_now())
        for live in self._live:
            live.idle = Span.of(run.document["windows"]["idle_before"])
        await session.go()
        outcome = await session.outcome(self._clocks)
        windows = windows_of(outcome, self._timing, until_done=self.until_done)
        self._write(run, outcome)
        run.reasons += outcome.judge(windows.measure.t_end_s)
        for name in ("warm_up", "measure", "tail"):
            span: Span | None = getattr(windows, name)
            run.document["windows"][name] = None if span is None else span.as_json()
        kind = timeline.UNTIL_DONE if self.until_done else "fixed"
        limit = {"clock_limit_s": outcome.clock_limit_s}
        run.document["window"] = {"kind": kind} | windows.measure.as_json() | limit
        await self._wait_for_tail(run.document, windows.tail)

    async def _wait_for_tail(self, document: dict[str, Any], planned: Span) -> None:
        """Wait until the radios are idle where they tell it, at most `tail_max_s`; else as planned."""
        if not self.until_done or self._radio.idle_since(planned.t_start_s) is None:
            await self._time.sleep_until(planned.t_end_s)
            return
        tail_max_s = self._timing.tail_max_s or self._timing.tail_s
        limit_s = planned.t_start_s + tail_max_s
        await self._radios_idle(planned.t_start_s, limit_s)
        document["windows"]["tail"] = Span(planned.t_start_s, min(limit_s, self._time.now_s())).as_json()
        if tail_max_s:
            document["window"]["tail_max_s"] = tail_max_s

    async def wait_for_idle_radios(self) -> None:
        """Wait until radios that tell their states sleep after what was before, at most `tail_max_s`."""
        now_s = self._time.now_s()
        if self._radio.idle_since(now_s) is not None:
            await self._radios_idle(now_s, now_s + (self._timing.tail_max_s or 0.0))

    async def _radios_idle(self, since_s: float, limit_s: float) -> None:
        while not self._radio.idle_since(since_s) and self._time.now_s() < limit_s:
            await self._time.sleep_until(min(limit_s, self._time.now_s() + LOOK_S))

    def _write(self, run: OpenRun, outcome: Outcome) -> None:
        run.document.update(outcome.run_fields)
        for document in outcome.documents:
            self._campaign.write_document(run.row.run_id, self._load.name, document)
        self._campaign.write_intervals(run.row.run_id, outcome.intervals)
        if outcome.routers:
            self._campaign.write_routers(run.row.run_id, outcome.routers)
        for event in outcome.events:
            self._event(run.row, event)

    def _event(self, row: PlanRow, event: Event) -> None:
        self._bench.note(row, "generator", event.event, Reason(event.code, event.detail), t_s=event.t_s)
