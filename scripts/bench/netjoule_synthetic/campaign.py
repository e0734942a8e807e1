# SPDX-License-Identifier: Apache-2.0
"""Puts a design on disk, file by file, through the store where it is quick enough and beside it where not."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from netjoule.design.run_table import PlanRow
from netjoule.store.campaign import Campaign
from netjoule.testbeds.emulated.config import device_model_entry
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload
from netjoule_contracts.flow_control import control_of
from netjoule_contracts.flow_work import FlowPart, measures_of_all, work_of
from netjoule_contracts.lift.runs import sizes_of
from netjoule_synthetic import documents, results
from netjoule_synthetic.clock import BOOT, CREATED, ORIGIN_NS
from netjoule_synthetic.design import NULL, TICKS_PER_S, Design
from netjoule_synthetic.traces import Means, end_tick, write_intervals, write_meter, write_radio
from netjoule_synthetic.truth import Cell, Counts, Layout, cells, counts_of, deltas_w, layout, rows, workload

_Flow = tuple[str, int, float]


@dataclass(frozen=True, slots=True)
class _Made:
    """What the documents of all runs are made of."""

    design: Design
    of: Workload
    plan: tuple[PlanRow, ...]
    parts: Layout
    counts: Mapping[_Flow, Counts]
    means: Sequence[Means]

    def run(self, place: int, meter: int) -> results.Run:
        """The run at a place of the plan, at the meter with this number."""
        row, means = self.plan[place], self.means[meter]
        found = (means.active_w[place], means.idle_w[place], means.idle_w[place + 1], means.tail_w[place])
        return results.Run(row, self.counts[_flow_of(row)], results.Power(*map(float, found)))

    def part(self, place: int) -> FlowPart:
        """What was asked of the flow at a place of the plan, and its report."""
        row = self.plan[place]
        counts = self.counts[_flow_of(row)]
        windows = documents.windows(self.parts, place)
        asked = {"windows": windows, "t_first_packet_s": windows["warm_up"]["t_start_s"], "client": "client"}
        asked |= {name: row.cell[name] for name in ("payload_bytes", "offered_rate_mbps")}
        return asked, documents.flow_report(self.of, row, counts, self.parts, place)


def write(folder: Path, design: Design) -> Path:
    """Write a finished campaign, every file of it; the folder's name becomes the campaign's.

    Args:
        folder: where; must not exist, or be empty.
        design: what is true.

    Returns:
        the folder.

    Raises:
        UsageError: when the folder holds something.
        ValueError: when no message of a cell would arrive, so that its E_A has no truth.
    """
    of = workload(design, folder.name)
    plan = rows(design, of)
    counts = _counts(design, plan)
    topology = Topology.from_document(documents.topology(design, folder.name), where="the design")
    with Campaign.create(
        folder,
        workload=of,
        topology=topology,
        seed=design.seed,
        versions={"netjoule": "0.1.0"},
        host=documents.HOST,
        created=CREATED,
        rows=plan,
    ) as campaign:
        session = campaign.begin_session(boot_id=BOOT, monotonic_ns=ORIGIN_NS, utc=CREATED)
        campaign.set_meters([documents.passport(design, meter) for meter in design.meters])
        if design.device_stream:
            campaign.set_device_models(
                [device_model_entry(m.meter_id, documents.device_model(m)) for m in design.meters]
            )
        means = _write_logs(campaign, design, plan)
        parts = layout(design)
        _write_runs(folder, _Made(design, of, plan, parts, counts, means))
        end_ns = end_tick(parts, len(plan)) * 10**9 // TICKS_PER_S
        campaign.end_session(
            session,
            end="complete",
            monotonic_ns=ORIGIN_NS + end_ns,
            utc=CREATED + timedelta(seconds=end_ns * 1e-9),
        )
    return folder


def _counts(design: Design, plan: Sequence[PlanRow]) -> dict[_Flow, Counts]:
    """Messages of every flow. Raises ValueError when none of a cell arrives."""
    counts = {flow: counts_of(design, *flow) for flow in {_flow_of(row) for row in plan}}
    for flow, found in counts.items():
        if flow[0] != NULL and found.in_window == 0:
            raise ValueError(f"nothing of {flow} arrives in the measure window: take a longer one")
    return counts


def _flow_of(row: PlanRow) -> _Flow:
    return row.arm, row.cell["payload_bytes"], row.cell["offered_rate_mbps"]


def _write_logs(campaign: Campaign, design: Design, plan: Sequence[PlanRow]) -> list[Means]:
    """Tables of the whole campaign; the means of each meter's readings."""
    delta_w = deltas_w(design, plan)
    means = [write_meter(design, k, delta_w[:, k], campaign.path) for k in range(len(design.meters))]
    write_radio(design, "client", len(plan), campaign.path)
    until_s = end_tick(layout(design), len(plan)) / TICKS_PER_S
    clock = {"offset_s": 0.0, "drift_ppm": None, "residual_s": 0.0, "method": "same_boot"}
    hosts = ("client", "server")
    campaign.append_clocks([{"t_s": t, "host": host, **clock} for t in (0.5, until_s) for host in hosts])
    return means


def _write_runs(folder: Path, made: _Made) -> None:
    """The folder of every run. Not through the store: holding each document to its contract takes long."""
    nulls = {(r.mini_block, r.attempt): k for k, r in enumerate(made.plan) if r.arm == NULL}
    for place, row in enumerate(made.plan):
        path = folder / "runs" / row.run_id
        path.mkdir()
        counts = made.counts[_flow_of(row)]
        null = nulls.get((row.mini_block, row.attempt))
        part = made.part(place)
        _save(path / "flow.json", part[1])
        rows = [{"part": "1", "work": work} for work in counts.works]
        run = documents.run_document(made.of.name, made.of, row, part[0]["windows"])
        run["work"] = work_of([part], sizes_of(rows), received=row.arm != NULL)
        run["measures"] = measures_of_all([part])
        if null is not None and row.arm != NULL:
            run["control"] = control_of([part], [made.part(null)], made.plan[null].run_id)
        _save(path / "run.json", run)
        first_tick = made.parts.start(place) + made.parts.idle
        write_intervals(path / "intervals.csv", first_tick, counts.works)
        _write_events(path / "events.csv", first_tick, first_tick + made.parts.flow)
        nodes = [
            results.node(made.design, meter, made.run(place, k), None if null is None else made.run(null, k))
            for k, meter in enumerate(made.design.meters)
        ]
        _save(path / "result.json", documents.result(made.design, row, counts, part[0]["windows"], nodes))


def _write_events(path: Path, first_tick: int, last_tick: int) -> None:
    told = ((first_tick, "first_packet"), (last_tick, "report"))
    lines = [f"{tick / TICKS_PER_S:.6f},generator,{event},,\n" for tick, event in told]
    path.write_text("t_s,source,event,code,detail\n" + "".join(lines), encoding="ascii")


def _save(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def write_truth(path: Path, design: Design) -> None:
    """Write the truth of every cell as CSV: the columns of ``Cell``, empty where there is no floor."""
    names = [field.name for field in fields(Cell)]
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(cell) for cell in cells(design))
