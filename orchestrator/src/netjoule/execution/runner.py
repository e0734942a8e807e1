# SPDX-License-Identifier: Apache-2.0
"""Runs a campaign, or what is left of it, from the first packet to the last result.

One session: its clock begins, the testbed comes up, the plan's runs go in order (`run_loop.py`), the testbed
goes down, the session is closed. Where a factor cannot be changed while the testbed is up, each of its values
has sessions of its own. A signal or a dead part of the testbed ends it early; whatever was not finished is
planned again, and `resume` is simply another session.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import netjoule_contracts as contracts
from netjoule.analysis import decision
from netjoule.core.clock import CampaignTime, Clock, SystemClock, boot_id
from netjoule.core.errors import InvalidData, NetjouleError, UsageError
from netjoule.core.signals import handled_by, termination_signals
from netjoule.design.run_table import FINAL, last_attempts
from netjoule.design.timeline import MeterPace, check_timing
from netjoule.execution import ranging
from netjoule.execution.active_run import Align, Bench, Compute, Look
from netjoule.execution.progress import ProgressEvent, ProgressSink
from netjoule.execution.run_loop import Runs
from netjoule.loads import load_of
from netjoule.radio.log import RadioLog
from netjoule.radio.rates import RateLimits
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import Remark, Testbed, TestbedOpener, cancelled
from netjoule.topology.topology import Topology
from netjoule.workload.load import Load
from netjoule.workload.workload import Workload


@dataclass(frozen=True)
class Outcome:
    """How a session ended: `complete` when the plan is done, `stopped` when a signal ended it."""

    end: Literal["complete", "stopped"]
    runs_done: int
    runs_invalid: int


def run_campaign(
    campaign: Campaign,
    progress: ProgressSink,
    *,
    clock: Clock | None = None,
    open_testbed: TestbedOpener | None = None,
    compute: Compute | None = None,
    make_load: Callable[[Workload, Topology], Load] = load_of,
    align: Align | None = None,
    look: Look | None = None,
) -> Outcome:
    """Run every run of the plan that is not finished.

    Args:
        campaign: open for writing.
        progress: told what happens.
        clock: time; the system's by default.
        open_testbed: brings the testbed up; by default what the topology's kind asks for.
        compute: writes result.json of a mini-block's runs; netjoule_energy by default.
        make_load: the load of a workload on a testbed.
        align: finds each meter's lag from sync pulses; netjoule_energy by default.
        look: what a gate's blocks decide; R by default.

    Raises:
        NetjouleError: when the campaign cannot go on; all finished runs are kept.
    """
    session = _SessionRun(
        campaign,
        progress,
        clock=clock or SystemClock(),
        open_testbed=open_testbed or _opener(campaign.topology.kind),
        compute=compute or _compute,
        load=make_load(campaign.workload, campaign.topology),
        align=align or _align,
        look=look or decision.look,
    )
    return asyncio.run(session.run())


@dataclass
class _SessionRun:
    campaign: Campaign
    progress: ProgressSink
    clock: Clock
    open_testbed: TestbedOpener
    compute: Compute
    load: Load
    align: Align
    look: Look
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> Outcome:
        """Sessions until the plan is done or a signal stops one."""
        while True:
            outcome = await self._run_session()
            if outcome.end == "stopped" or self.campaign.next_mini_block() is None:
                return outcome

    async def _run_session(self) -> Outcome:
        """One session from its begin to its end, whatever ends it."""
        session = self.campaign.begin_session(
            boot_id=boot_id(), monotonic_ns=self.clock.monotonic_ns(), utc=self.clock.utc_now()
        )
        end = "failed"
        try:
            with _set_by_signals(self.stop):
                complete = await self._until_stopped(self._in_testbed(session))
            end = "complete" if complete else "stopped"
        finally:
            self.campaign.recover()  # what was under way is planned again
            self.campaign.end_session(
                session, end=end, monotonic_ns=self.clock.monotonic_ns(), utc=self.clock.utc_now()
            )
        return self._outcome(complete, session)

    async def _in_testbed(self, session: Session) -> None:
        campaign = self.campaign
        time = CampaignTime(self.clock, session.origin_ns)
        async with self.open_testbed(campaign, session, self.load) as testbed, AsyncExitStack() as stack:
            stack.push_async_callback(self.load.close)  # its servers end before their hosts go
            remarks = await self._fix_ranges(testbed, time)
            await testbed.start_meters()
            paces = [
                MeterPace(p["meter_id"], float(p["update_interval_s"]), float(p["lag_s"]))
                for p in testbed.passports
            ]
            window = contracts.loads()[self.load.name]["window"]
            check_timing(campaign.workload.timing, paces, window)
            require_same_meters(campaign.document["meters"], testbed.passports)
            campaign.set_meters(testbed.passports)
            campaign.set_versions(testbed.versions)
            limits = RateLimits.of(campaign.topology.wifi)
            clients = [host.name for host in testbed.place.hosts("client", self.load.hosts.get("client", 0))]
            async with RadioLog(campaign, testbed.radio_readers, clients, limits) as radio:
                shared = (self.load, time, paces, radio, self.progress, self.compute, self.align, self.look)
                await _unless_failed(Runs(Bench(campaign, testbed, *shared), remarks).run_all(), testbed)

    async def _fix_ranges(self, testbed: Testbed, time: CampaignTime) -> list[Remark]:
        """Find the ranges that the topology leaves to a ranging pass; the campaign then runs in those."""
        found = await ranging.find_ranges(self.campaign, testbed, self.load)
        if found:
            self.campaign.fix_settings({meter_id: one["settings"] for meter_id, one in found.items()})
        now_s = time.now_s()
        return [
            Remark(now_s, "orchestrator", "range_fixed", ranging.words(meter_id, one))
            for meter_id, one in found.items()
        ]

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether `work` came to its end; False when a signal stopped it first."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
                return True
            return False
        finally:
            await cancelled([task, stop])

    def _outcome(self, complete: bool, session: Session) -> Outcome:
        rows = self.campaign.rows()
        done = sum(r.status == "valid" for r in rows)
        invalid = sum(r.status == "invalid" for r in rows)
        wanted = last_attempts(rows)
        there = sum(r.status in FINAL for r in wanted)
        t_s = session.t_s(self.clock.monotonic_ns())
        self.progress(ProgressEvent("session_finished", t_s, there, len(wanted), 0.0, settled=there))
        return Outcome("complete" if complete else "stopped", done, invalid)


async def _unless_failed(work: Coroutine[Any, Any, None], testbed: Testbed) -> None:
    """Do `work` unless a part of the testbed dies first.

    Raises RunFailed with the dead part's reason code.
    """
    task = asyncio.ensure_future(work)
    failure = asyncio.ensure_future(testbed.failed())
    try:
        await asyncio.wait({task, failure}, return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            raise failure.result()
        try:
            await task
        except NetjouleError:
            # A dead link also fails the flow over it: name the cause, not the symptom.
            with suppress(TimeoutError):
                raise await asyncio.wait_for(asyncio.shield(failure), 0.5) from None
            raise
    finally:
        await cancelled([task, failure])


def _set_by_signals(stop: asyncio.Event) -> AbstractContextManager[None]:
    """What asks to end sets the event while the body runs; a second one goes to the handler from before."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in termination_signals()}

    def on_signal(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(stop.set)
        for number, handler in before.items():
            signal.signal(number, handler)

    return handled_by(on_signal, before)


def require_same_meters(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to go on with other instruments, or other ranges, than the campaign began with.

    Args:
        before: passports of an earlier session; none in the first.
        now: passports as the meters answered.

    Raises:
        UsageError: naming the first difference.
    """
    known = {p["meter_id"]: p for p in before}
    for passport in now:
        old = known.get(passport["meter_id"], passport)
        for name in ("identification", "serial", "range", "crest_factor", "update_interval_s", "lag_s"):
            if old[name] != passport[name]:
                raise UsageError(
                    f"meter {passport['meter_id']} had {name} {old[name]} when the campaign began,"
                    f" now it has {passport[name]}",
                    next_step="connect and set up the same instrument, or begin a new campaign",
                )


def _opener(kind: str) -> TestbedOpener:
    if kind == "emulated":
        from netjoule.testbeds.emulated.testbed import open_emulated

        return open_emulated
    from netjoule.testbeds.lab.testbed import open_lab

    return open_lab


def _compute(campaign_dir: Path, run_ids: Sequence[str]) -> object:
    from netjoule_energy import CampaignError, compute_and_write

    try:
        return compute_and_write(campaign_dir, list(run_ids))
    except CampaignError as error:
        raise InvalidData(str(error), where=str(campaign_dir)) from error


def _align(campaign_dir: Path, pulses: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from netjoule_energy import CampaignError, align_campaign

    try:
        return align_campaign(campaign_dir, pulses)
    except CampaignError as error:
        raise InvalidData(str(error), where=str(campaign_dir)) from error
