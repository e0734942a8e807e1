# SPDX-License-Identifier: Apache-2.0
"""A campaign's folder out of imported flows: one run each, in the order in which they began.

A run is a mini-block by itself, because the flows were not run back to back: no pairs are formed. The n-th
flow of a cell (transport, direction, size, rate) belongs to block n, so that repetitions count as such.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from netjoule.core import files
from netjoule.core.errors import RunFailed, UsageError
from netjoule.core.reason import Reason, first_invalidating
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import Span
from netjoule.execution.results import Results
from netjoule.execution.run_document import new_run_document
from netjoule.importing.flows import CLIENT, SERVER, FileRead, Found, ImportedFlow, Options, names
from netjoule.loads.flow.generators import FlowSpec, interval_rows
from netjoule.loads.flow.run_document import work_fields
from netjoule.loads.flow.verdict import judge_flow
from netjoule.store.campaign import Campaign
from netjoule.store.session import rfc3339
from netjoule.topology.topology import IMPORTED, Topology
from netjoule.workload.cell import Cell
from netjoule.workload.load import Document
from netjoule.workload.workload import Workload
from netjoule_contracts.flow_work import clock_limit_s
from netjoule_energy import CampaignError, compute_and_write

METER = "none"
"""Name of what stands where a campaign has a meter."""
_OF_CELL = ("payload_bytes", "offered_rate_mbps", "direction")
_SAME_IN_ALL = {"parallel": 1, "pacing": "other", "window_us": 0, "gso": False}
_UNKNOWN = ("serial", "firmware", "crest_factor", "update_interval_s", "calibration_date")
_LONGEST_S = 86_400.0  # of a measure window, as workloads may ask for


@dataclass(frozen=True, slots=True)
class _Run:
    """A flow with its row of plan.csv and its start in campaign time."""

    flow: ImportedFlow
    row: PlanRow
    t_start_s: float


def write(
    out: Path,
    found: Found,
    options: Options,
    *,
    versions: Mapping[str, str | None],
    host: Mapping[str, object],
    now: datetime,
) -> tuple[PlanRow, ...]:
    """Make the campaign; it is complete when this returns, and gone when it fails.

    Args:
        out: a new or empty folder.
        found: flows, all of one generator, and the files that they come from.
        options: what the user said.
        versions: of this netjoule.
        host: fingerprint of this host.
        now: of the import.

    Returns:
        the rows of plan.csv.

    Raises:
        UsageError: when the folder is not empty, or the flows are of several generators.
        RunFailed: when it cannot be written.
    """
    generators = sorted({flow.generator for flow in found.flows})
    if len(generators) != 1:
        raise UsageError(
            f"the files are of {' and '.join(generators)}",
            next_step="import each program's results by itself",
        )
    runs = _runs(found.flows)
    with Campaign.create(
        out,
        workload=_workload(runs),
        topology=_topology(options),
        seed=0,
        versions={**versions, generators[0]: ", ".join(_versions(found.flows)) or None},
        host=host,
        created=now,
        rows=[run.row for run in runs],
        imported=_imported(generators[0], runs, found.files),
    ) as campaign:
        try:
            _fill(campaign, runs)
        except BaseException:
            shutil.rmtree(out, ignore_errors=True)
            raise
        return campaign.rows()


def _runs(flows: Sequence[ImportedFlow]) -> list[_Run]:
    ordered = sorted(flows, key=lambda flow: (flow.began_s, names(flow.sources), flow.report["direction"]))
    first_s = ordered[0].began_s
    seen: Counter[tuple[Any, ...]] = Counter()
    runs = []
    for number, flow in enumerate(ordered, start=1):
        report = flow.report
        cell = tuple(report[name] for name in ("transport", *_OF_CELL))
        seen[cell] += 1
        block = seen[cell]
        row = PlanRow(
            run_id=f"b{block:02d}m{number:03d}-{report['transport']}-a1",
            block=block,
            mini_block=number,
            order=1,
            attempt=1,
            load="flow",
            kind="work",
            arm=report["transport"],
            seed=0,
            cell=Cell({name: report[name] for name in _OF_CELL} | _SAME_IN_ALL),
        )
        runs.append(_Run(flow, row, flow.began_s - first_s))
    return runs


def _versions(flows: Sequence[ImportedFlow]) -> list[str]:
    return sorted({flow.version for flow in flows if flow.version})


def _workload(runs: Sequence[_Run]) -> Workload:
    """What the flows amount to as a workload; it is a record, and nothing runs it."""
    rows = [run.row for run in runs]
    generator = runs[0].flow.generator
    longest_s = max(run.flow.report["duration_s"] for run in runs)
    document = {
        "schema_version": 2,
        "name": f"imported-{generator}",
        "description": f"Results of {generator}, imported; the cells are those that were found.",
        "load": "flow",
        "control": False,
        "factors": {
            "transport": sorted({row.arm for row in rows}),
            "payload_bytes": sorted({row.cell["payload_bytes"] for row in rows}),
            "offered_rate_mbps": sorted({row.cell["offered_rate_mbps"] for row in rows}),
            "direction": "up" if any(row.cell["direction"] == "up" for row in rows) else "down",
        },
        "flow": {"generator": generator, "ip_version": runs[0].flow.report["ip_version"]},
        "blocks": max(row.block for row in rows),
        "timing": dict.fromkeys(("idle_s", "settle_s", "warm_up_s", "tail_s"), 0)
        | {"measure_s": min(longest_s, _LONGEST_S)},
        "limits": {"max_attempts": 1},
    }
    # Not held to the rules of flows, whose defaults were nobody's choice: no file tells which options it had.
    return Workload.from_document(document, where="the imported files")


def _topology(options: Options) -> Topology:
    document = {
        "schema_version": 1,
        "name": IMPORTED,
        "kind": IMPORTED,
        "radio_source": options.radio_source,
        "description": "Where the imported flows ran; no power was logged beside them.",
        "hosts": {CLIENT: {"roles": ["client"]}, SERVER: {"roles": ["server"]}},
        "meters": [{"meter_id": METER, "node": CLIENT, "adapter": "none", "resource": "none"}],
    }
    return Topology.from_document(document, where="the imported files")


def _passport() -> dict[str, Any]:
    """What stands for a meter: every table has one, and this one says that there was none."""
    not_logged = "power was not logged"
    accuracy = {"reading_ratio": None, "range_ratio": None, "source": not_logged, "status": "unknown"}
    return dict.fromkeys((*_UNKNOWN, "device_model", "device_form")) | {
        "schema_version": 1,
        "meter_id": METER,
        "node": CLIENT,
        "adapter": "none",
        "make": "no",
        "model": "meter",
        "identification": not_logged,
        "range": dict.fromkeys(("voltage_v", "current_a", "power_w")),
        "lag_s": 0,
        "accuracy": accuracy,
        "emulated": False,
        "power_source": "unknown",
    }


def _imported(generator: str, runs: Sequence[_Run], read: Sequence[FileRead]) -> dict[str, Any]:
    return {
        "generator": generator,
        "generator_versions": _versions([run.flow for run in runs]),
        "files": [
            {
                "file": one.source.path.name,
                "size_bytes": one.source.size_bytes,
                "sha256": one.source.sha256,
                "format": one.format,
                "generator_version": one.version,
                "system": one.system,
                "runs": [run.row.run_id for run in runs if one.source in run.flow.sources],
            }
            for one in read
        ],
    }


def _fill(campaign: Campaign, runs: Sequence[_Run]) -> None:
    """Write every run, have its numbers computed, and close the campaign."""
    first = datetime.fromtimestamp(runs[0].flow.began_s, UTC)
    session = campaign.begin_session(boot_id=IMPORTED, monotonic_ns=0, utc=first)
    campaign.set_meters([_passport()])
    files.write_atomic(campaign.meters_dir / f"{METER}.csv", files.table_text("meters", []))
    results = Results(
        campaign,
        _compute,
        lambda *_args, **_kwargs: None,
        lambda row, source, event, reason: _event(campaign, row, 0.0, (source, event), reason),
    )
    last_s = 0.0
    for run in runs:
        last_s = max(last_s, _write_run(campaign, run))
        results.expect(run.row.mini_block, run.row.attempt)
    asyncio.run(results.compute_finished(None))
    end = datetime.fromtimestamp(runs[0].flow.began_s + last_s, UTC)
    campaign.end_session(session, end="complete", monotonic_ns=round(last_s * 1e9), utc=end)


def _compute(campaign: Path, run_ids: Sequence[str]) -> None:
    try:
        compute_and_write(campaign, run_ids)
    except CampaignError as error:
        raise RunFailed(str(error)) from error


def _write_run(campaign: Campaign, run: _Run) -> float:
    """Write one run without its result; when it ended, campaign time."""
    flow, row = run.flow, run.row
    # Each flow has a clock of its own, which begins with its first message: sums of days stay exact.
    clock = {"boot_id": f"{IMPORTED}-{row.run_id}"}
    receiver = flow.report["receiver"]
    report = flow.report | {
        "sender": flow.report["sender"] | clock,
        "receiver": receiver and receiver | clock,
    }
    if report["flow_id"] == IMPORTED:
        report["flow_id"] = row.run_id
    document = _document(campaign, run, report)
    campaign.write_document(row.run_id, "flow", Document("flow_report", report))
    node = str(document["hosts"]["client"])
    rows = list(interval_rows(report, -round(run.t_start_s * 1e9), node=node))
    campaign.write_intervals(row.run_id, rows)
    given = ("transport", *_OF_CELL, "duration_s", "ip_version", "seed")
    asked = FlowSpec(run_id=row.run_id, client=node, **{name: report[name] for name in given})
    campaign.write_run(document | work_fields([(asked, report)], [run.t_start_s], rows))
    spoilt = first_invalidating(document["reasons"])
    campaign.set_status(row.run_id, "invalid" if spoilt else "valid", spoilt.code if spoilt else "")
    came_from = Reason("", f"from {names(flow.sources)}")
    _event(campaign, row, run.t_start_s, ("orchestrator", "imported"), came_from)
    _event(campaign, row, run.t_start_s, ("generator", "first_packet"), Reason("", ""))
    for reason in document["reasons"]:
        told = Reason(reason["code"], reason["detail"])
        _event(campaign, row, run.t_start_s, ("generator", "remark"), told)
    return float(document["windows"]["measure"]["t_end_s"])


def _document(campaign: Campaign, run: _Run, report: Mapping[str, Any]) -> dict[str, Any]:
    """run.json: of the windows there is the one that goodput is taken over."""
    flow = run.flow
    began = datetime.fromtimestamp(flow.began_s, UTC)
    document = new_run_document(campaign.name, campaign.topology, run.row, began)
    measure = Span(*(run.t_start_s + edge_ns / 1e9 for edge_ns in flow.measure_ns))
    # Nothing planned the window, so no flow is too short for it.
    reasons = [*flow.notes, *judge_flow(report, report["sender"]["last_packet_ns"] or 0)]
    coded = [reason.as_json() for reason in reasons]
    return document | {
        "windows": document["windows"] | {"measure": measure.as_json()},
        "window": {"kind": "fixed", **measure.as_json(), "clock_limit_s": clock_limit_s([report])},
        "started_utc": rfc3339(began),
        "versions": {flow.generator: flow.version},
        "status": "invalid" if first_invalidating(coded) else "done",
        "reasons": coded,
    }


def _event(campaign: Campaign, row: PlanRow, t_s: float, what: tuple[str, str], reason: Reason) -> None:
    source, event = what
    told = {"t_s": t_s, "source": source, "event": event, "code": reason.code, "detail": reason.detail}
    campaign.append_events(row.run_id, [told])
