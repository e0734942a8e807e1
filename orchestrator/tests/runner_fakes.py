# SPDX-License-Identifier: Apache-2.0
"""A testbed without processes: time jumps, flows report what they are told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from netjoule import loads
from netjoule.core import files
from netjoule.core.errors import RunFailed
from netjoule.execution import runner
from netjoule.execution.active_run import Look
from netjoule.execution.progress import ProgressEvent
from netjoule.hosts.host import LocalHost
from netjoule.loads.flow.generators import Flow, FlowSpec
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.load import FlowLoad
from netjoule.radio import RadioReader
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import MeterPlace, Remark
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition, Load, Place
from netjoule.workload.workload import Workload

HERE = LocalHost("here")
PLACE = Place({"client": (HERE,), "server": (HERE,)}, {"here": "10.79.0.1"})
START_NS = 5_000_000_000_000
UTC_START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIMING = {"idle_s": 1.0, "settle_s": 0.2, "warm_up_s": 0.6, "measure_s": 2.0, "tail_s": 0.3}


class FakeClock:
    """Jumps to whatever is slept for."""

    def __init__(self) -> None:
        self.now_ns = START_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def utc_now(self) -> datetime:
        return UTC_START + timedelta(microseconds=(self.now_ns - START_NS) / 1000)

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        await asyncio.sleep(0)
        self.now_ns = max(self.now_ns, deadline_ns)


def workload(**changes: Any) -> Workload:
    document = {
        "schema_version": 1,
        "name": "fake",
        "transports": ["udp", "null"],
        "payload_bytes": [1440],
        "offered_rate_mbps": [1, 10],
        "blocks": 1,
        "timing": TIMING,
        "seed": 7,
    }
    return loads.made(document | changes, where="test")


def topology(*models: str, **link: Any) -> Topology:
    document = {
        "schema_version": 1,
        "name": "fake",
        "kind": "emulated",
        "hosts": {
            "client": {"roles": ["client"], "test_addresses": {"ipv4": "10.77.0.2", "ipv6": "fd77::2"}},
            "access_point": {"roles": ["access_point"]},
            "server": {"roles": ["server"], "test_addresses": {"ipv4": "10.77.0.1", "ipv6": "fd77::1"}},
        },
        "link": {"preset": "ideal-216", "seed": 3} | link,
        "meters": [
            {
                "meter_id": f"m{place}",
                "node": "client",
                "adapter": "wt210",
                "resource": "emulated",
                "device": {"model": model},
            }
            for place, model in enumerate(models or ("constant",))
        ],
    }
    return Topology.from_document(document, where="test")


def with_clients(number: int) -> Topology:
    """The same with so many clients."""
    document = topology().document
    further = {
        f"client-{n}": {
            "roles": ["client"],
            "test_addresses": {"ipv4": f"10.77.0.1{n}", "ipv6": f"fd77::1{n}"},
        }
        for n in range(2, number + 1)
    }
    return Topology.from_document(document | {"hosts": document["hosts"] | further}, where="test")


HOST = {
    "kernel": "6.1",
    "machine": "x86_64",
    "distribution": "test",
    "cpu_model": "test",
    "cpu_cores": 2,
    "memory_bytes": 1,
}


def new_campaign(path: Path, load: Workload | None = None, where: Topology | None = None) -> Campaign:
    return Campaign.create(
        path,
        workload=load or workload(),
        topology=where or topology(),
        seed=7,
        versions={"netjoule": "0"},
        host=HOST,
        created=UTC_START,
    )


def flow_report(spec: FlowSpec, first_ns: int, **changes: Any) -> dict[str, Any]:
    """A report of a flow that went perfectly."""
    messages = max(1, round(spec.offered_rate_mbps * 1e6 * spec.duration_s / 8 / spec.payload_bytes))
    period_ns = round(spec.duration_s * 1e9 / messages)
    last_ns = first_ns + (messages - 1) * period_ns
    moved = messages * spec.payload_bytes
    goodput_mbps = 8e-6 * moved / spec.duration_s
    cpu = {"cpu_s": 0.1, "cpu_user_s": 0.05, "cpu_system_s": 0.05, "transport_stats": {}}
    sender = {
        "host": "client",
        "boot_id": "b",
        "start_ns": first_ns,
        "first_packet_ns": first_ns,
        "last_packet_ns": last_ns,
        "end_ns": first_ns + round(spec.duration_s * 1e9),
        "messages_scheduled": messages,
        "messages_sent": messages,
        "messages_not_sent": 0,
        "bytes_sent": moved,
        "goodput_mbps": goodput_mbps,
        **cpu,
    }
    receiver = {
        "host": "server",
        "boot_id": "b",
        "first_packet_ns": first_ns,
        "last_packet_ns": last_ns,
        "messages_received_unique": messages,
        "messages_lost": 0,
        "messages_duplicate": 0,
        "messages_reordered": 0,
        "bytes_received_unique": moved,
        "goodput_mbps": goodput_mbps,
        "loss_ratio": 0.0,
        "jitter_ms": 0.0,
        "one_way_delay_ms": None,
        **cpu,
    }
    interval = {
        "start_ns": first_ns,
        "end_ns": first_ns + round(spec.duration_s * 1e9),
        "messages": messages,
        "bytes": moved,
        "messages_lost": 0,
        "messages_duplicate": 0,
        "messages_reordered": 0,
        "jitter_ms": 0.0,
        "cpu_s": 0.1,
    }
    is_null = spec.transport == "null"
    ends = ["sender"] if is_null else ["sender", "receiver"]
    report = {
        "schema_version": 1,
        "kind": "flow_report",
        "generator": {"name": "netjoule-traffic", "version": "0.1.0"},
        "flow_id": "1",
        "transport": spec.transport,
        "direction": spec.direction,
        "ip_version": spec.ip_version,
        "mtu_bytes": 1500,
        "payload_bytes": spec.payload_bytes,
        "offered_rate_mbps": spec.offered_rate_mbps,
        "duration_s": spec.duration_s,
        "interval_s": 0.1,
        "seed": spec.seed,
        "pacing": {"mode": "absolute", "window_us": 0, "gso": False},
        "nodelay": None,
        "frames_per_message": 1.0,
        "mean_ip_packet_bytes": None if is_null else 1468.0,
        "packetisation_source": "computed",
        "clock_offset": {"offset_ns": 0, "residual_ns": 0, "method": "same_boot"},
        "sender": sender,
        "receiver": None if is_null else receiver,
        "intervals": [{"end": end, **interval} for end in ends],
        "reconciles": True,
        "end_reason": "duration",
    }
    return report | changes


@dataclass
class Script:
    """What the fake world does, and what was asked of it.

    Attributes:
        on_report: may change a report or raise in its place.
        on_result: may change a result document.
        log: in order: open/go/end of flows and compute, with campaign time.
    """

    clock: FakeClock = field(default_factory=FakeClock)
    on_report: Callable[[FlowSpec, dict[str, Any]], dict[str, Any]] = lambda _spec, report: report
    on_result: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda _run_id, result: result
    on_open: Callable[[FlowSpec], None] = lambda _spec: None
    log: list[tuple[str, str, float]] = field(default_factory=list)
    server_restarts: int = 0
    collected: int = 0
    remarks: list[Remark] = field(default_factory=list)

    def note(self, what: str, run_id: str) -> None:
        self.log.append((what, run_id, (self.clock.now_ns - START_NS) / 1e9))

    def of(self, what: str) -> list[str]:
        return [run_id for kind, run_id, _ in self.log if kind == what]

    def compute(self, campaign_dir: Path, run_ids: Sequence[str]) -> None:
        """Stand in for the energy arithmetic."""
        for run_id in run_ids:
            self.note("compute", run_id)
            result = {"valid": True, "reasons": [], "nodes": [{"meter_id": "m0", "ea_j_per_mbit": 0.5}]}
            path = campaign_dir / "runs" / run_id / "result.json"
            path.write_text(json.dumps(self.on_result(run_id, result)), encoding="utf-8")


ERRORS = {"p50": 1.25, "p99": 12.9, "p99_9": 40.0, "max": 812.0}


def certificate(*, passed: bool = True) -> dict[str, Any]:
    """Of a sender that is good but for one departure."""
    return {
        "error_basis": "hand_over",
        "departures": 100,
        "error_us": ERRORS,
        "within_5us_ratio": 0.5,
        "within_50us_ratio": 0.995,
        "within_500us_ratio": 1.0,
        "back_to_back_ratio": 0.0,
        "train_messages": {"mean": 1.0, "p99": 1, "max": 1},
        "messages_early": 0,
        "held_back_ratio": 0.0,
        "held_back_not_sent_ratio": 0.0,
        "achieved_ratio": 1.0,
        "cpu_s": 0.01,
        "cpu_ratio": 0.012,
        "limits": {"max_error_us": 900 if passed else 60},
        "failed": [] if passed else ["max_error_us 60: it is 812.0000"],
        "passed": passed,
    }


class FakeFlow:
    holds = True

    def __init__(self, script: Script, spec: FlowSpec) -> None:
        self._script = script
        self._spec = spec
        self._first_ns = 0
        self._ended = False

    async def go(self) -> None:
        self._script.note("go", self._spec.run_id)
        self._first_ns = self._script.clock.now_ns + 1_000_000

    async def report(self) -> dict[str, Any]:
        await self._script.clock.sleep_until_ns(self._first_ns + round(self._spec.duration_s * 1e9))
        return self._script.on_report(self._spec, flow_report(self._spec, self._first_ns))

    async def end(self) -> None:
        if not self._ended:
            self._script.note("end", self._spec.run_id)
        self._ended = True


class FakeServer:
    """Ends by itself as often as the script says."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.ended = asyncio.ensure_future(self._wait())

    async def _wait(self) -> int:
        if self._script.server_restarts:
            self._script.server_restarts -= 1
            return 0
        return await asyncio.get_running_loop().create_future()

    async def stop(self) -> None:
        self.ended.cancel()


