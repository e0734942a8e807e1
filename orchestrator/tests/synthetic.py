# SPDX-License-Identifier: Apache-2.0
"""Makes a finished campaign without running one: constant power, a perfect flow, the real arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from netjoule import loads
from netjoule.core import files
from netjoule.design.run_table import PlanRow
from netjoule.execution.results import write_controls
from netjoule.loads import load_of
from netjoule.loads.flow.flows import flows_of
from netjoule.loads.flow.generators import FlowSpec, interval_rows
from netjoule.loads.flow.run_document import work_fields
from netjoule.loads.flow.settings import FlowSettings, Pace
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.topology.topology import Topology
from netjoule.workload.cell import Cell
from netjoule.workload.load import Document
from netjoule.workload.workload import Workload
from netjoule_energy import compute_and_write
from netjoule_synthetic import documents
from netjoule_synthetic.clock import BOOT, ORIGIN_NS
from netjoule_synthetic.clock import CREATED as START
from netjoule_synthetic.documents import HOST

IDLE_W, ACTIVE_W = 5.0, 5.5
HELD_BACK_MBPS = 6
UPDATE_S = 0.1


def workload(**changes: Any) -> Workload:
    document: dict[str, Any] = {
        "schema_version": 1,
        "name": "tiny",
        "transports": ["udp", "null"],
        "payload_bytes": [1000],
        "offered_rate_mbps": [8],
        "blocks": 1,
        "timing": {"idle_s": 1, "settle_s": 0.2, "warm_up_s": 1, "measure_s": 2, "tail_s": 0.3},
    }
    return loads.made(document | changes, where="test")


def topology(**changes: Any) -> Topology:
    document: dict[str, Any] = documents.testbed() | {
        "name": "tiny",
        "meters": [
            {
                "meter_id": "m",
                "node": "client",
                "adapter": "wt210",
                "resource": "emulated",
                "settings": {
                    "update_interval_s": UPDATE_S,
                    "voltage_range_v": 15,
                    "current_range_a": 1,
                    "mode": "DC",
                },
                "device": {"model": "constant"},
            }
        ],
    }
    return Topology.from_document(document | changes, where="test")


def passport() -> dict[str, Any]:
    return {
        "schema_version": 1,
        "meter_id": "m",
        "node": "client",
        "adapter": "wt210",
        "make": "Yokogawa",
        "model": "WT210",
        "serial": None,
        "firmware": "F1.07",
        "identification": "YOKOGAWA,760401,0,F1.07",
        "range": {"voltage_v": 15.0, "current_a": 1.0, "power_w": 15.0},
        "crest_factor": 3,
        "update_interval_s": UPDATE_S,
        "lag_s": UPDATE_S,
        "accuracy": {"reading_ratio": 0.001, "range_ratio": 0.001, "source": "test", "status": "known"},
        "calibration_date": "2025-12-01",
        "emulated": True,
        "power_source": "modelled",
        "device_model": "constant",
        "device_form": "constant",
    }


def create(path: Path, **changes: Any) -> Campaign:
    return Campaign.create(
        path,
        workload=changes.pop("workload", workload()),
        topology=changes.pop("topology", topology()),
        seed=changes.pop("seed", 11),
        versions={"netjoule": "0.1.0"},
        host=HOST,
        created=START,
    )


def begin(campaign: Campaign, after_s: float = 0.0, boot: str = BOOT) -> Session:
    return campaign.begin_session(
        boot_id=boot, monotonic_ns=ORIGIN_NS + round(after_s * 1e9), utc=START + timedelta(seconds=after_s)
    )


def finished(path: Path, **changes: Any) -> Path:
    """A complete campaign in ``path``."""
    with create(path, **changes) as campaign:
        finish(campaign)
    return path


def finish(campaign: Campaign, boot: str = BOOT, pause: Callable[[], None] = lambda: None) -> None:
    """Complete a campaign, or what is left of it, mini-block by mini-block; `pause` before each run."""
    spans = [_span(campaign, row) for row in campaign.rows() if row.status == "valid"]
    t_s = 1.0 + max((end_s for _, end_s in spans), default=0.0)
    session = begin(campaign, boot=boot)
    campaign.set_meters([passport()])
    if leftovers := campaign.finished_without_result():
        write_meter(campaign, spans, t_s + 2)
        compute_and_write(campaign.path, list(leftovers))
    while (mini := campaign.next_mini_block()) is not None:
        for row in mini.rows:
            pause()
            t_s = run_one(campaign, row, t_s, spans)
        write_meter(campaign, spans, t_s + 2)
        load = load_of(campaign.workload, campaign.topology)
        run_ids = [row.run_id for row in mini.rows]
        write_controls(campaign, load, run_ids)
        compute_and_write(campaign.path, run_ids)
        for run_id in run_ids:
            campaign.set_status(run_id, "valid")
    if not (campaign.path / "clocks.csv").exists():
        write_logs(campaign, t_s + 2)
    campaign.end_session(
        session,
        end="complete",
        monotonic_ns=ORIGIN_NS + round((t_s + 3) * 1e9),
        utc=START + timedelta(hours=1),
    )


def _span(campaign: Campaign, row: PlanRow) -> tuple[float, float]:
    """When a flow of a finished run was on its way."""
    windows = campaign.read_run(row.run_id)["windows"]
    return windows["warm_up"]["t_start_s"], windows["measure"]["t_end_s"]


def _flows_of(campaign: Campaign, row: PlanRow) -> tuple[FlowSpec, ...]:
    """The flows of a run at its one client."""
    of = campaign.workload
    return flows_of(FlowSettings.of(of), row.condition(of, campaign.seed), ["client"])


def run_one(campaign: Campaign, row: PlanRow, t_s: float, spans: list[tuple[float, float]]) -> float:
    """Write a run whose idle window starts at ``t_s``; the start of the next one's."""
    timing = campaign.workload.timing
    ends = [t_s, t_s + timing.idle_s]
    for length in (timing.warm_up_s, timing.measure_s, timing.tail_s):
        ends.append(ends[-1] + length)
    idle_after = ends[-1] + timing.settle_s
    campaign.set_status(row.run_id, "running")
    windows = {
        name: {"t_start_s": round(a, 6), "t_end_s": round(b, 6)}
        for name, a, b in zip(("idle_before", "warm_up", "measure", "tail"), ends, ends[1:], strict=False)
    }
    windows["idle_after"] = {
        "t_start_s": round(idle_after, 6),
        "t_end_s": round(idle_after + timing.idle_s, 6),
    }
    spans.append((ends[1], ends[3]))
    rows, reports = [], []
    for flow in _flows_of(campaign, row):
        asked = {name: getattr(flow, name) for name in ("direction", "payload_bytes", "offered_rate_mbps")}
        of_flow = replace(row, arm=flow.transport, cell=Cell({**row.cell, **asked}))
        report = flow_report(of_flow, campaign.workload, ends[1], ends[3])
        campaign.write_document(row.run_id, "flow", Document("flow_report", report, flow.flow))
        reports.append(report)
        rows += intervals(report, flow.flow)
    campaign.write_intervals(row.run_id, rows)
    event = {"source": "generator", "event": "first_packet", "code": "", "detail": ""}
    campaign.append_events(
        row.run_id, [{"t_s": ends[1], **event}, {"t_s": ends[3], **event, "event": "report"}]
    )
    run = documents.run_document(campaign.name, campaign.workload, row, windows)
    flows = _flows_of(campaign, row)
    work = work_fields(list(zip(flows, reports, strict=True)), [ends[1]] * len(flows), rows)
    campaign.write_run(run | work)
    return idle_after


