# SPDX-License-Identifier: Apache-2.0
"""The runs of a session, back to back, with one idle window between each two.

A run stays *open* after its flow until the idle window that closes it; then its run.json is final.
Results of a mini-block whose runs are all final are computed (`results.py`) in the gap between two runs,
never inside a window.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from netjoule.core.errors import InvalidData, RunFailed
from netjoule.core.reason import Reason
from netjoule.design import run_table, timeline
from netjoule.design.run_table import FINAL, HAPPENED, MiniBlock, PlanRow
from netjoule.design.timeline import Span
from netjoule.execution import sync_pulses
from netjoule.execution.active_run import Bench, OpenRun
from netjoule.execution.finalising import Finaliser
from netjoule.execution.measurement import Measurement
from netjoule.execution.outages import RETURN_S, Outages
from netjoule.execution.progress import Kind, Pace, ProgressEvent
from netjoule.execution.results import Results
from netjoule.execution.run_document import new_run_document
from netjoule.testbeds.host_clocks import HostClocks
from netjoule.workload.workload import moves_idle_power

if TYPE_CHECKING:
    from netjoule.testbeds.base import Remark

MAX_FAILURES_IN_A_ROW = 5
AFTER_A_FAILURE_S = 0.5
"""What ended a flow may have ended its server: so long until the next run, that its end is seen and not
taken for a second failure."""
T = TypeVar("T")


class Runs:
    """Executes the plan of a campaign on a testbed that is up."""

    def __init__(self, bench: Bench, remarks: Sequence[Remark] = ()) -> None:
        """Prepare; nothing runs yet. `remarks`: of what was before the first run."""
        self._bench, self._campaign, self._testbed = bench, bench.campaign, bench.testbed
        self._load, self._time, self._meters = bench.load, bench.time, bench.meters
        self._workload, self._timing = bench.campaign.workload, bench.campaign.workload.timing
        self._guard_s = timeline.guard_s(bench.meters, bench.testbed.power_grain_s)
        self._open: OpenRun | None = None
        self._worked: set[str] = set()
        self._block: int | None = None
        first = bench.campaign.next_mini_block()
        self._of_session = {} if first is None else run_table.of_session(first.cell)
        self._asked: Mapping[str, Any] = {}
        self._in_force: Mapping[str, Any] = {}
        self._failures = 0
        self._outages = Outages(bench.testbed, bench.radio)
        self._results = Results(bench.campaign, bench.compute, self._tell, bench.note, bench.load)
        self._clocks = HostClocks(bench.campaign, bench.testbed, bench.time)
        self._measurement = Measurement(bench, self._clocks)
        self._finaliser = Finaliser(bench, self._outages, self._results, remarks)
        window = timeline.UNTIL_DONE if self._measurement.until_done else "fixed"
        self._pace = Pace(timeline.run_s(self._timing, bench.meters, self._guard_s, window))
        self._paced_s = 0.0  # when the last run, or the session before the first, had ended
        # Getting ready may be work itself (warm-up runs), and a window until done has no guard behind it.
        self._idle_guard_s = self._guard_s if self._measurement.until_done else 0.0

    async def run_all(self) -> None:
        """Run until the plan is done, repeats included, or what comes next needs a session of its own."""
        try:
            self._recall()
            self._tell("testbed_ready")
            await self._results.compute_leftovers()
            await self._look()
            if self._upcoming() is not None:
                await self._pulse()
            self._paced_s = self._time.now_s()
            while (mini := await self._next()) is not None:
                for row in mini.missing:
                    if mini.resumed:
                        begun = Reason("", "its mini-block was begun in an earlier session")
                        self._bench.note(row, "orchestrator", "resumed_mini_block", begun)
                    await self._run(row)
                self._results.expect(mini.mini_block, mini.attempt)
                await self._require_limits_within_reach(mini)
            if self._worked:
                await self._pulse()
        finally:
            await self._end_work()

    def _recall(self) -> None:
        """Tell the load what earlier sessions measured: what it has fixed for a condition stays."""
        for row in self._campaign.rows():
            if row.status not in HAPPENED:
                continue
            document = self._campaign.read_run(row.run_id)
            if document["work"] is not None:
                self._load.recall(row.condition(self._workload, self._campaign.seed), document)
                first, last = (document["windows"][name] for name in ("idle_before", "tail"))
                self._pace.ran(row, last["t_end_s"] - first["t_start_s"])

    # -- order -----------------------------------------------------------------------------------

    async def _next(self) -> MiniBlock | None:
        """The next mini-block of this session; at the end of a block only after all its results are in."""
        upcoming = self._upcoming()
        if upcoming is None or upcoming.block != self._block or not self._may_have(upcoming):
            await self._close_chain()
            await self._look()
            upcoming = self._upcoming()
        if upcoming is not None and not self._may_have(upcoming):
            return None
        self._block = upcoming.block if upcoming else None
        return upcoming

    def _may_have(self, mini: MiniBlock) -> bool:
        """Whether the testbed came up as the mini-block asks for it, in what only the start of it sets."""
        return run_table.of_session(mini.cell) == self._of_session

    def _upcoming(self) -> MiniBlock | None:
        """What the plan has next when the runs that wait for their results count as done."""
        self._campaign.next_mini_block()  # adds repeats of settled mini-blocks
        rows = [replace(r, status="valid") if r.status == "running" else r for r in self._campaign.rows()]
        return run_table.next_mini_block(rows)

    async def _close_chain(self) -> None:
        """Give the last run an idle window of its own and compute all results."""
        if self._open is not None:
            idle = await self._idle()
            await self._end_work()
            await self._in_reach(self._look_at_clocks)
            self._finalise(idle)
        if self._results.waiting:
            now_s = self._time.now_s()
            await self._time.sleep_until(timeline.data_due_s(now_s, self._meters))
        await self._compute_results()

    async def _look(self) -> None:
        """At a planned look of a gate, ask what the blocks so far decide: then the rest is not needed.

        Between two blocks, once all repeats of the first are in; at no other time, or chance would decide.
        """
        self._campaign.next_mini_block()  # adds repeats, which belong to their block
        done = run_table.blocks_done(self._campaign.rows())
        if done not in self._workload.looks[:-1]:
            return
        found = await asyncio.to_thread(self._bench.look, self._campaign.path)
        self._tell("look", detail=found.detail)
        if found.code:
            self._campaign.end_by_rule(found.code)

    async def _in_reach(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what needs every host, between runs; after the loss of one wait for it and do it again.

        Raises:
            RunFailed: when a host stays away, or answers nothing though it counts as in reach.
        """
        began_s = self._time.now_s()
        while True:
            try:
                return await work()
            except RunFailed as error:
                long = self._time.now_s() - began_s > RETURN_S
                if error.code != "host_unreachable" or long:
                    raise
            # A connection that died without a word counts as alive for some seconds: pause between tries.
            await self._time.sleep_until(self._time.now_s() + AFTER_A_FAILURE_S)
            await self._testbed.returned()

    async def _require_limits_within_reach(self, mini: MiniBlock) -> None:
        """Stop at a mini-block none of whose runs kept one limit: repeats would end the same way.

        Not where a run of its cell counted before: then the limit is within reach and this host was busy.

        Raises:
            InvalidData: with the limit, the figures and what to change; the runs are settled before.
        """
        found = self._load.unreachable([self._documents(row) for row in mini.rows])
        if found is None or self._counted_before(mini):
            return
        await self._close_chain()
        seen = ", ".join(
            f"{figure} ({row.arm})" for row, figure in zip(mini.rows, found.figures, strict=True)
        )
        raise InvalidData(
            f"no run of mini-block {mini.mini_block} ({mini.cell}) kept the {found.limit}: it is {seen}",
            where=f"workload {self._workload.name}, field {found.where}",
            next_step=f"{found.next_step}, and begin a new campaign; or free the host of other work and go on"
            f" with 'netjoule resume {self._campaign.path}'",
            code=found.code,
        )

    def _counted_before(self, mini: MiniBlock) -> bool:
        """Whether a run of its cell, of another mini-block, counts."""
        others = (row for row in self._campaign.rows() if row.mini_block != mini.mini_block)
        return any(row.status == "valid" and row.cell == mini.cell for row in others)

    def _documents(self, row: PlanRow) -> list[dict[str, Any]]:
        """What the load kept of a run, by parts."""
        return list(self._campaign.read_documents(row.run_id, self._load.name).values())

    # -- one run ---------------------------------------------------------------------------------

    async def _run(self, row: PlanRow) -> None:
        await self._close_before_a_change(row)
        self._campaign.set_status(row.run_id, "running")
        self._tell("run_started", row)
        await self._end_work()
        await self._compute_results()
        await self._outages.all_back()
        names, now = (self._campaign.name, self._campaign.topology), self._time.clock.utc_now()
        document = new_run_document(*names, row, now, roles=self._load.hosts)
        run = OpenRun(row, document, self._time.now_s())
        try:
            await self._set_testbed(run)
            await self._look_at_clocks()
            self._clocks.require_usable(self._timing.measure_s)
            run.session = session = await self._measurement.open(row, self._guard_s)
            run.document["versions"] = dict(session.versions)
            idle = await self._idle()
            run.document["windows"]["idle_before"] = idle.as_json()
            self._finalise(idle)
            await self._time.sleep_until(idle.t_end_s + self._guard_s)
            await self._measurement.measure(run, session)
            self._open, self._failures = run, 0
        except RunFailed as error:
            await self._give_up(run, error)
        except BaseException:
            if run.session is not None:
                await run.session.end()
            raise
        before_s, self._paced_s = self._paced_s, self._time.now_s()
        self._pace.ran(row, self._paced_s - before_s)
        self._worked.add(row.run_id)
        self._tell("run_finished", row, ", ".join(r.code for r in run.reasons))

    async def _close_before_a_change(self, row: PlanRow) -> None:
        """Where another idle power comes into force, the idle window behind the run before comes first."""
        asked = row.condition(self._workload, self._campaign.seed).testbed
        if any(moves_idle_power(name) and self._asked.get(name) != value for name, value in asked.items()):
            await self._close_chain()

    async def _set_testbed(self, run: OpenRun) -> None:
        """Have the testbed as the run asks for it before its idle window; run.json keeps what is in force."""
        condition = run.row.condition(self._workload, self._campaign.seed)
        if condition.testbed != self._asked:
            self._asked = {}  # of no run, should it fail half-way
            self._in_force = await self._testbed.apply(condition)
            self._asked = condition.testbed
        if self._asked:
            run.document["in_force"] = dict(self._in_force)

    async def _look_at_clocks(self) -> None:
        """Record each host's clock; one that was stepped takes the open run with it."""
        for reason in await self._clocks.look():
            if self._open is not None:
                self._open.reasons.append(reason)
                self._bench.note(self._open.row, "clock", "clock_stepped", reason)

    async def _give_up(self, run: OpenRun, error: RunFailed) -> None:
        """Record a run that has no usable flow; its mini-block will be repeated."""
        if run.session is not None:
            await run.session.end()
        reason = self._outages.cause(error, run.began_s, self._time.now_s())
        run.reasons = [reason]
        self._bench.note(run.row, "generator", "run_failed", reason)
        document = run.document | {"status": "failed", "reasons": [reason.as_json()]}
        self._campaign.write_run(document)
        self._campaign.set_status(run.row.run_id, "invalid", reason.code)
        self._failures += not self._outages.may_return(reason)
        if self._failures >= MAX_FAILURES_IN_A_ROW:
            raise RunFailed(
                f"the last {self._failures} runs failed; the latest: {reason.detail}",
                next_step=f"remove the cause, then 'netjoule resume {self._campaign.path}'",
                code=reason.code,
            ) from error
        await self._time.sleep_until(self._time.now_s() + AFTER_A_FAILURE_S)

    async def _idle(self) -> Span:
        """Wait for radios to sleep and for the sockets to settle, then for one idle window."""
        await self._measurement.wait_for_idle_radios()
        start_s = self._time.now_s() + self._timing.settle_s + self._idle_guard_s
        idle = Span(start_s, start_s + self._timing.idle_s)
        await self._time.sleep_until(idle.t_end_s)
        return idle

    async def _end_work(self) -> None:
        """End what the open run has running; the run itself still waits for its idle window."""
        if self._open is not None and self._open.session is not None:
            session, self._open.session = self._open.session, None
            await session.end()

    def _finalise(self, idle: Span) -> None:
        """Close the open run with the idle window that follows it."""
        if self._open is not None:
            self._finaliser.finalise(self._open, idle)
            self._open = None

    # -- alignment -------------------------------------------------------------------------------

    async def _pulse(self) -> None:
        """Send a sync pulse, when the workload wants them, and find the meters' lags anew."""
        if not self._workload.sync_pulses:
            return
        try:
            await self._in_reach(self._look_at_clocks)
            place = self._testbed.place
            pulse = await sync_pulses.send_pulse(self._load, self._meters, place, self._time, self._clocks)
        except RunFailed as error:  # results then go by the lags of the passports, as without a pulse
            self._tell("sync_pulse", detail=str(error))
            return
        await self._time.sleep_until(timeline.data_due_s(self._time.now_s(), self._meters))
        await self._in_reach(self._testbed.collect)
        known = [*self._campaign.document.get("load_pulses", []), pulse]
        before = self._campaign.document.get("alignment", [])
        found = await asyncio.to_thread(self._bench.align, self._campaign.path, known)
        kept = sync_pulses.kept(before, found)
        self._campaign.set_alignment(kept, known)
        self._tell("sync_pulse", detail=sync_pulses.words(kept))
        if sync_pulses.lags(kept) != sync_pulses.lags(before):
            await self._results.recompute()

    async def _compute_results(self) -> None:
        """Bring the results of every mini-block whose runs are all final."""
        if self._results.waiting:
            await self._in_reach(self._testbed.collect)
        await self._results.compute_finished(self._open.row.run_id if self._open is not None else None)

    # -- records ---------------------------------------------------------------------------------

    def _tell(
        self, kind: Kind, row: PlanRow | None = None, detail: str = "", nodes: Sequence[dict[str, Any]] = ()
    ) -> None:
        rows = self._campaign.rows()
        again = run_table.with_repeats(rows, self._campaign.seed, self._workload.max_attempts)
        remaining_s = self._pace.remaining_s(self._left(again))
        # The results of a mini-block are told one by one, then that it is repeated.
        wanted = run_table.last_attempts(rows if kind == "run_result" else again)
        self._bench.progress(
            ProgressEvent(
                kind,
                self._time.now_s(),
                len(wanted) - len(self._left(wanted)),
                len(wanted),
                remaining_s,
                row,
                detail,
                nodes,
                settled=sum(r.status in FINAL for r in wanted),
            )
        )

    def _left(self, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Those whose flow is still to come."""
        return [r for r in rows if r.status not in FINAL and r.run_id not in self._worked]
