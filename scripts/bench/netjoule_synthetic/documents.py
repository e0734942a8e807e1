# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of a synthetic campaign: topology, passports, and of each run run, flow and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from netjoule.design.run_table import PlanRow
from netjoule.loads.flow.settings import FlowSettings, Pace
from netjoule.store.session import rfc3339
from netjoule.workload.workload import Workload
from netjoule_contracts.flow_work import UNIT
from netjoule_contracts.types.result import Node, Result, Window, Work
from netjoule_energy.run.result import coded, document_of
from netjoule_synthetic.clock import BOOT, CREATED, ORIGIN_NS
from netjoule_synthetic.design import NULL, TICKS_PER_S, Design, Meter
from netjoule_synthetic.truth import Counts, Layout

_VERSION = "0.1.0"
_STREAMS = ("tcp", "mptcp", "sctp", "quic")
HOST = {
    "kernel": "6.1.0",
    "machine": "x86_64",
    "distribution": "none: synthetic",
    "cpu_model": "none: synthetic",
    "cpu_cores": 2,
    "memory_bytes": 4_000_000_000,
}


def testbed() -> dict[str, Any]:
    """A topology without name and meters."""
    return {
        "schema_version": 1,
        "kind": "emulated",
        "hosts": {
            "client": {"roles": ["client"], "test_addresses": {"ipv4": "10.77.0.2"}},
            "access_point": {"roles": ["access_point"]},
            "server": {"roles": ["server"], "test_addresses": {"ipv4": "10.77.0.1"}},
        },
        "link": {"preset": "ideal-216"},
    }


def topology(design: Design, name: str) -> dict[str, Any]:
    """A testbed that would have such meters."""
    return testbed() | {
        "name": name,
        "meters": [
            {
                "meter_id": meter.meter_id,
                "node": meter.node,
                "adapter": "wt210",
                "resource": "emulated",
                "settings": {"update_interval_s": meter.update_interval_s},
                "device": {"model": "constant"},
            }
            for meter in design.meters
        ],
    }


def passport(design: Design, meter: Meter) -> dict[str, Any]:
    """What the meter says of itself; its accuracy is nobody's, so unknown."""
    return {
        "schema_version": 1,
        "meter_id": meter.meter_id,
        "node": meter.node,
        "adapter": "wt210",
        "make": "none",
        "model": "synthetic",
        "serial": None,
        "firmware": None,
        "identification": "a generator of synthetic campaigns",
        "range": {"voltage_v": 15.0, "current_a": 1.0, "power_w": 15.0},
        "crest_factor": 3,
        "update_interval_s": meter.update_interval_s,
        "lag_s": meter.lag_s,
        "accuracy": {
            "reading_ratio": None,
            "range_ratio": None,
            "source": "none: synthetic",
            "status": "unknown",
        },
        "calibration_date": None,
        "emulated": True,
        "power_source": "modelled",
        "device_model": "linear" if design.device_stream else None,
        "device_form": "linear" if design.device_stream else None,
    }


def device_model(meter: Meter) -> dict[str, Any]:
    """The model behind the stream of a meter: its terms move by as many percent as their parameters."""
    return {
        "name": "linear",
        "form": "linear",
        "status": "test",
        "source": "none: synthetic",
        "parameters": {"p0_w": meter.idle_w, "frame_j": 0.0001, "air_time_w": 1.0},
        "relative_uncertainty": {"p0_w": None, "frame_j": 0.04, "air_time_w": 0.03},
    }


def windows(parts: Layout, place: int) -> dict[str, Any]:
    """The windows of the run at a place in the plan."""
    start = parts.start(place)
    lengths = (parts.idle, parts.warm_up, parts.measure, parts.tail)
    found, at = {}, start
    for name, length in zip(("idle_before", "warm_up", "measure", "tail"), lengths, strict=True):
        found[name] = _span(at, at + length)
        at += length
    after = start + parts.period
    return {**found, "idle_after": _span(after, after + parts.idle)}


def _span(first_tick: int, last_tick: int) -> dict[str, float]:
    return {"t_start_s": first_tick / TICKS_PER_S, "t_end_s": last_tick / TICKS_PER_S}


def run_document(campaign: str, of: Workload, row: PlanRow, found: Mapping[str, Any]) -> dict[str, Any]:
    """run.json without its work; ``found`` are the run's windows."""
    invalid = row.status == "invalid"
    return {
        "schema_version": 2,
        "run_id": row.run_id,
        "campaign": campaign,
        "block": row.block,
        "mini_block": row.mini_block,
        "attempt": row.attempt,
        "order": row.order,
        "load": row.load,
        "kind": row.kind,
        "arm": row.arm,
        "factors": dict(row.cell),
        "seed": row.seed,
        "hosts": {"client": "client", "server": "server"},
        "radio_source": "link-model",
        "windows": dict(found),
        "window": {"kind": "fixed", **found["measure"], "clock_limit_s": 0.0},
        "control": None,
        "started_utc": rfc3339(CREATED),
        "versions": {FlowSettings.of(of).generator_of(row.arm): _VERSION},
        "status": "invalid" if invalid else "done",
        "reasons": _spoiled(row),
    }


def _spoiled(row: PlanRow) -> list[dict[str, str]]:
    return [{"code": row.reason, "detail": "spoiled by the generator"}] if row.status == "invalid" else []


