# SPDX-License-Identifier: Apache-2.0
"""Synthetic campaigns with known truth: a device of stepwise power, read by an interval-mean meter."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

METER_HEADER = ["t_s", "seq", "power_w", "voltage_v", "current_a", "flag"]
INTERVAL_HEADER = [
    "end",
    "t_start_s",
    "t_end_s",
    "messages",
    "bytes",
    "messages_lost",
    "messages_duplicate",
    "messages_reordered",
    "jitter_ms",
    "cpu_s",
]
IDLE_S, SETTLE_S, WARM_UP_S, MEASURE_S, TAIL_S, INTERVAL_S = 1.0, 0.2, 0.6, 2.0, 0.3, 0.1
GUARD_S = 0.3  # between a window's edge and a step of power, so that no reading straddles both
RUN_SPAN_S = IDLE_S + GUARD_S + WARM_UP_S + MEASURE_S + GUARD_S + TAIL_S + SETTLE_S


@dataclass
class Meter:
    """One meter of the campaign: idle power, extra power while a flow runs, and how it is read."""

    meter_id: str = "m1"
    idle_w: float = 8.0
    power_source: str = "modelled"
    update_interval_s: float = 0.1
    lag_s: float = 0.1
    sigma_w: float = 0.0
    drift_w_per_s: float = 0.0
    phase_s: float = 0.03
    reading_ratio: float | None = 0.0015
    range_ratio: float | None = 0.0001
    status: str = "known"


@dataclass
class Flow:
    """One run: what is sent, what arrives, and the extra power of each meter while it runs."""

    transport: str = "udp"
    rate_mbps: float = 10.0
    payload_bytes: int = 1250
    extra_w: dict[str, float] = field(default_factory=lambda: {"m1": 1.5})
    extrapolated: float = 0.0
    sender_cpu_s: float = 0.2
    not_sent: int = 0
    lost: int = 0
    wake_ups: int | None = None
    naps: int | None = None
    status: str = "done"
    changes: dict[str, Any] = field(default_factory=dict)


def run_id(index: int, flow: Flow, *, mini_block: int = 1) -> str:
    return f"b01m{mini_block:03d}-{flow.transport}-a1"


class CampaignBuilder:
    """Writes a campaign folder; `flows` form one mini-block with shared idle windows."""

    def __init__(self, folder: Path, meters: list[Meter], flows: list[Flow], *, seed: int = 1) -> None:
        self.folder, self.meters, self.flows, self.seed = folder, meters, flows, seed
        self.run_ids = [run_id(index, flow) for index, flow in enumerate(flows)]

    def start_s(self, index: int) -> float:
        """Start of the idle window before run `index`."""
        return 0.5 + index * RUN_SPAN_S

    def windows(self, index: int) -> dict[str, dict[str, float]]:
        t = self.start_s(index)
        go = t + IDLE_S + GUARD_S
        measured = go + WARM_UP_S + MEASURE_S
        stop = measured + GUARD_S
        after = self.start_s(index + 1)
        edges = {
            "idle_before": (t, t + IDLE_S),
            "warm_up": (go, go + WARM_UP_S),
            "measure": (go + WARM_UP_S, measured),
            "tail": (stop, stop + TAIL_S),
            "idle_after": (after, after + IDLE_S),
        }
        return {name: {"t_start_s": round(a, 6), "t_end_s": round(b, 6)} for name, (a, b) in edges.items()}

    def flow_span(self, index: int) -> tuple[float, float]:
        windows = self.windows(index)
        return windows["warm_up"]["t_start_s"], windows["tail"]["t_start_s"]

    def write(self) -> Path:
        self.folder.mkdir(parents=True)
        document = {
            "schema_version": 1,
            "campaign": "synthetic",
            "seed": self.seed,
            "meters": [passport(meter) for meter in self.meters],
        }
        (self.folder / "campaign.json").write_text(json.dumps(document))
        for index, flow in enumerate(self.flows):
            self.write_run(index, flow)
        for number, meter in enumerate(self.meters):
            self.write_meter(meter, np.random.default_rng([self.seed, number]))
        return self.folder

    def write_run(self, index: int, flow: Flow) -> None:
        folder = self.folder / "runs" / self.run_ids[index]
        folder.mkdir(parents=True)
        run = {
            "schema_version": 1,
            "run_id": self.run_ids[index],
            "campaign": "synthetic",
            "block": 1,
            "mini_block": 1,
            "attempt": 1,
            "order": index + 1,
            "transport": flow.transport,
            "payload_bytes": flow.payload_bytes,
            "offered_rate_mbps": flow.rate_mbps,
            "direction": "up",
            "generator": "netjoule-traffic",
            "ip_version": 4,
            "pacing": {"mode": "absolute", "window_us": 0, "gso": False},
            "seed": 1,
            "hosts": {"client": "client", "server": "server"},
            "radio_source": "link-model",
            "windows": self.windows(index),
            "t_first_packet_s": self.flow_span(index)[0],
            "started_utc": "2026-11-21T03:00:00Z",
            "versions": {},
            "status": flow.status,
            "reasons": [],
        }
        (folder / "run.json").write_text(json.dumps(run | flow.changes))
        (folder / "flow.json").write_text(json.dumps(self.flow_report(index, flow)))
        if flow.transport != "null":
            self.write_intervals(folder / "intervals.csv", index, flow)

    def flow_report(self, index: int, flow: Flow) -> dict[str, Any]:
        start, end = self.flow_span(index)
        sent = round((end - start) * flow.rate_mbps * 1e6 / 8 / flow.payload_bytes)
        sender = {
            "start_ns": int(start * 1e9),
            "end_ns": int(end * 1e9),
            "messages_scheduled": sent + flow.not_sent,
            "messages_sent": sent,
            "messages_not_sent": flow.not_sent,
            "cpu_s": flow.sender_cpu_s,
        }
        receiver = {
            "messages_received_unique": sent - flow.lost,
            "messages_lost": flow.lost,
            "loss_ratio": flow.lost / sent,
        }
        clock = {"offset_ns": 0, "residual_ns": 0, "method": "same_clock"}
        none = flow.transport == "null"
        counted = {"wake_ups": flow.wake_ups, "naps": flow.naps}
        return {
            "pacing": {name: count for name, count in counted.items() if count is not None},
            "sender": sender,
            "receiver": None if none else receiver,
            "clock_offset": None if none else clock,
        }

    def write_intervals(self, path: Path, index: int, flow: Flow) -> None:
        start, end = self.flow_span(index)
        count = round((end - start) / INTERVAL_S)
        size = round(flow.rate_mbps * 1e6 / 8 * INTERVAL_S)
        with path.open("w", newline="") as handle:
            rows = csv.writer(handle, lineterminator="\n")
            rows.writerow(INTERVAL_HEADER)
            for end_name in ("sender", "receiver"):
                for k in range(count):
                    t0, t1 = start + k * INTERVAL_S, start + (k + 1) * INTERVAL_S
                    messages = size // flow.payload_bytes
                    bytes_ = size if end_name == "receiver" else size * 3
                    rows.writerow([end_name, f"{t0:.6f}", f"{t1:.6f}", messages, bytes_, 0, 0, 0, 0.1, 0.01])

    def power_w(self, meter: Meter, t: np.ndarray) -> np.ndarray:
        """Power at each time; the device steps at the start and the end of a flow."""
        power = meter.idle_w + meter.drift_w_per_s * t
        for index, flow in enumerate(self.flows):
            start, end = self.flow_span(index)
            power = power + np.where((t >= start) & (t < end), flow.extra_w.get(meter.meter_id, 0.0), 0.0)
        return power

    def write_meter(self, meter: Meter, rng: np.random.Generator) -> None:
        last = self.start_s(len(self.flows)) + IDLE_S + 0.5
        tau = meter.update_interval_s
        ends = np.arange(meter.phase_s + tau, last, tau)
        fine = (np.arange(200) + 0.5) / 200
        means = np.array([self.power_w(meter, end - tau + tau * fine).mean() for end in ends])
        means = means + rng.normal(0, meter.sigma_w, means.size) if meter.sigma_w else means
        path = self.folder / "meters" / f"{meter.meter_id}.csv"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as handle:
            rows = csv.writer(handle, lineterminator="\n")
            rows.writerow(METER_HEADER)
            for seq, (end, power) in enumerate(zip(ends, means, strict=True)):
                rows.writerow([f"{end + meter.lag_s:.6f}", seq, f"{power:.9f}", "230.0", "0.05", ""])
        if meter.power_source == "modelled":
            self.write_device(meter, last)

    def write_device(self, meter: Meter, last: float) -> None:
        path = self.folder / "devices" / f"{meter.meter_id}.ndjson"
        path.parent.mkdir(exist_ok=True)
        lines = []
        for k in range(int(last / 0.1)):
            t0, t1 = round(k * 0.1, 6), round((k + 1) * 0.1, 6)
            outside = False
            for index, flow in enumerate(self.flows):
                measure = self.windows(index)["measure"]
                reach = measure["t_start_s"] + flow.extrapolated * MEASURE_S
                outside = outside or (measure["t_start_s"] - 0.05 <= t0 < reach - 0.05)
            power = float(self.power_w(meter, np.array([t0 + 0.05]))[0])
            sample = {"t_start_s": t0, "t_end_s": t1, "power_w": power, "extrapolated": outside}
            lines.append(json.dumps(sample | {"terms": {"p0": power}}))
        path.write_text("\n".join(lines) + "\n")


def passport(meter: Meter) -> dict[str, Any]:
    modelled = meter.power_source == "modelled"
    return {
        "schema_version": 1,
        "meter_id": meter.meter_id,
        "node": "client",
        "adapter": "wt210",
        "make": "Synthetic",
        "model": "Synthetic",
        "serial": None,
        "firmware": None,
        "identification": "SYNTHETIC,0,0,0",
        "crest_factor": 3.0,
        "calibration_date": None,
        "emulated": modelled,
        "range": {"voltage_v": 300.0, "current_a": 0.1, "power_w": 30.0},
        "update_interval_s": meter.update_interval_s,
        "lag_s": meter.lag_s,
        "accuracy": {
            "reading_ratio": meter.reading_ratio,
            "range_ratio": meter.range_ratio,
            "source": "synthetic",
            "status": meter.status,
        },
        "power_source": meter.power_source,
        "device_model": "linear-test" if modelled else None,
        "device_form": "linear" if modelled else None,
    }


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., CampaignBuilder]:
    """Return a function that writes a campaign and returns its builder."""

    def make(
        meters: list[Meter] | None = None, flows: list[Flow] | None = None, **kw: Any
    ) -> CampaignBuilder:
        builder = CampaignBuilder(tmp_path / "campaign", meters or [Meter()], flows or [Flow()], **kw)
        builder.write()
        return builder

    return make


@pytest.fixture
def flow() -> type[Flow]:
    return Flow


@pytest.fixture
def meter() -> type[Meter]:
    return Meter