def flow_report(row: PlanRow, of: Workload, t_start_s: float, t_end_s: float) -> dict[str, Any]:
    """What netjoule-traffic reports of a flow that loses nothing; DCCP is held back over 6 Mb/s."""
    start_ns, end_ns = (ORIGIN_NS + round(t * 1e9) for t in (t_start_s, t_end_s))
    duration_s = t_end_s - t_start_s
    scheduled = round(row.cell["offered_rate_mbps"] * 1e6 * duration_s / 8 / row.cell["payload_bytes"])
    options = FlowSettings.of(of).options_of(row.arm)
    messages = (
        round(scheduled * min(1, HELD_BACK_MBPS / row.cell["offered_rate_mbps"])) if options else scheduled
    )
    payload = row.cell["payload_bytes"]
    sent_bytes = messages * payload
    goodput = sent_bytes * 8e-6 / duration_s
    cpu = {"cpu_s": 0.1, "cpu_user_s": 0.04, "cpu_system_s": 0.06}
    is_null = row.arm == "null"
    receiver = {
        "host": "server",
        "boot_id": BOOT,
        "first_packet_ns": start_ns,
        "last_packet_ns": end_ns,
        "messages_received_unique": messages,
        "messages_lost": 0,
        "messages_duplicate": 0,
        "messages_reordered": 0,
        "bytes_received_unique": sent_bytes,
        "goodput_mbps": goodput,
        "loss_ratio": 0.0,
        "jitter_ms": 0.0,
        "one_way_delay_ms": None,
        **cpu,
        "transport_stats": {},
    }
    ends = ["sender"] if is_null else ["sender", "receiver"]
    return {
        "schema_version": 1,
        "kind": "flow_report",
        "generator": {"name": FlowSettings.of(of).generator_of(row.arm), "version": "0.1.0"},
        "flow_id": row.run_id,
        "transport": row.arm,
        "transport_options": {**options, "peer_carrier": options["carrier"]} if options else {},
        "direction": row.cell["direction"],
        "ip_version": None if is_null else FlowSettings.of(of).ip_version,
        "mtu_bytes": None if is_null else 1500,
        "payload_bytes": row.cell["payload_bytes"],
        "offered_rate_mbps": row.cell["offered_rate_mbps"],
        "duration_s": duration_s,
        "interval_s": 0.1,
        "seed": row.seed,
        "pacing": asdict(Pace.of(row.cell)),
        "nodelay": None,
        "frames_per_message": None if is_null else 1.0,
        "mean_ip_packet_bytes": None if is_null else 1028.0,
        "packetisation_source": "unknown" if is_null else "computed",
        "clock_offset": {"offset_ns": 0, "residual_ns": 0, "method": "same_boot"},
        "sender": {
            "host": "client",
            "boot_id": BOOT,
            "start_ns": start_ns,
            "first_packet_ns": start_ns,
            "last_packet_ns": end_ns,
            "end_ns": end_ns,
            "messages_scheduled": scheduled,
            "messages_sent": messages,
            "messages_not_sent": scheduled - messages,
            "bytes_sent": sent_bytes,
            "goodput_mbps": goodput,
            **cpu,
            "transport_stats": {},
        },
        "receiver": None if is_null else receiver,
        "intervals": [
            i
            for end in ends
            for i in flow_intervals(end, start_ns, end_ns, messages, row.cell["payload_bytes"])
        ],
        "reconciles": True,
        "end_reason": "duration",
    }