def flow_report(of: Workload, row: PlanRow, counts: Counts, parts: Layout, place: int) -> dict[str, Any]:
    """flow.json; its intervals stand in intervals.csv."""
    start_ns = ORIGIN_NS + (parts.start(place) + parts.idle) * 10**9 // TICKS_PER_S
    end_ns = start_ns + parts.flow * 10**9 // TICKS_PER_S
    duration_s = parts.flow / TICKS_PER_S
    is_null = row.arm == NULL
    options = FlowSettings.of(of).options_of(row.arm)
    answered = {"peer_carrier": options["carrier"]} if "carrier" in options else {}
    ends: dict[str, Any] = {"boot_id": BOOT, "first_packet_ns": start_ns, "last_packet_ns": end_ns}
    frames = row.cell["payload_bytes"] / 1448 if row.arm in _STREAMS else 1.0
    sender = {"host": "client", **ends, "start_ns": start_ns, "end_ns": end_ns}
    sender |= _sender_counts(counts, row.cell["payload_bytes"], duration_s)
    receiver = {"host": "server", **ends} | _receiver_counts(counts, row.cell["payload_bytes"], duration_s)
    return {
        "schema_version": 1,
        "kind": "flow_report",
        "generator": {"name": FlowSettings.of(of).generator_of(row.arm), "version": _VERSION},
        "flow_id": row.run_id,
        "transport": row.arm,
        "transport_options": {**options, **answered},
        "direction": row.cell["direction"],
        "ip_version": None if is_null else FlowSettings.of(of).ip_version,
        "mtu_bytes": None if is_null else 1500,
        "payload_bytes": row.cell["payload_bytes"],
        "offered_rate_mbps": row.cell["offered_rate_mbps"],
        "duration_s": duration_s,
        "interval_s": 1 / TICKS_PER_S,
        "seed": row.seed,
        "pacing": asdict(Pace.of(row.cell)),
        "nodelay": True if row.arm in _STREAMS else None,
        "frames_per_message": None if is_null else frames,
        "mean_ip_packet_bytes": None if is_null else row.cell["payload_bytes"] / frames + 28,
        "packetisation_source": "unknown" if is_null else "computed",
        "clock_offset": {"offset_ns": 0, "residual_ns": 0, "method": "same_boot"},
        "sender": sender,
        "receiver": None if is_null else receiver,
        "intervals": [],
        "reconciles": True,
        "end_reason": "duration",
    }


def _cpu(duration_s: float) -> dict[str, Any]:
    """2 % of a core."""
    used_s = 0.02 * duration_s
    return {"cpu_s": used_s, "cpu_user_s": 0.4 * used_s, "cpu_system_s": 0.6 * used_s, "transport_stats": {}}


def _sender_counts(counts: Counts, payload_bytes: int, duration_s: float) -> dict[str, Any]:
    sent = sum(counts.sent)
    return {
        "messages_scheduled": counts.scheduled,
        "messages_sent": sent,
        "messages_not_sent": counts.scheduled - sent,
        "bytes_sent": sent * payload_bytes,
        "goodput_mbps": sent * payload_bytes * 8e-6 / duration_s,
        **_cpu(duration_s),
    }


def _receiver_counts(counts: Counts, payload_bytes: int, duration_s: float) -> dict[str, Any]:
    received = sum(counts.received)
    return {
        "messages_received_unique": received,
        "messages_lost": sum(counts.sent) - received,
        "messages_duplicate": 0,
        "messages_reordered": 0,
        "bytes_received_unique": received * payload_bytes,
        "goodput_mbps": received * payload_bytes * 8e-6 / duration_s,
        "loss_ratio": counts.loss_ratio,
        "jitter_ms": 0.05,
        "one_way_delay_ms": None,
        **_cpu(duration_s),
    }


def result(
    design: Design, row: PlanRow, counts: Counts, found: Mapping[str, Any], nodes: Sequence[Node]
) -> dict[str, Any]:
    """result.json; ``found`` are the run's windows, ``nodes`` from ``results.node``."""
    measure_s = design.timing.measure_s
    goodput = None if row.arm == NULL else counts.goodput_mbps(measure_s)
    reasons = [coded(**reason) for reason in _spoiled(row)]
    if goodput is None:
        reasons.append(coded("null_has_no_throughput", "null is the generator floor of its mini-block"))
    for node in nodes if goodput is not None else ():
        if node.below_resolution:
            powers = f"P_A - P_I is {node.delta_p_w:.4f} W, u {node.u_delta_p_w:.4f} W"
            reasons.append(coded("below_resolution", f"meter {node.meter_id}: {powers}"))
    told = Result(
        schema_version=2,
        run_id=row.run_id,
        load="flow",
        kind=row.kind,
        arm=row.arm,
        factors=dict(row.cell),
        window=Window(kind="fixed", **found["measure"]),
        work=Work(
            quantity=None if goodput is None else goodput * measure_s,
            unit=UNIT,
            work_per_s=goodput,
            u95_work_per_s=None if goodput is None else 0.001 * goodput,
        ),
        measures={
            "loss_ratio": None if goodput is None else counts.loss_ratio,
            "achieved_ratio": counts.achieved_ratio,
            "wake_ups_per_message": None,
            "naps_per_message": None,
        },
        valid=row.status != "invalid",
        reasons=tuple(reasons),
        nodes=tuple(nodes),
    )
    return document_of(told)
