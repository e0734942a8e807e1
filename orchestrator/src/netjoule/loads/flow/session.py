# SPDX-License-Identifier: Apache-2.0
"""The flows of a run from ready to their reports, placed in campaign time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason
from netjoule.loads.flow.generators import FlowSpec, client_offset_ns, interval_rows
from netjoule.loads.flow.run_document import work_fields
from netjoule.loads.flow.senders import FlowGroup
from netjoule.loads.flow.verdict import judge_flow
from netjoule.workload.load import Document, Event, HostTime, Outcome, Part
from netjoule_contracts.flow_work import clock_limit_s

_Reported = tuple[FlowSpec, dict[str, Any]]


class FlowSession:
    """The flows of one run (`workload.load.LoadSession`)."""

    def __init__(
        self, group: FlowGroup, hosts: Mapping[str, str], versions: Mapping[str, str], events: Sequence[Event]
    ) -> None:
        """`group` is ready; `hosts`: by the topology's name of a client, the name of the host that it is."""
        self._group, self._hosts = group, hosts
        self.versions, self.events = versions, events

    @property
    def holds(self) -> bool:
        """Whether idle before and after has all senders' processes and sockets."""
        return self._group.holds

    async def go(self) -> None:
        """Start all flows."""
        await self._group.go()

    async def end(self) -> None:
        """Close all sockets and end the processes."""
        await self._group.end()

    async def outcome(self, time: HostTime) -> Outcome:
        """Every flow's report, its times on the campaign's clock. Raises RunFailed when a flow failed."""
        reports = await self._group.reports()
        parts = [self._part(one, time, several=len(reports) > 1) for one in reports]
        rows = [row for one in reports for row in self._interval_rows(one, time)]
        return Outcome(
            parts=parts,
            judge=lambda t_end_s: self._judged(reports, t_end_s, time),
            run_fields=work_fields(reports, [part.t_start_s for part in parts], rows),
            clock_limit_s=clock_limit_s(report for _, report in reports),
            documents=[Document("flow_report", report, flow.flow) for flow, report in reports],
            intervals=rows,
            events=_events(reports, parts),
        )

    def _part(self, reported: _Reported, time: HostTime, *, several: bool) -> Part:
        """From a flow's first packet to its end.

        Raises:
            RunFailed: when it sent nothing.
        """
        flow, report = reported
        first_ns = report["sender"]["first_packet_ns"]
        if first_ns is None:
            who = f"{flow}: the sender" if several else "the sender"
            raise RunFailed(f"{who} sent nothing", code="generator_failed")
        offset_ns = client_offset_ns(report, "sender", first_ns)
        host, end_ns = self._hosts[flow.client], report["sender"]["end_ns"]
        return Part(time.campaign_s(host, first_ns - offset_ns), time.campaign_s(host, end_ns - offset_ns))

    def _judged(self, reports: Sequence[_Reported], t_end_s: float, time: HostTime) -> list[Reason]:
        """Reasons that the flows give, named by them where there are several."""
        found = []
        for flow, report in reports:
            offset_ns = client_offset_ns(report, "sender", report["sender"]["first_packet_ns"])
            reasons = judge_flow(report, time.host_ns(self._hosts[flow.client], t_end_s) + offset_ns)
            name = f"{flow}: " if len(reports) > 1 else ""
            found += [Reason(r.code, f"{name}{r.detail}") for r in reasons]
        return found

    def _interval_rows(self, reported: _Reported, time: HostTime) -> list[dict[str, Any]]:
        flow, report = reported
        zero_ns = time.host_ns(self._hosts[flow.client], 0.0)
        return list(interval_rows(report, zero_ns, part=str(flow.flow), node=flow.client))


def _events(reports: Sequence[_Reported], parts: Sequence[Part]) -> list[Event]:
    found = []
    for (flow, _), part in zip(reports, parts, strict=True):
        named = str(flow) if len(reports) > 1 else ""
        found += [Event("first_packet", named, t_s=part.t_start_s), Event("report", named)]
    return found