class FakeGenerator:
    name = "netjoule-traffic"

    def __init__(self, script: Script) -> None:
        self._script = script

    async def version(self) -> str:
        return "0.1.0"

    async def serve(self, ends: Endpoints) -> FakeServer:
        return FakeServer(self._script)

    def require(self) -> None:
        return None

    async def open(self, spec: FlowSpec, ends: Endpoints) -> Flow:
        self._script.on_open(spec)
        self._script.note("open", spec.run_id)
        return FakeFlow(self._script, spec)


class FakeTime:
    """Hosts' clocks that stand apart from the controller's by so much (`HostTime`)."""

    def __init__(self, offsets_ns: dict[str, int]) -> None:
        self._offsets_ns = offsets_ns

    def campaign_s(self, host: str, at_ns: int) -> float:
        return (at_ns - START_NS - self._offsets_ns.get(host, 0)) / 1e9

    def host_ns(self, host: str, t_s: float) -> int:
        return START_NS + round(t_s * 1e9) + self._offsets_ns.get(host, 0)


def fake_load(script: Script, load: Workload | None = None, where: Topology | None = None) -> FlowLoad:
    """The load ``flow`` with a generator of this world."""
    return FlowLoad(load or workload(), where or topology(), lambda *_: FakeGenerator(script))