def flow_intervals(end: str, start_ns: int, end_ns: int, messages: int, payload: int) -> list[dict[str, Any]]:
    count = round((end_ns - start_ns) / 1e8)
    share = [messages * (k + 1) // count - messages * k // count for k in range(count)]
    return [
        {
            "end": end,
            "start_ns": start_ns + k * 100_000_000,
            "end_ns": start_ns + (k + 1) * 100_000_000,
            "messages": share[k],
            "bytes": share[k] * payload,
            "messages_lost": 0,
            "messages_duplicate": 0,
            "messages_reordered": 0,
            "jitter_ms": 0.0,
            "cpu_s": 0.001,
        }
        for k in range(count)
    ]


def intervals(report: dict[str, Any], flow: int = 1) -> list[dict[str, Any]]:
    return list(interval_rows(report, ORIGIN_NS, part=str(flow), node="client"))


def write_meter(campaign: Campaign, spans: list[tuple[float, float]], until_s: float) -> None:
    """meters/m.csv as the logger writes it: one reading per update, one update late."""
    rows, stream = [], []
    for seq in range(round(until_s / UPDATE_S)):
        end_s = seq * UPDATE_S
        active = sum(
            max(0.0, min(end_s, b) - max(end_s - UPDATE_S, a)) / UPDATE_S for a, b in spans
        )  # share of the update in which a flow ran
        power_w = IDLE_W + active * (ACTIVE_W - IDLE_W)
        rows.append({"t_s": end_s + UPDATE_S, "seq": seq, "power_w": round(power_w, 6), "flag": ""})
        sample = {"t_start_s": round(end_s - UPDATE_S, 6), "t_end_s": round(end_s, 6), "power_w": power_w}
        stream.append(json.dumps({**sample, "extrapolated": False, "terms": {"idle_w": power_w}}))
    files.write_atomic(campaign.meters_dir / "m.csv", files.table_text("meters", rows))
    files.write_atomic(campaign.devices_dir / "m.ndjson", "\n".join(stream[1:]) + "\n")


def write_logs(campaign: Campaign, until_s: float) -> None:
    clock = {"host": "client", "offset_s": 0.0, "drift_ppm": None, "residual_s": 0.0, "method": "same_boot"}
    campaign.append_clocks([{"t_s": 0.5, **clock}, {"t_s": until_s, **clock}])
    radio = [{"t_s": k / 10, "phy_rate_mbps": 216.0, "mcs": 13, "streams": 2} for k in range(round(until_s))]
    campaign.append_radio("client", radio)
