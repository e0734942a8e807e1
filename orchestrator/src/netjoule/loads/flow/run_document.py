# SPDX-License-Identifier: Apache-2.0
"""The work of flows that have ended, as run.json has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule.loads.flow.generators import FlowSpec
from netjoule.workload.load import Kept
from netjoule_contracts import flow_work
from netjoule_contracts.flow_work import FlowPart
from netjoule_contracts.lift import runs as lift


def work_fields(
    reports: Sequence[tuple[FlowSpec, Mapping[str, Any]]],
    starts_s: Iterable[float],
    rows: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """What run.json says of the work of flows that have ended.

    Args:
        reports: what was asked of each, and its report.
        starts_s: of each, campaign time.
        rows: of intervals.csv.
    """
    flows = [
        ({**flow.as_json(), "t_first_packet_s": round(start_s, 6)}, report)
        for (flow, report), start_s in zip(reports, starts_s, strict=True)
    ]
    received = not all(flow.transport == lift.NULL for flow, _ in reports)
    return {
        "work": flow_work.work_of(flows, lift.sizes_of(rows), received=received),
        "measures": flow_work.measures_of_all(flows),
    }


def flow_parts(kept: Kept) -> list[FlowPart]:
    """The flows of a run with their reports, {} for each that is missing."""
    found: list[FlowPart] = []
    for number, part in enumerate((kept.run["work"] or {}).get("parts") or [{}], start=1):
        report = kept.documents.get(number, {})
        asked = {name: report.get(name) for name in ("payload_bytes", "offered_rate_mbps")}
        asked |= {"client": part.get("node"), "t_first_packet_s": part.get("t_start_s")}
        found.append(({"windows": kept.run["windows"], **asked}, report))
    return found
