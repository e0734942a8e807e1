# SPDX-License-Identifier: Apache-2.0
"""The flows of a run: their senders opened, told go, their reports placed in campaign time and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from netjoule.core.clock import CampaignTime
from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason
from netjoule.design import timeline
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import Span
from netjoule.execution.active_run import Note, OpenRun
from netjoule.loads.flow.flows import RunFlow, flows_of
from netjoule.loads.flow.generators import Generator, controller_offset_ns, interval_rows
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.run_document import flow_spec
from netjoule.loads.flow.senders import FlowGroup, open_group
from netjoule.loads.flow.verdict import judge_flow
from netjoule.store.campaign import Campaign
from netjoule.store.session import rfc3339
from netjoule.testbeds.host_clocks import HostClocks

if TYPE_CHECKING:
    from netjoule.testbeds.base import Testbed

__all__ = ["Measuring"]


class Measuring:
    """Makes the flows of a campaign's runs on a testbed that is up."""

    def __init__(
        self, campaign: Campaign, testbed: Testbed, time: CampaignTime, *, clocks: HostClocks, note: Note
    ) -> None:
        """Nothing flows yet.

        Args:
            campaign: whose runs they are.
            testbed: that is up.
            time: of the campaign.
            clocks: of its hosts.
            note: writes events.
        """
        self._campaign, self._testbed, self._time = campaign, testbed, time
        self._clocks, self._note = clocks, note
        self._workload = campaign.workload

    async def open(self, row: PlanRow, maker: Generator, guard_s: float) -> FlowGroup:
        """Start the senders of a run up to the point where only `go` is missing.

        Args:
            row: of the plan.
            maker: makes every flow.
            guard_s: keeps their ends out of the measure window's last reading.

        Raises:
            RunFailed: when one does not get ready.
        """
        seed, ends = self._campaign.seed, self._ends()
        asked = [
            (flow, flow_spec(self._workload, row, guard_s, seed, flow=flow))
            for flow in flows_of(self._workload, row, tuple(ends))
        ]
        return await open_group(maker, asked, ends)

    async def measure(self, run: OpenRun, group: FlowGroup) -> Span:
        """From `go` to the reports; run.json then has its windows, and what the flows give as reasons.

        Returns:
            The tail, which is still to come.

        Raises:
            RunFailed: when a flow fails or sent nothing.
        """
        run.document["started_utc"] = rfc3339(self._time.clock.utc_now())
        await group.go()
        reports = await group.reports()
        spans = [self._span_of(flow, report, several=len(reports) > 1) for flow, report in reports]
        # All flows are on from the first packet of the last to begin; the tail begins when all have ended.
        first_s, end_s = max(span.t_start_s for span in spans), max(span.t_end_s for span in spans)
        windows = timeline.flow_windows(self._workload.timing, first_s, end_s)
        for (flow, report), span in zip(reports, spans, strict=True):
            self._write_flow(run, flow, report, span.t_start_s)
            run.reasons += self._judged(flow, report, windows.measure.t_end_s, several=len(reports) > 1)
        self._write_intervals(run, reports)
        # Of flow 1, whose report is flow.json: it ties that report's clock to campaign time.
        run.document["t_first_packet_s"] = round(spans[0].t_start_s, 6)
        for name in ("warm_up", "measure", "tail"):
            run.document["windows"][name] = getattr(windows, name).as_json()
        return windows.tail

    def _ends(self) -> dict[str, Endpoints]:
        """Both ends of the flows of each client that takes part, by its name in the topology."""
        names = self._campaign.topology.hosts_with("client")
        return dict(zip(names, self._testbed.endpoints.of_each_client(), strict=False))

    def _offset_ns(self, flow: RunFlow) -> int:
        """The clock of a flow's client minus the controller's, now."""
        return self._clocks.offset_ns(self._ends()[flow.client].client.name)

    def _span_of(self, flow: RunFlow, report: Mapping[str, Any], *, several: bool) -> Span:
        """From a flow's first packet to its end, in campaign time.

        Raises:
            RunFailed: when it sent nothing.
        """
        first_ns = report["sender"]["first_packet_ns"]
        if first_ns is None:
            who = f"{flow}: the sender" if several else "the sender"
            raise RunFailed(f"{who} sent nothing", code="generator_failed")
        offset_ns = controller_offset_ns(report, "sender", self._offset_ns(flow), first_ns)
        end_ns = report["sender"]["end_ns"]
        return Span(self._time.from_ns(first_ns - offset_ns), self._time.from_ns(end_ns - offset_ns))

    def _judged(
        self, flow: RunFlow, report: Mapping[str, Any], t_end_s: float, *, several: bool
    ) -> list[Reason]:
        """Reasons that a flow gives, named by it where there are others; `t_end_s`: of the measure window."""
        at_ns = report["sender"]["first_packet_ns"]
        offset_ns = controller_offset_ns(report, "sender", self._offset_ns(flow), at_ns)
        reasons = judge_flow(report, self._time.origin_ns + round(t_end_s * 1e9) + offset_ns)
        return [Reason(r.code, f"{flow}: {r.detail}") for r in reasons] if several else reasons

    def _write_flow(self, run: OpenRun, flow: RunFlow, report: dict[str, Any], first_s: float) -> None:
        several = "flows" in run.document
        self._campaign.write_flow(run.row.run_id, report, flow.flow)
        if several:
            run.document["flows"][flow.flow - 1]["t_first_packet_s"] = round(first_s, 6)
        named = Reason("", str(flow) if several else "")
        self._note(run.row, "generator", "first_packet", named, t_s=first_s)
        self._note(run.row, "generator", "report", named)

    def _write_intervals(self, run: OpenRun, reports: Sequence[tuple[RunFlow, dict[str, Any]]]) -> None:
        """Of all flows, in one table: first all of flow 1."""
        rows = [
            row
            for flow, report in reports
            for row in interval_rows(report, self._time.origin_ns, self._offset_ns(flow), flow.flow)
        ]
        self._campaign.write_intervals(run.row.run_id, rows)
