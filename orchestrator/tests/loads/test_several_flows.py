# SPDX-License-Identifier: Apache-2.0
"""Runs with several flows: which they are, how they are run, what their campaign holds."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import runner_fakes
import synthetic
from flows import ENDS, spec
from runner_fakes import FakeFlow, FakeGenerator, Script, new_campaign, run, workload

from netjoule.core import files
from netjoule.core.errors import RunFailed, UsageError
from netjoule.design import run_table
from netjoule.hosts.host import LocalHost
from netjoule.loads import load_of
from netjoule.loads.flow import limits
from netjoule.loads.flow.flows import flows_of
from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.load import FlowLoad
from netjoule.loads.flow.session import FlowSession, open_flows
from netjoule.loads.flow.settings import FlowSettings
from netjoule.store.blocks import document_name
from netjoule.topology.topology import Topology
from netjoule.validation.check import check_campaign
from netjoule.validation.run import check_run
from netjoule.workload.cell import Cell
from netjoule.workload.load import Condition, Place
from netjoule.workload.workload import Workload

PAIR: dict[str, Any] = {"transports": ["udp"], "offered_rate_mbps": [3], "beside": [{"transport": "tcp"}]}


def asked_of(load: Workload, transport: str = "udp") -> Condition:
    row = next(row for row in run_table.expand(load, 7) if row.arm == transport)
    return row.condition(load, 7)


def kinds(flows: tuple[FlowSpec, ...]) -> list[tuple[str, str, str]]:
    return [(flow.client, flow.transport, flow.direction) for flow in flows]


# --- which flows -----------------------------------------------------------------------------------


def test_a_run_has_one_flow_unless_more_are_asked_for() -> None:
    load = workload()
    (flow,) = flows_of(FlowSettings.of(load), asked_of(load), ["a", "b"])
    assert (flow.flow, flow.client, flow.transport, flow.direction) == (1, "a", "udp", "up")
    assert flow.seed == asked_of(load).seed
    assert FlowSettings.of(load).flows == 1
    assert [document_name("flow", number) for number in (1, 2)] == ["flow.json", "flows/2.json"]


def test_each_client_has_all_flows_both_ways_and_the_runs_own_come_first() -> None:
    load = workload(**PAIR, parallel=2, clients=2, direction="both")
    flows = flows_of(FlowSettings.of(load), asked_of(load), ["a", "b", "c"])
    own = [(t, d) for t in ("udp", "udp", "tcp") for d in ("up", "down")]
    assert kinds(flows) == [(client, *kind) for client in ("a", "b") for kind in own]
    assert [flow.flow for flow in flows] == list(range(1, 13))
    assert FlowSettings.of(load).flows == len(flows)


def test_a_companion_has_the_cells_load_unless_it_has_its_own() -> None:
    beside = [{"transport": "tcp"}, {"transport": "quic", "payload_bytes": 1200, "offered_rate_mbps": 0.5}]
    load = workload(**PAIR | {"beside": beside})
    _, same, other = flows_of(FlowSettings.of(load), asked_of(load), ["a"])
    assert (same.payload_bytes, same.offered_rate_mbps) == (1440, 3)
    assert (other.payload_bytes, other.offered_rate_mbps) == (1200, 0.5)


def test_null_stands_for_every_flow_of_the_run() -> None:
    load = workload(**PAIR | {"transports": ["udp", "null"]}, parallel=2)
    flows = flows_of(FlowSettings.of(load), asked_of(load, "null"), ["a"])
    assert [flow.transport for flow in flows] == ["null"] * 3
    own = flows_of(FlowSettings.of(load), asked_of(load), ["a"])
    assert [(f.payload_bytes, f.offered_rate_mbps) for f in flows] == [
        (f.payload_bytes, f.offered_rate_mbps) for f in own
    ]


def test_a_flow_has_the_same_schedule_whatever_transport_carries_it_and_no_two_have_one() -> None:
    """Calls of several people are not one call: their spurts would meet in every run."""
    load = workload(transports=["udp", "tcp"], parallel=2, clients=2)
    seeds = {
        transport: [
            flow.schedule_seed
            for flow in flows_of(FlowSettings.of(load), asked_of(load, transport), ["a", "b"])
        ]
        for transport in ("udp", "tcp")
    }
    # One payload, two rates: the rows are of one mini-block when their seeds are.
    assert [s - seeds["udp"][0] for s in seeds["udp"]] == [0, 1, 2, 3]
    assert [s - seeds["tcp"][0] for s in seeds["tcp"]] == [0, 1, 2, 3]


def test_several_flows_change_no_plan() -> None:
    one = run_table.expand(workload(), 7)
    several = run_table.expand(workload(parallel=4, beside=[{"transport": "tcp"}]), 7)
    assert [replace(row, cell=Cell({**row.cell, "parallel": 4})) for row in one] == list(several)


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parallel": 65}, "parallel"),
        ({"parallel": 33, "clients": 2}, "parallel: 66 flows"),
        (PAIR | {"beside": [{"transport": "tcp"}] * 32, "clients": 2}, "beside: 66 flows"),
        ({"beside": [{"transport": "null"}]}, "null sends nothing"),
        ({"beside": []}, "beside"),
        (PAIR | {"pacing": "so_txtime"}, "no launch times for tcp"),
        ({"generator": "iperf3", "parallel": 2}, "one flow at a time"),
        ({"generator": "iperf3", "transports": ["udp"], "direction": "both"}, "cannot send both"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        workload(**changes)


def test_null_is_no_floor_of_a_client_that_receives() -> None:
    with pytest.raises(UsageError, match="direction both"):
        limits.require_fit(FlowSettings.of(workload(direction="both")), runner_fakes.topology())


def test_clients_that_are_not_there_are_refused() -> None:
    with pytest.raises(UsageError, match="needs 2 clients, and fake has 1"):
        limits.require_fit(FlowSettings.of(workload(clients=2)), runner_fakes.topology())


def test_the_plan_says_what_runs_at_once() -> None:
    load = workload(**PAIR, parallel=2, clients=2, direction="both")
    said = load_of(load, runner_fakes.topology()).summary()
    assert said == {"flows": "2 of the run's transport beside tcp, up and down, at 2 clients: 12 in a run"}


# --- running them ----------------------------------------------------------------------------------


def test_a_run_of_two_flows_keeps_both_reports(tmp_path: Path) -> None:
    script = Script()
    with new_campaign(tmp_path / "c", workload(**PAIR)) as campaign:
        outcome, _ = run(campaign, script)
        (row,) = campaign.rows()
    assert outcome.runs_done == 1
    assert script.of("open") == script.of("go") == script.of("end") == [row.run_id] * 2
    folder = campaign.run_dir(row.run_id)
    transports = [files.read_json(folder / name)["transport"] for name in ("flow.json", "flows/2.json")]
    assert transports == ["udp", "tcp"]
    intervals = files.read_table(folder / "intervals.csv", "intervals")
    assert {(cells["part"], cells["node"]) for cells in intervals} == {("1", "client"), ("2", "client")}
    work = files.read_json(folder / "run.json")["work"]
    assert [part["part"] for part in work["parts"]] == ["1", "2"]
    assert all(part["t_start_s"] > 0 for part in work["parts"])
    assert work["reconciles"]
    (folder / "result.json").unlink()  # the stand-in's, which is no whole one
    assert list(check_run(campaign.path, row.run_id, row, frozenset(), settled=False)) == []


def test_the_window_lies_where_all_flows_are_on(tmp_path: Path) -> None:
    def later(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if spec.transport == "tcp":
            for name in ("start_ns", "first_packet_ns", "last_packet_ns", "end_ns"):
                report["sender"][name] += 40_000_000
        return report

    script = Script(on_report=later)
    with new_campaign(tmp_path / "c", workload(**PAIR)) as campaign:
        run(campaign, script)
        (row,) = campaign.rows()
        document = files.read_json(campaign.run_dir(row.run_id) / "run.json")
    first, second = (part["t_start_s"] for part in document["work"]["parts"])
    windows = document["windows"]
    assert second - first == pytest.approx(0.04)
    assert windows["measure"]["t_start_s"] == pytest.approx(second + 0.6)
    # The tail begins when the last has ended: warm-up, window and guard after its first packet.
    assert windows["tail"]["t_start_s"] == pytest.approx(second + 0.6 + 2.0 + 0.15)


def test_what_one_flow_did_wrong_is_said_of_that_flow(tmp_path: Path) -> None:
    def unbalanced(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        return report | {"reconciles": spec.transport != "tcp"}

    script = Script(on_report=unbalanced)
    with new_campaign(tmp_path / "c", workload(**PAIR, limits={"max_attempts": 1})) as campaign:
        run(campaign, script)
        (row,) = campaign.rows()
        (reason,) = files.read_json(campaign.run_dir(row.run_id) / "run.json")["reasons"]
    assert reason["code"] == "bookkeeping_mismatch"
    assert reason["detail"].startswith("flow 2 (tcp up of client): ")


def test_a_flow_that_fails_ends_the_others(tmp_path: Path) -> None:
    def breaks(spec: FlowSpec, report: dict[str, Any]) -> dict[str, Any]:
        if spec.transport == "tcp":
            raise RunFailed("it broke", code="flow_lost_control")
        return report

    script = Script(on_report=breaks)
    with new_campaign(tmp_path / "c", workload(**PAIR, limits={"max_attempts": 1})) as campaign:
        run(campaign, script)
        (row,) = campaign.rows()
        document = files.read_json(campaign.run_dir(row.run_id) / "run.json")
    assert document["status"] == "failed"
    assert document["reasons"][0]["detail"].startswith("flow 2 (tcp up of client): it broke")
    assert script.of("end") == [row.run_id] * 2


class _Refusing(FakeGenerator):
    """Opens one flow and no second one."""

    async def open(self, spec: FlowSpec, ends: Endpoints) -> FakeFlow:
        if self._script.of("open"):
            raise RunFailed("the server is busy", code="generator_failed")
        self._script.note("open", spec.run_id)
        return FakeFlow(self._script, spec)


def test_flows_that_do_not_all_open_are_all_ended() -> None:
    script = Script()
    flows = [spec("udp", flow=number, client="a") for number in (1, 2)]
    with pytest.raises(RunFailed, match=r"flow 2 \(udp up of a\): the server is busy"):
        asyncio.run(open_flows(_Refusing(script), flows, {"a": ENDS}))
    assert script.of("end") == ["r"]


class _Stuck(FakeFlow):
    """Does not end."""

    async def end(self) -> None:
        raise RunFailed("the host is gone")


class _Slow(FakeFlow):
    """Takes its time to end."""

    async def end(self) -> None:
        await asyncio.sleep(0.01)
        await super().end()


def test_a_flow_that_does_not_end_keeps_no_other_from_it() -> None:
    script = Script()
    asked = [spec("udp", flow=number, client="a") for number in (1, 2)]
    flows = [_Stuck(script, spec("udp")), _Slow(script, spec("tcp"))]

    async def ended() -> None:
        with pytest.raises(RunFailed, match="the host is gone"):
            await FlowSession(list(zip(asked, flows, strict=True)), {}, {}, []).end()
        # Not at some later time: when end() has come back nothing of the run is left.
        assert script.of("end") == ["r"]

    asyncio.run(ended())


# --- what a campaign of them holds -----------------------------------------------------------------


def shared_campaign(folder: Path) -> Path:
    """A finished one: udp beside tcp, which asks for half as much."""
    beside = [{"transport": "tcp", "offered_rate_mbps": 4}]
    return synthetic.finished(folder, workload=synthetic.workload(beside=beside))


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = files.read_json(path)
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_what_each_flow_got_is_in_the_result(tmp_path: Path) -> None:
    path = shared_campaign(tmp_path / "c")
    assert list(check_campaign(path)) == []
    (folder,) = path.glob("runs/*udp*")
    result = files.read_json(folder / "result.json")
    assert result["work"]["work_per_s"] == pytest.approx(8 + 4, rel=1e-3)
    assert [part["work_per_s"] for part in result["parts"]] == pytest.approx([8, 4], rel=1e-3)
    assert result["fairness"]["jain_work"] == pytest.approx(12**2 / (2 * (8**2 + 4**2)), rel=1e-3)
    assert result["fairness"]["jain_met"] == pytest.approx(1, rel=1e-3)
    (null,) = path.glob("runs/*null*")
    assert files.read_json(null / "result.json")["fairness"] == {
        "jain_work": None,
        "jain_met": None,
    }


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("result.json", lambda of: of["parts"].pop(), "field parts: the list is too short"),
        (
            "result.json",
            lambda of: of["parts"].append(of["parts"][0]),
            "field parts: 3 parts, but run.json has 2",
        ),
        ("result.json", lambda of: of["parts"][1].update(work_per_s=5.0), "field parts: they got 13"),
        ("result.json", lambda of: of["fairness"].update(jain_work=0.99), "field fairness.jain_work"),
        ("flows/2.json", lambda of: of.update(transport="udp"), "transport"),
        (
            "run.json",
            lambda of: of["work"]["parts"][1].update(part="3"),
            "'3' is no number: they count from 1",
        ),
    ],
)
def test_check_finds_what_does_not_fit_of_several_flows(
    tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    path = shared_campaign(tmp_path / "c")
    (folder,) = path.glob("runs/*udp*")
    edited(folder / name, change)
    found = [str(defect) for defect in check_campaign(path)]
    assert any(words in defect for defect in found), found


def test_check_misses_the_report_of_a_flow(tmp_path: Path) -> None:
    path = shared_campaign(tmp_path / "c")
    (report,) = path.glob("runs/*udp*/flows/2.json")
    report.unlink()
    found = [str(defect) for defect in check_campaign(path)]
    assert any("flows/2.json" in defect and "missing" in defect for defect in found), found


def test_check_finds_intervals_of_a_flow_that_is_not_there(tmp_path: Path) -> None:
    path = shared_campaign(tmp_path / "c")
    (table,) = path.glob("runs/*udp*/intervals.csv")
    rows = files.read_table(table, "intervals")
    rows[-1]["part"] = "3"
    table.write_text(files.table_text("intervals", rows), encoding="utf-8")
    assert any("the run has no part '3'" in str(defect) for defect in check_campaign(path))


def test_each_client_has_ends_of_its_own() -> None:
    first, second, server = LocalHost("first"), LocalHost("second"), LocalHost("server")
    place = Place({"client": (first, second), "server": (server,)}, {"server": "10.1.0.1"})
    ends = FlowLoad(workload(clients=2), runner_fakes.topology())._ends(place)
    assert [one.client for one in ends] == [first, second]
    assert [one.server for one in ends] == [server, server]


def test_a_lab_with_two_clients_needs_both_hosts() -> None:
    from netjoule.testbeds.lab.control_network import needed_hosts

    document = runner_fakes.topology().document
    hosts = document["hosts"] | {"tablet": document["hosts"]["client"]}
    where = Topology(
        name="two", kind="lab", hosts=hosts, link={}, meters=(), document=document | {"hosts": hosts}
    )
    assert needed_hosts(where, {"client": 1, "server": 1}) == ["client", "server"]
    assert needed_hosts(where, {"client": 2, "server": 1}) == ["client", "tablet", "server"]
