# SPDX-License-Identifier: Apache-2.0
"""The flows of a run from ready to their reports, placed in campaign time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason
from netjoule.design import timeline
from netjoule.loads.flow import routers
from netjoule.loads.flow.generators import Flow, FlowSpec, Generator, client_offset_ns, interval_rows
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.run_document import work_fields
from netjoule.loads.flow.verdict import judge_flow
from netjoule.workload.load import Document, Event, HostTime, Outcome, Part, Place
from netjoule.workload.workload import Timing
from netjoule_contracts.flow_work import clock_limit_s

_Reported = tuple[FlowSpec, dict[str, Any]]
OfRouters = tuple[Sequence[Mapping[str, Any]], Mapping[str, float | None]]
"""Rows of routers.csv, and the measures of the routers in the run's window."""


class FlowSession:
    """The flows of one run, ready together (`workload.load.LoadSession`)."""

    def __init__(
        self,
        flows: Sequence[tuple[FlowSpec, Flow]],
        hosts: Mapping[str, str],
        versions: Mapping[str, str],
        events: Sequence[Event],
        of_routers: Callable[[float, float], OfRouters] | None = None,
    ) -> None:
        """`flows` are ready.

        Args:
            hosts: by the topology's name of a client, the name of the host that it is.
            of_routers: what the routers on the path tell, from the start of the last flow to the end of all.
        """
        self._flows, self._hosts, self._of_routers = tuple(flows), hosts, of_routers
        self.versions, self.events = versions, events

    @property
    def holds(self) -> bool:
        """Whether idle before and after has all senders' processes and sockets."""
        return all(flow.holds for _, flow in self._flows)

    async def go(self) -> None:
        """Start all flows, one right after the other."""
        for _, flow in self._flows:
            await flow.go()

    async def end(self) -> None:
        """Close all sockets and end the processes; may be called at any time, and twice."""
        await end_all(self._flows)

    async def _reports(self) -> list[_Reported]:
        """Every flow's report, once all have ended.

        Raises:
            RunFailed: as the first flow that failed gives it; with several flows it names which.
        """
        tasks = [asyncio.ensure_future(flow.report()) for _, flow in self._flows]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for (asked, _), task in zip(self._flows, tasks, strict=True):
                error = task.exception() if task.done() else None
                if error is not None:
                    raise _named(asked, error) if len(self._flows) > 1 else error
            return [(asked, task.result()) for (asked, _), task in zip(self._flows, tasks, strict=True)]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def outcome(self, time: HostTime) -> Outcome:
        """Every flow's report, its times on the campaign's clock. Raises RunFailed when a flow failed."""
        reports = await self._reports()
        parts = [self._part(one, time, several=len(reports) > 1) for one in reports]
        rows: list[dict[str, Any]] = []
        for flow, report in reports:
            zero_ns = time.host_ns(self._hosts[flow.client], 0.0)
            rows += interval_rows(report, zero_ns, part=str(flow.flow), node=flow.client)
        fields = self._work_fields(reports, parts, rows)
        of_routers: OfRouters = ((), {})
        if self._of_routers is not None:
            start_s = max(part.t_start_s for part in parts)
            of_routers = self._of_routers(start_s, max(part.t_end_s for part in parts))
            fields["measures"] |= of_routers[1]
        return Outcome(
            parts=parts,
            judge=lambda t_end_s: self._judged(reports, t_end_s, time),
            run_fields=fields,
            routers=of_routers[0],
            clock_limit_s=clock_limit_s(report for _, report in reports),
            documents=[Document("flow_report", report, flow.flow) for flow, report in reports],
            intervals=rows,
            events=_events(reports, parts),
        )

    def _work_fields(
        self, reports: Sequence[_Reported], parts: Sequence[Part], rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """What run.json says of the work."""
        return work_fields(reports, [part.t_start_s for part in parts], rows)

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


def _events(reports: Sequence[_Reported], parts: Sequence[Part]) -> list[Event]:
    found = []
    for (flow, _), part in zip(reports, parts, strict=True):
        named = str(flow) if len(reports) > 1 else ""
        found += [Event("first_packet", named, t_s=part.t_start_s), Event("report", named)]
    return found


def of_routers(place: Place, timing: Timing, start_s: float, end_s: float) -> OfRouters:
    """What the routers of a place did while flows were on, and in the window of these; nothing of none."""
    if place.routers is None:
        return (), {}
    rows = place.routers(start_s, end_s)
    measure = timeline.flow_windows(timing, start_s, end_s).measure
    return rows, routers.measures_of(rows, measure.t_start_s, measure.t_end_s)


async def open_flows(
    maker: Generator,
    asked: Sequence[FlowSpec],
    ends: Mapping[str, Endpoints],
) -> list[tuple[FlowSpec, Flow]]:
    """Start the senders of a run up to the point where only `go` is missing.

    Args:
        maker: makes every flow.
        asked: the flows, by their numbers.
        ends: the two hosts of a flow, by its client.

    Raises:
        RunFailed: when one does not get ready; the others have ended then.
    """
    ready: list[tuple[FlowSpec, Flow]] = []
    try:
        for flow in asked:
            ready.append((flow, await maker.open(flow, ends[flow.client])))
    except BaseException as error:
        await end_all(ready)
        if len(asked) > 1 and isinstance(error, RunFailed):
            raise _named(asked[len(ready)], error) from error
        raise
    return ready


async def end_all(flows: Sequence[tuple[FlowSpec, Flow]]) -> None:
    """End each flow, whatever becomes of the others; what the first that failed raised is raised then."""
    ended = await asyncio.gather(*(flow.end() for _, flow in flows), return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error


def _named(flow: FlowSpec, error: BaseException) -> BaseException:
    """The same failure with the flow's name; what is no failure of a flow stays what it is."""
    if not isinstance(error, RunFailed):
        return error
    return RunFailed(f"{flow}: {error}", code=error.code)
