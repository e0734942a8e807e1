# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the reports of a finished run of flows, beyond their contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.settings import FlowSettings
from netjoule.store.blocks import document_name
from netjoule.workload.load import Condition, Kept
from netjoule_contracts import flow_work

_ASKED = ("transport", "direction", "payload_bytes")

Found = Iterator[tuple[str, str, str]]
"""File in the run's folder, place in it, what is wrong."""


class ReportDefects:
    """Holds the reports of a campaign's runs to what was asked, to intervals.csv, and to one another."""

    def __init__(self, settings: FlowSettings, *, imported: bool) -> None:
        """`imported`: of another program's flows nobody here chose the options."""
        self._settings, self._imported = settings, imported
        self._schedules: dict[tuple[object, ...], tuple[str, object]] = {}

    def of_run(self, condition: Condition, flows: Sequence[FlowSpec], kept: Kept) -> Found:
        """Defects of one run; `flows`: what its condition asks for."""
        codes = {reason["code"] for reason in kept.run["reasons"]}
        parts = {part["part"]: part for part in (kept.run["work"] or {}).get("parts", ())}
        for flow in flows:
            report, file = kept.documents.get(flow.flow), document_name("flow", flow.flow)
            if not report:
                continue
            yield from self._asked(file, flow, report)
            if "bookkeeping_mismatch" not in codes:
                yield from _books(file, report)
            yield from _arrived(file, report, parts.get(str(flow.flow)))
            if self._settings.profile is not None:
                yield from self._schedule(file, condition, flow, report)

    def _asked(self, file: str, flow: FlowSpec, report: Mapping[str, Any]) -> Found:
        wanted = {name: getattr(flow, name) for name in _ASKED}
        # null sends nothing, so its report has no IP version.
        if report["ip_version"] is not None and not self._imported:
            wanted["ip_version"] = self._settings.ip_version
        for name, value in wanted.items():
            if report[name] != value:
                yield file, f"field {name}", f"{report[name]!r}, but the campaign asks for {value!r}"
        used = report.get("transport_options") or {}
        for name, value in ({} if self._imported else flow.options).items():
            if used.get(name) != value:
                what = f"{used.get(name)!r}, but the campaign asks for {value!r}"
                yield file, f"field transport_options.{name}", what

    def _schedule(self, file: str, condition: Condition, flow: FlowSpec, report: Mapping[str, Any]) -> Found:
        """With a profile, every flow of a mini-block had the schedule that the mini-block's seed gives.

        Of one client: every other has the same.
        """
        if (report.get("profile") or {}).get("seed") != flow.schedule_seed:
            what = "not the one that the campaign's seed gives its mini-block"
            yield file, "field profile.seed", what
        digest = report.get("schedule_digest")
        key = (condition.schedule_seed, flow.flow, report["duration_s"])
        run_id, other = self._schedules.setdefault(key, (condition.run_id, digest))
        if digest != other:
            yield file, "field schedule_digest", f"another schedule than that of run {run_id}"


def _books(file: str, report: Mapping[str, Any]) -> Found:
    """What the load reconciles, where the run is not invalid for it."""
    for words in flow_work.books(report):
        yield file, "field sender" if words.startswith("scheduled") else "field receiver", words
    if report["reconciles"] is False:
        yield file, "field reconciles", "false, but the run is not invalid for bookkeeping_mismatch"


def _arrived(file: str, report: Mapping[str, Any], part: Mapping[str, Any] | None) -> Found:
    """The receiver's intervals come to what its end counted."""
    told = (report["receiver"] or {}).get("bytes_received_unique")
    if told is None or part is None or part["quantity"] is None:
        return
    found = flow_work.bytes_of(part["quantity"])
    if round(found) != told:
        words = f"the receiver's intervals sum to {found:.0f}, {file} has {told}"
        yield "intervals.csv", "column work", words
