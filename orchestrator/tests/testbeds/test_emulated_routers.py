# SPDX-License-Identifier: Apache-2.0
"""What the emulated link tells of its routers, in the tables of a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_campaign import CONSTANT_METER, netjoule, table, written

import netjoule_contracts as contracts
from netjoule.core.errors import RunFailed
from netjoule.testbeds.emulated.routers import RouterLog

ORIGIN_NS = 5_000_000_000


def line(t_start_s: float, **changes: Any) -> dict[str, Any]:
    """A line of the link, 0.1 s of a router, `t_start_s` campaign time."""
    start_ns = ORIGIN_NS + round(t_start_s * 1e9)
    told = {"schema_version": 1, "kind": "router", "host": "server", "direction": "up", "element": 2}
    told |= {"scaling": "practra", "t_start_ns": start_ns, "t_end_ns": start_ns + 10**8}
    told |= {"rate_mbps": 4.0, "max_rate_mbps": 10.0, "mean_rate_mbps": 5.0, "mean_cubic": 0.2}
    told |= {"asleep_share": 0.0, "switches": 2, "arrived_packets": 9, "arrived_bytes": 9000}
    told |= {"flows_arrived_packets": 9, "dropped_packets": 1, "flows_dropped_packets": 1, "queue_packets": 3}
    return told | changes


def test_a_run_takes_the_steps_of_its_time_and_those_before_are_forgotten(tmp_path: Path) -> None:
    late = {"ticks": 10, "tick_late_mean_us": 50.0, "tick_late_max_us": 90.0}
    lines = [line(0.0), {"kind": "station"}, line(0.1, **late), line(0.2), line(0.3)]
    for told in lines:
        if told["kind"] == "router":
            contracts.validate("link_router", told)

    async def told_by(socket: Path) -> RouterLog:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"".join(json.dumps(one).encode() + b"\n" for one in lines) + b'{"kind": "rou')
            writer.close()

        async with await asyncio.start_unix_server(serve, socket):
            log = RouterLog(socket, ORIGIN_NS)
            await log.follow()  # until the link ends, in the middle of a line
            return log

    log = asyncio.run(told_by(tmp_path / "link.sock"))
    first, second = log.rows(0.15, 0.25)
    assert (first["t_start_s"], first["t_end_s"], first["kind"]) == (0.1, 0.2, "practra")
    assert (first["ticks"], first["tick_late_max_us"], second["ticks"]) == (10, 90.0, None)
    assert first.keys() == {field["name"] for field in contracts.table("routers")["fields"]}
    assert [row["t_start_s"] for row in log.rows(0.0, 9.0)] == [0.1, 0.2, 0.3]


def test_a_link_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFailed) as caught:
        asyncio.run(RouterLog(tmp_path / "none.sock", 0).follow())
    assert caught.value.code == "link_stopped"


@pytest.mark.netns
def test_a_campaign_tells_what_a_router_did_under_real_flows(tmp_path: Path) -> None:
    files = written(tmp_path, [CONSTANT_METER])
    where = yaml.safe_load(files.topology.read_text())
    router = {
        "rate_mbps": 10,
        "queue_packets": 42,
        "delay_ms": 5,
        "direction": "up",
        "scaling": {"kind": "none"},
    }
    where |= {"elements": {"far": {"delay_ms": 5}, "router": router}}
    where["link"] = {key: value for key, value in where["link"].items() if key != "wired"}
    where["link"]["paths"] = {"server": {"elements": ["far", "router"]}}
    where["presets"] = {
        "scaling": {"none": {"kind": "none"}, "follows": {"kind": "practra", "interval_ms": 10}}
    }
    files.topology.write_text(yaml.safe_dump(where))
    asked_of = yaml.safe_load(files.workload.read_text())
    kept = {name: asked_of[name] for name in ("name", "timing", "limits")}
    factors = {"scaling": ["none", "follows"], "transport": ["udp-3", "tcp-reno"], "payload_bytes": 1400}
    variants = {
        "udp-3": {"udp": {}, "offered_rate_mbps": 3},
        "tcp-reno": {"tcp": {"congestion_control": "reno"}},
    }
    document = kept | {"schema_version": 2, "load": "flow", "arm": "scaling", "control": False, "blocks": 1}
    document |= {"factors": factors | {"offered_rate_mbps": 20}, "flow": {"variants": variants}, "seed": 4}
    files.workload.write_text(yaml.safe_dump(document))
    done = netjoule(*files.run)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = netjoule("check", str(files.out))
    assert "no defects" in checked.stdout, checked.stdout + checked.stderr
    told = [json.loads(path.read_text()) for path in sorted(files.out.glob("runs/*/run.json"))]
    of = {(run["arm"], run["factors"]["transport"]): run for run in told if run["status"] == "done"}
    assert len(of) == 4
    for (arm, transport), run in of.items():
        rows = table(files.out / "runs" / run["run_id"] / "routers.csv")
        flow = json.loads((files.out / "runs" / run["run_id"] / "flow.json").read_text())
        window = run["windows"]["measure"]
        assert (
            float(rows[0]["t_start_s"])
            <= window["t_start_s"]
            < window["t_end_s"]
            <= float(rows[-1]["t_end_s"])
        )
        assert {(row["host"], row["direction"], row["element"]) for row in rows} == {("server", "up", "2")}
        assert {row["kind"] for row in rows} == {"none" if arm == "none" else "practra"}
        came = sum(int(row["flows_arrived_packets"]) for row in rows)
        assert came >= flow["receiver"]["messages_received_unique"] * 0.8
        measures, options = run["measures"], flow.get("transport_options", {})
        if arm == "none":
            assert measures["service_rate_mbps"] == pytest.approx(10)
            assert measures["rate_switches"] == 0
            assert measures["tick_late_max_us"] is None
        else:
            assert measures["service_rate_mbps"] <= 10
            assert measures["tick_late_mean_us"] <= measures["tick_late_max_us"]
        assert flow["transport"] == transport.partition("-")[0]
        assert options.get("congestion_control") == ("reno" if transport == "tcp-reno" else None)
    slow = of["follows", "udp-3"]["measures"]
    # Of a flow without any jitter it is the flow's own rate in every interval.
    assert 3 <= slow["service_rate_mbps"] < 5, slow
    energy = table(files.out / "tables" / "router_energy.csv")
    assert {row["arm"] for row in energy} == {"none", "follows"}