class FakeTestbed:
    versions: dict[str, str | None] = {"netjoule-link": "0.1.0"}  # noqa: RUF012
    radio_readers: Sequence[RadioReader] = ()
    power_grain_s = 0.05

    def __init__(self, script: Script, passports: Sequence[dict[str, Any]]) -> None:
        self._script = script
        self.passports = passports
        self.death: asyncio.Future[RunFailed] = asyncio.get_running_loop().create_future()

    place = PLACE

    async def failed(self) -> RunFailed:
        return await asyncio.shield(self.death)

    async def meter_places(self) -> Sequence[MeterPlace]:
        return []

    async def start_meters(self) -> None:
        return None

    async def apply(self, condition: Condition) -> Mapping[str, Any]:
        self._script.note("apply", condition.run_id)
        return {name: {"value": value} for name, value in condition.testbed.items()}

    def take_remarks(self) -> Sequence[Remark]:
        remarks, self._script.remarks = self._script.remarks, []
        return remarks

    async def collect(self) -> None:
        self._script.collected += 1

    async def returned(self) -> None:
        return None

    async def clock_rows(self, t_s: float) -> Sequence[dict[str, Any]]:
        same = {"offset_s": 0.0, "drift_ppm": None, "residual_s": 0.0, "method": "same_boot"}
        return [{"t_s": t_s, "host": "client", **same}]


def passport(update_interval_s: float = 0.1, lag_s: float = 0.1) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "meter_id": "m0",
        "node": "client",
        "adapter": "wt210",
        "make": "YOKOGAWA",
        "model": "WT210",
        "serial": None,
        "firmware": "1.0",
        "identification": "YOKOGAWA,760401,0,F1.0",
        "range": {"voltage_v": 15.0, "current_a": 1.0, "power_w": 15.0},
        "crest_factor": 3.0,
        "update_interval_s": update_interval_s,
        "lag_s": lag_s,
        "accuracy": {"reading_ratio": 0.001, "range_ratio": 0.001, "source": "test", "status": "known"},
        "calibration_date": None,
        "emulated": True,
        "power_source": "modelled",
        "device_model": "constant",
        "device_form": "constant",
    }


def log_power(campaign: Campaign, until_s: float) -> None:
    """meters/m0.csv as its logger leaves it: a reading per update since the campaign began."""
    update_s = float(passport()["update_interval_s"])
    rows = [
        {"t_s": seq * update_s, "seq": seq, "power_w": 5.0, "flag": ""}
        for seq in range(round(until_s / update_s))
    ]
    files.write_atomic(campaign.meters_dir / "m0.csv", files.table_text("meters", rows))


def opener(script: Script, *, on_up: Callable[[FakeTestbed], None] = lambda _testbed: None) -> Any:
    @asynccontextmanager
    async def open_testbed(campaign: Campaign, session: Session, _load: Load) -> AsyncIterator[FakeTestbed]:
        testbed = FakeTestbed(script, [passport()])
        try:
            on_up(testbed)
            yield testbed
        finally:
            log_power(campaign, (script.clock.now_ns - session.origin_ns) / 1e9)

    return open_testbed


def run(
    campaign: Campaign,
    script: Script,
    align: Callable[..., Any] | None = None,
    look: Look | None = None,
    **kwargs: Any,
) -> tuple[runner.Outcome, list[ProgressEvent]]:
    """Run a campaign in this world; `align` stands in for the search for load pulses, `look` for R."""
    events: list[ProgressEvent] = []
    outcome = runner.run_campaign(
        campaign,
        events.append,
        clock=script.clock,
        open_testbed=opener(script, **kwargs),
        compute=script.compute,
        make_load=lambda load, where: fake_load(script, load, where),
        look=look,
        **({} if align is None else {"align": align}),
    )
    return outcome, events
