# SPDX-License-Identifier: Apache-2.0
"""The runs of a session, back to back, with one idle window between each two.

A run stays *open* after its flow until the idle window that closes it; then its run.json is sealed.
A mini-block whose runs are all sealed is *settled* (`settling.py`), in the gap between two runs, never inside
a window.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from netjoule import files, plan, pulses, reader_cost, timeline
from netjoule.clock import CampaignTime, offset_ns_at
from netjoule.elements import RETURN_S, Elements
from netjoule.errors import RunFailed
from netjoule.flow_group import FlowGroup, open_group
from netjoule.generators import Generator, controller_offset_ns, interval_rows
from netjoule.generators.base import Endpoints
from netjoule.plan import FINAL, MiniBlock, PlanRow
from netjoule.progress import Kind, Pace, ProgressEvent, ProgressSink
from netjoule.radio_log import RadioLog
from netjoule.run_document import flow_spec, new_run_document
from netjoule.run_flows import RunFlow, flows_of
from netjoule.session import rfc3339
from netjoule.settling import Results
from netjoule.store import Campaign
from netjoule.timeline import MeterPace, Span
from netjoule.verdict import Reason, first_invalidating, judge_flow

if TYPE_CHECKING:
    from netjoule.runner import Align, Compute, Remark, Testbed

__all__ = ["Runs"]

MAX_FAILURES_IN_A_ROW = 5
AFTER_A_FAILURE_S = 0.5
"""What ended a flow may have ended its server: so long until the next run, that its end is seen and not
taken for a second failure."""
T = TypeVar("T")


@dataclass
class _Open:
    """A run under way, or one that waits for its closing idle window."""

    row: PlanRow
    document: dict[str, Any]
    began_s: float
    flow: FlowGroup | None = None
    reasons: list[Reason] = field(default_factory=list)


class Runs:
    """Executes the plan of a campaign on a testbed that is up."""

    def __init__(
        self,
        campaign: Campaign,
        testbed: Testbed,
        time: CampaignTime,
        *,
        meters: Sequence[MeterPace],
        radio: RadioLog,
        progress: ProgressSink,
        compute: Compute,
        make_generator: Callable[[str], Generator],
        align: Align,
    ) -> None:
        """Prepare; nothing runs yet.

        Args:
            campaign: whose plan it is.
            testbed: that is up.
            time: of the campaign.
            meters: as they answered.
            radio: its log.
            progress: told what happens.
            compute: `compute(campaign_dir, run_ids)` writes the result.json of one mini-block's runs.
            make_generator: the generator of a name.
            align: `align(campaign_dir, pulses)` finds each meter's lag.
        """
        self._campaign = campaign
        self._testbed = testbed
        self._time = time
        self._meters = meters
        self._radio = radio
        self._elements = Elements(testbed, radio)
        self._progress = progress
        self._align = align
        self._workload = campaign.workload
        self._timing = campaign.workload.timing
        self._guard_s = timeline.guard_s(meters, testbed.power_grain_s)
        self._pace = Pace(self._timing.run_s + 2 * self._guard_s)
        self._make_generator = make_generator
        self._generators: dict[str, tuple[Generator, str]] = {}
        self._open: _Open | None = None
        self._flown: set[str] = set()
        self._block: int | None = None
        self._clocks: dict[str, dict[str, Any]] = {}
        self._failures = 0
        self._results = Results(campaign, compute, self._tell, self._event)

    async def run_all(self) -> None:
        """Run until the plan is done; repeats included."""
        try:
            self._tell("testbed_ready")
            await self._results.settle_leftovers()
            if self._upcoming() is not None:
                await self._pulse()
            while (mini := await self._next()) is not None:
                for row in mini.missing:
                    if mini.resumed:
                        begun = Reason("", "its mini-block was begun in an earlier session")
                        self._event(row, "orchestrator", "resumed_mini_block", begun)
                    await self._run(row)
                self._results.expect(mini.mini_block, mini.attempt)
            if self._flown:
                await self._pulse()
        finally:
            if self._open is not None and self._open.flow is not None:
                await self._open.flow.end()

    # -- order -----------------------------------------------------------------------------------

    async def _next(self) -> MiniBlock | None:
        """The next mini-block; at the end of a block only after all its results are in."""
        upcoming = self._upcoming()
        if upcoming is None or upcoming.block != self._block:
            await self._close_chain()
            upcoming = self._upcoming()
        self._block = upcoming.block if upcoming else None
        return upcoming

    def _upcoming(self) -> MiniBlock | None:
        """What the plan has next when the runs that wait for their results count as done."""
        self._campaign.next_mini_block()  # adds repeats of settled mini-blocks
        rows = [replace(r, status="done") if r.status == "running" else r for r in self._campaign.rows()]
        return plan.next_mini_block(rows)

    async def _close_chain(self) -> None:
        """Give the last run an idle window of its own and settle everything."""
        if self._open is not None:
            idle = await self._idle()
            await self._end_flow()
            await self._in_reach(self._look_at_clocks)
            self._seal(idle)
        if self._results.waiting:
            now_s = self._time.now_s()
            await self._time.sleep_until(timeline.data_due_s(now_s, self._meters))
        await self._settle()

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

    # -- one run ---------------------------------------------------------------------------------

    async def _run(self, row: PlanRow) -> None:
        began_s = self._time.now_s()
        self._campaign.set_status(row.run_id, "running")
        self._tell("run_started", row)
        await self._end_flow()
        await self._settle()
        await self._elements.all_back()
        run = _Open(row, self._new_document(row), self._time.now_s())
        try:
            await self._check_clocks()
            flow = await self._start_sender(run)
            idle = await self._idle()
            run.document["windows"]["idle_before"] = idle.as_json()
            self._seal(idle)
            await self._time.sleep_until(idle.t_end_s + self._guard_s)
            await self._measure(run, flow)
            self._failures = 0
        except RunFailed as error:
            await self._give_up(run, error)
        except BaseException:
            if run.flow is not None:
                await run.flow.end()
            raise
        self._pace.ran(self._time.now_s() - began_s)
        self._flown.add(row.run_id)
        self._tell("run_finished", row, ", ".join(r.code for r in run.reasons))

    async def _check_clocks(self) -> None:
        """Refuse a run whose windows a host's clock could not place.

        Raises:
            RunFailed: with the code clock_unsure.
        """
        from netjoule_meters.logger.clock_exchange import clock_is_usable

        for row in await self._look_at_clocks():
            problem = clock_is_usable(row, self._timing.measure_s)
            if problem is not None:
                raise RunFailed(problem, code="clock_unsure")

    async def _look_at_clocks(self) -> Sequence[dict[str, Any]]:
        """Record each host's clock; one that was stepped takes the open run with it. Clocks are never set."""
        from netjoule_meters.logger.clock_exchange import clock_was_stepped

        rows = await self._testbed.clock_rows(self._time.now_s())
        self._campaign.append_clocks(rows)
        for row in rows:
            before = self._clocks.get(row["host"])
            moved = clock_was_stepped(before, row) if before is not None else None
            if moved is not None and self._open is not None:
                reason = Reason("clock_unsure", moved)
                self._open.reasons.append(reason)
                self._event(self._open.row, "clock", "clock_stepped", reason)
            self._clocks[row["host"]] = row
        return rows

    def _client_offset_ns(self, client: str | None = None) -> int:
        """A client's clock minus the controller's, as last seen, carried on to now; by default the first's."""
        row = self._clocks.get(client or self._testbed.endpoints.client.name)
        return offset_ns_at(row, self._time.now_s()) if row is not None else 0

    def _ends(self) -> dict[str, Endpoints]:
        """Both ends of the flows of each client, by its name in the topology."""
        names = self._campaign.topology.hosts_with("client")
        return dict(zip(names, self._testbed.endpoints.of_each_client(), strict=False))

    def _flow_offset_ns(self, flow: RunFlow) -> int:
        return self._client_offset_ns(self._ends()[flow.client].client.name)

    async def _start_sender(self, run: _Open) -> FlowGroup:
        maker, version = await self._generator(run.row.generator)
        run.document["versions"] = {run.row.generator: version}
        if await self._testbed.ensure_server(maker):
            died = Reason("generator_failed", "the server had ended")
            self._event(run.row, "generator", "server_restarted", died)
        seed, ends = self._campaign.seed, self._ends()
        asked = [
            (flow, flow_spec(self._workload, run.row, self._guard_s, seed, flow=flow))
            for flow in flows_of(self._workload, run.row, tuple(ends))
        ]
        run.flow = await open_group(maker, asked, ends)
        holds = "holds its sockets" if run.flow.holds else "has no process while idle"
        self._event(run.row, "generator", "sender_ready", Reason("", f"the sender {holds}"))
        return run.flow

    async def _measure(self, run: _Open, group: FlowGroup) -> None:
        """From `go` to the end of the tail; the run is then open."""
        run.document["started_utc"] = rfc3339(self._time.clock.utc_now())
        await group.go()
        reports = await group.reports()
        spans = [self._span_of(flow, report, several=len(reports) > 1) for flow, report in reports]
        # Where all flows are on: from the first packet of the last to begin; the tail follows the last to end.
        first_s, end_s = max(span.t_start_s for span in spans), max(span.t_end_s for span in spans)
        windows = timeline.flow_windows(self._timing, first_s, end_s)
        for (flow, report), span in zip(reports, spans, strict=True):
            self._write_flow(run, flow, report, span.t_start_s)
            run.reasons += self._judged(flow, report, windows.measure.t_end_s, several=len(reports) > 1)
        self._write_intervals(run, reports)
        # Of flow 1, whose report is flow.json: it ties that report's clock to campaign time.
        run.document["t_first_packet_s"] = round(spans[0].t_start_s, 6)
        for name in ("warm_up", "measure", "tail"):
            run.document["windows"][name] = getattr(windows, name).as_json()
        await self._time.sleep_until(windows.tail.t_end_s)
        self._open = run

    def _span_of(self, flow: RunFlow, report: Mapping[str, Any], *, several: bool) -> Span:
        """From a flow's first packet to its end, in campaign time.

        Raises:
            RunFailed: when it sent nothing.
        """
        first_ns = report["sender"]["first_packet_ns"]
        if first_ns is None:
            who = f"{flow}: the sender" if several else "the sender"
            raise RunFailed(f"{who} sent nothing", code="generator_failed")
        offset_ns = controller_offset_ns(report, "sender", self._flow_offset_ns(flow), first_ns)
        end_ns = report["sender"]["end_ns"]
        return Span(self._time.from_ns(first_ns - offset_ns), self._time.from_ns(end_ns - offset_ns))

    def _judged(
        self, flow: RunFlow, report: Mapping[str, Any], t_end_s: float, *, several: bool
    ) -> list[Reason]:
        """Reasons that a flow gives, named by it where there are others; `t_end_s`: of the measure window."""
        at_ns = report["sender"]["first_packet_ns"]
        offset_ns = controller_offset_ns(report, "sender", self._flow_offset_ns(flow), at_ns)
        reasons = judge_flow(report, self._time.origin_ns + round(t_end_s * 1e9) + offset_ns)
        return [Reason(r.code, f"{flow}: {r.detail}") for r in reasons] if several else reasons

    async def _give_up(self, run: _Open, error: RunFailed) -> None:
        """Record a run that has no usable flow; its mini-block will be repeated."""
        if run.flow is not None:
            await run.flow.end()
        reason = self._elements.cause(error, run.began_s, self._time.now_s())
        run.reasons = [reason]
        self._event(run.row, "generator", "run_failed", reason)
        document = run.document | {"status": "failed", "reasons": [reason.as_json()]}
        self._campaign.write_run(document)
        self._campaign.set_status(run.row.run_id, "invalid", reason.code)
        self._failures += not self._elements.may_return(reason)
        if self._failures >= MAX_FAILURES_IN_A_ROW:
            raise RunFailed(
                f"the last {self._failures} runs failed; the latest: {reason.detail}",
                next_step=f"remove the cause, then 'netjoule resume {self._campaign.path}'",
                code=reason.code,
            ) from error
        await self._time.sleep_until(self._time.now_s() + AFTER_A_FAILURE_S)

    async def _idle(self) -> Span:
        """Wait for the sockets to settle, then for one idle window."""
        start_s = self._time.now_s() + self._timing.settle_s
        idle = Span(start_s, start_s + self._timing.idle_s)
        await self._time.sleep_until(idle.t_end_s)
        return idle

    async def _end_flow(self) -> None:
        """End the sender of the open run; the run itself still waits for its idle window."""
        if self._open is not None and self._open.flow is not None:
            flow, self._open.flow = self._open.flow, None
            await flow.end()

    def _seal(self, idle: Span) -> None:
        """Close the open run with the idle window that follows it."""
        if self._open is None:
            return
        run = self._open
        for loss in self._radio.take_losses():
            reason = Reason("radio_reader_lost", loss)
            run.reasons.append(reason)
            self._event(run.row, "radio", "reader_lost", reason)
        windows = run.document["windows"]
        measure = Span.of(windows["measure"])
        for reason in [
            *self._elements.reasons(windows["idle_before"]["t_start_s"], idle.t_end_s),
            *self._elements.rate_reasons(measure.t_start_s, measure.t_end_s),
        ]:
            run.reasons.append(reason)
            self._event(run.row, "radio", reason.code, reason)
        self._judge_readers(run, idle)
        for remark in self._testbed.take_remarks():
            about = Reason("", remark.detail)
            self._event(run.row, remark.source, remark.event, about, t_s=remark.t_s)
            if remark.frozen_since_s is not None:
                self._void_since(remark, run)
        run.document["windows"]["idle_after"] = idle.as_json()
        reasons = [r.as_json() for r in run.reasons]
        status = "invalid" if first_invalidating(reasons) else "done"
        self._campaign.write_run(run.document | {"status": status, "reasons": reasons})
        self._open = None

    def _judge_readers(self, run: _Open, idle_after: Span) -> None:
        """Note what reading the radios took in idle and in the measure window."""
        windows = run.document["windows"]
        idle = [Span.of(windows["idle_before"]), idle_after]
        costs = self._radio.reader_costs(idle, Span.of(windows["measure"]))
        if costs:
            run.document["reader_cpu"] = [cost.as_json() for cost in costs]
        for reason in reader_cost.reasons(costs):
            run.reasons.append(reason)
            self._event(run.row, "radio", reason.code, reason)

    def _void_since(self, remark: Remark, latest: _Open) -> None:
        """A frozen meter is noticed late: no run since its last change counts, sealed ones included.

        Runs that were settled already are settled once more, so that plan and results agree.
        """
        assert remark.frozen_since_s is not None
        reason = Reason("meter_frozen", f"{remark.detail} (since {remark.frozen_since_s:.1f} s)")
        latest.reasons.append(reason)
        for row in self._campaign.rows():
            if not self._sealed_after(row, remark.frozen_since_s):
                continue
            document = self._document(row)
            known = [reason.as_json(), *document["reasons"]]
            self._campaign.write_run(document | {"status": "invalid", "reasons": known})
            self._event(row, "meter", "run_invalid", reason)
            if row.status == "done":
                self._results.expect(row.mini_block, row.attempt)

    def _sealed_after(self, row: PlanRow, t_s: float) -> bool:
        """Whether a run that is sealed, and counts so far, reached beyond campaign time `t_s`."""
        path = self._campaign.run_dir(row.run_id) / "run.json"
        if row.status not in ("done", "running") or not path.exists():
            return False
        document = files.read_json(path)
        idle_after = document["windows"]["idle_after"]
        return document["status"] == "done" and idle_after is not None and idle_after["t_end_s"] > t_s

    # -- alignment -------------------------------------------------------------------------------

    async def _pulse(self) -> None:
        """Send a load pulse, when the workload wants them, and find the meters' lags anew."""
        if self._workload.load_pulses is None:
            return
        maker, _ = await self._generator("netjoule-traffic")
        try:
            await self._in_reach(self._look_at_clocks)
            await self._testbed.ensure_server(maker)
            pulse = await pulses.send_pulse(
                self._workload,
                self._meters,
                maker,
                self._testbed.endpoints,
                self._time,
                client_offset_ns=self._client_offset_ns,
            )
        except RunFailed as error:  # results then go by the lags of the passports, as without a pulse
            self._tell("load_pulse", detail=str(error))
            return
        await self._time.sleep_until(timeline.data_due_s(self._time.now_s(), self._meters))
        await self._in_reach(self._testbed.collect)
        known = [*self._campaign.document.get("load_pulses", []), pulse]
        before = self._campaign.document.get("alignment", [])
        found = await asyncio.to_thread(self._align, self._campaign.path, known)
        kept = pulses.kept(before, found)
        self._campaign.set_alignment(kept, known)
        self._tell("load_pulse", detail=pulses.words(kept))
        if pulses.lags(kept) != pulses.lags(before):
            await self._results.recompute()

    async def _settle(self) -> None:
        """Bring the results of every mini-block whose runs are all sealed."""
        if self._results.waiting:
            await self._in_reach(self._testbed.collect)
        await self._results.settle(self._open.row.run_id if self._open is not None else None)

    # -- records ---------------------------------------------------------------------------------

    def _new_document(self, row: PlanRow) -> dict[str, Any]:
        campaign, now = self._campaign, self._time.clock.utc_now()
        return new_run_document(campaign.name, self._workload, campaign.topology, row, now)

    def _write_flow(self, run: _Open, flow: RunFlow, report: dict[str, Any], first_s: float) -> None:
        self._campaign.write_flow(run.row.run_id, report, flow.flow)
        named = Reason("", str(flow) if "flows" in run.document else "")
        if "flows" in run.document:
            run.document["flows"][flow.flow - 1]["t_first_packet_s"] = round(first_s, 6)
        self._event(run.row, "generator", "first_packet", named, t_s=first_s)
        self._event(run.row, "generator", "report", named)

    def _write_intervals(self, run: _Open, reports: Sequence[tuple[RunFlow, dict[str, Any]]]) -> None:
        """Of all flows, in one table: first all of flow 1."""
        rows = [
            row
            for flow, report in reports
            for row in interval_rows(report, self._time.origin_ns, self._flow_offset_ns(flow), flow.flow)
        ]
        self._campaign.write_intervals(run.row.run_id, rows)

    async def _generator(self, name: str) -> tuple[Generator, str]:
        if name not in self._generators:
            made = self._make_generator(name)
            version = await made.version()
            self._campaign.set_versions({name: version})
            self._generators[name] = (made, version)
        return self._generators[name]

    def _event(
        self, row: PlanRow, source: str, event: str, reason: Reason, *, t_s: float | None = None
    ) -> None:
        at_s = self._time.now_s() if t_s is None else t_s
        record = {"t_s": at_s, "source": source, "event": event, **reason.as_json()}
        self._campaign.append_events(row.run_id, [record])

    def _tell(
        self, kind: Kind, row: PlanRow | None = None, detail: str = "", nodes: Sequence[dict[str, Any]] = ()
    ) -> None:
        rows = self._campaign.rows()
        left = sum(r.status not in FINAL and r.run_id not in self._flown for r in rows)
        remaining_s = self._pace.remaining_s(left)
        event = ProgressEvent(
            kind, self._time.now_s(), len(rows) - left, len(rows), remaining_s, row, detail, nodes
        )
        self._progress(event)

    def _document(self, row: PlanRow) -> dict[str, Any]:
        return files.read_json(self._campaign.run_dir(row.run_id) / "run.json")
