# SPDX-License-Identifier: Apache-2.0
"""The load ``transfer``: what it refuses, and runs with a real server and real clients of this host."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import yaml
from file_sets import HERE, free_ports
from runner_fakes import TIMING, FakeTime, topology
from tiny_campaign import CONSTANT_METER, netjoule, table, written

import netjoule_contracts as contracts
from netjoule import loads
from netjoule.core.errors import UsageError
from netjoule.core.reason import codes
from netjoule.design.run_table import expand
from netjoule.loads.transfer.clients import ours
from netjoule.loads.transfer.load import TransferLoad
from netjoule.loads.transfer.servers.server import SOFTWARE
from netjoule.loads.transfer.session import TransferSession, differs, run_fields
from netjoule.loads.transfer.settings import figures_of
from netjoule.workload.load import Condition, Kept, Outcome, Part, Place
from netjoule.workload.workload import Workload

PLACE = Place(
    {"client": (HERE,), "server": (HERE,)}, test_addresses={"here": "127.0.0.1"}, interfaces={"here": "lo"}
)

OWN = {"kind": "small", "files_n": 4, "mean_bytes": 600, "min_bytes": 500, "max_bytes": 800}


@pytest.fixture(autouse=True)
def _ports_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    free = {}
    for name, one in SOFTWARE.items():
        http, https = free_ports(2)
        free[name] = replace(one, http_port=http, https_port=https)
    monkeypatch.setattr("netjoule.loads.transfer.load.SOFTWARE", free)


def workload(
    clients: Sequence[str] = ("curl",),
    *,
    transfer: dict[str, Any] | None = None,
    control: bool | None = None,
    **factors: Any,
) -> Workload:
    value = {
        "schema_version": 2,
        "name": "transfers",
        "load": "transfer",
        "factors": {"client": list(clients), "dataset": "html-1:12", **factors},
        "transfer": transfer or {},
        "blocks": 1,
        "timing": TIMING,
        **({} if control is None else {"control": control}),
    }
    return loads.made(value, where="test")


def conditions(of: Workload) -> list[Condition]:
    return [
        Condition(arm, of.values_of(arm, cell), f"b01m001-{arm}-a1", 1, 1)
        for cell in of.cells
        for arm in of.arms
    ]


def outcomes(of: Workload, least_s: float = 1e-6) -> list[Outcome]:
    """Of one run of every condition, by one load; each fits its contract."""

    async def run() -> list[Outcome]:
        load, found = TransferLoad(of, topology()), []
        try:
            for condition in conditions(of):
                session = await load.open(condition, PLACE, least_s)
                try:
                    await session.go()
                    found.append(await session.outcome(FakeTime({})))
                finally:
                    await session.end()
                    await session.end()
        finally:
            await load.close()
            await load.close()
        return found

    told = asyncio.run(run())
    for outcome in told:
        (document,) = outcome.documents
        content = json.loads(json.dumps(document.content))
        assert contracts.document_defects(document.contract, content) == []
    return told


# -- what it refuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ({"http": "2"}, "factors.tls: client curl speaks HTTP/2 there, which takes TLS"),
        (
            {"http": "3", "tls": True, "clients": ["auto"]},
            "client auto speaks HTTP/3 there, and apache does not",
        ),
        ({"clients": ["h3"], "tls": True, "server": "nginx"}, "take caddy, or leave h3 out"),
        ({"clients": ["cURL"]}, "factors.client.0"),
        ({"concurrency": 65}, "factors.concurrency"),
        (
            {"clients": ["fixed"], "concurrency": [1, 32], "parallelism": [1, 4]},
            "factors.parallelism: concurrency 32 and parallelism 4 take 128 connections; 64 are the most",
        ),
        (
            {"clients": ["fixed"], "connections": 2, "parallelism": 4},
            "factors.parallelism: connections share whole files out",
        ),
        ({"dataset": "html1"}, "there is no data set 'html1', did you mean 'html-1'"),
        ({"transfer": {"to": "disk"}}, "transfer.to"),
        ({"transfer": {"sets": {"html-1": [OWN]}}}, "transfer.sets.html-1: there is a data set of that name"),
        ({"transfer": {"sets": {"own": [OWN, OWN]}}}, "transfer.sets.own.1.kind: kind small is there twice"),
        ({"transfer": {"sets": {"own": [OWN | {"min_bytes": 900}]}}}, "transfer.sets.own.0.mean_bytes"),
        ({"offered_rate_mbps": 1}, "transfer has no factor offered_rate_mbps"),
        (
            {"clients": ["fixed", "null"], "control": True},
            "factors.client: null is the control arm; leave it out of client, or write control: false",
        ),
    ],
)
def test_what_no_run_can_do_is_refused(factors: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        workload(**factors)


def test_http_1_peers_stand_beside_clients_that_are_asked_for_a_newer_version() -> None:
    of = workload(["wget", "curl", "fixed", "h1", "h2"], http="2", tls=True)
    assert of.arms == ("wget", "curl", "fixed", "h1", "h2")


def test_ours_is_told_what_the_path_of_the_run_carries() -> None:
    of = workload(["eht"], path=[{"rtt_ms": 290, "rate_mbps": 80}])
    (condition,) = conditions(of)
    asked = Condition("eht", condition.factors, "r", 1, 1, testbed={"path": {"rtt_ms": 290, "rate_mbps": 80}})
    found = figures_of(topology(), asked)
    assert (found.rate_mbps, found.rtt_ms) == (80.0, 290.0)


# -- runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_files_in_flight_share_the_connections_that_are_asked_for(http: str) -> None:
    of = workload(["fixed"], http=http, tls=True, concurrency=6, connections=[1, 3])
    opened = [outcome.run_fields["measures"]["connections_opened"] for outcome in outcomes(of)]
    assert opened == [1, 3]
    streams = {"1.1": [None, None], "2": [6, 2]}[http]
    assert [
        ours.options({"concurrency": 6, "connections": n}, http).get("streams") for n in (1, 3)
    ] == streams


def test_null_writes_and_verifies_the_same_bytes_without_a_connection() -> None:
    of = workload(["fixed", "null"], request_bytes=4096)
    fetched, written = outcomes(of)
    assert written.run_fields["work"] == {**fetched.run_fields["work"], "parts": [ANY]}
    found = written.run_fields["measures"]
    assert (found["connections_opened"], found["files_verified"], found["retries"]) == (0, 12, 0)
    (document,) = written.documents
    (transfer,) = document.content["runs"]
    assert (transfer["http_version"], transfer["window_effective_bytes"]) == (None, None)
    assert sum(row["bytes"] for row in transfer["intervals"]) == 12 * 131072


def test_a_mini_block_has_a_control_run_where_it_is_asked_for() -> None:
    assert workload(["fixed", "curl"]).arms == ("fixed", "curl")
    of = workload(["fixed", "curl"], control=True, concurrency=[1, 4])
    rows = expand(of, 5)
    assert Counter((row.cell, row.kind) for row in rows) == {
        (cell, kind): runs for cell in of.cells for kind, runs in (("work", 2), ("control", 1))
    }
    asked = {row.condition(of, 5).factors["client"] for row in rows if row.kind == "control"}
    assert asked == {"null"}


@pytest.mark.parametrize(
    ("client", "reason"), [("fixed", None), ("h1", None), ("curl", "floor_other_program")]
)
def test_the_floor_is_of_clients_that_store_and_check_as_null_does(client: str, reason: str | None) -> None:
    load = TransferLoad(workload([client], control=True), topology())
    found = load.compare(Kept({}, {1: {"client": client}}), Kept({"run_id": "n"}, {1: {"client": "null"}}))
    assert found == {"run_id": "n", "comparable": reason is None, "reason": reason, "warnings": []}
    assert reason is None or reason in codes()


def test_a_set_of_ones_own_is_served_fetched_and_verified() -> None:
    of = workload(["curl", "fixed"], dataset="own:3", transfer={"sets": {"own": [OWN]}})
    for outcome in outcomes(of):
        (document,) = outcome.documents
        assert document.content["dataset"] == {"name": "own", "files_n": 3, "bytes": 1800}
        assert outcome.run_fields["work"]["reconciles"]


def test_clients_of_ours_and_of_others_do_the_same_work() -> None:
    of = workload(["curl", "wget2-best", "fixed", "auto", "h2"], http="2", tls=True, concurrency=4)
    found = outcomes(of)
    quantities = {outcome.run_fields["work"]["quantity"] for outcome in found}
    assert quantities == {12 * 131072 * 8 / 1e6}, "the mean of html-1 is exact"
    for outcome in found:
        work, measures = outcome.run_fields["work"], outcome.run_fields["measures"]
        assert (work["unit"], work["reconciles"], work["repeat"]) == ("Mb", True, 1)
        (part,) = outcome.parts
        assert outcome.judge(part.t_end_s) == []
        assert measures["files_verified"] == 12
        assert measures["throughput_mbps"] == pytest.approx(
            work["quantity"] / (part.t_end_s - part.t_start_s)
        )
        assert measures["cpu_s"] > 0
        assert sum(row["work"] for row in outcome.intervals) == pytest.approx(work["quantity"])
    by_client = {outcome.documents[0].content["client"]: outcome for outcome in found}
    assert by_client["h2"].run_fields["measures"]["connections_opened"] == 1
    assert by_client["auto"].documents[0].content["runs"][0]["records"]


@pytest.mark.parametrize("client", ["curl", "fixed"])
def test_a_small_set_is_fetched_several_times_in_a_run(client: str) -> None:
    (found,) = outcomes(workload([client]), least_s=0.3)
    work = found.run_fields["work"]
    runs = found.documents[0].content["runs"]
    assert work["repeat"] == len(runs) >= 2
    assert work["quantity"] == pytest.approx(work["repeat"] * 12 * 131072 * 8 / 1e6)
    assert all(one["end_ns"] <= other["start_ns"] for one, other in pairwise(runs))


@pytest.mark.parametrize(
    ("server", "http"), [(name, http) for name, one in SOFTWARE.items() for http in one.http_versions]
)
def test_1500_files_arrive_whole_over_every_http_version_that_a_server_speaks(server: str, http: str) -> None:
    of = workload(["auto"], server=server, http=http, tls=True, dataset="html-1:1500")
    (found,) = outcomes(of)
    (run,) = found.documents[0].content["runs"]
    assert (run["files_verified_n"], run["failures"]) == (1500, [])
    assert found.documents[0].content["http_version"] == http
    assert (run["http_version"], run["tls_version"]) == (http, "1.3")
    assert found.run_fields["work"]["reconciles"]


@pytest.mark.parametrize("client", ["h1", "h2", "h3"])
def test_what_browsers_do_has_the_http_version_of_its_name(client: str) -> None:
    (found,) = outcomes(workload([client], tls=True, server="caddy"))
    content = found.documents[0].content
    assert content["http_version"] == {"h1": "1.1", "h2": "2", "h3": "3"}[client]
    assert found.run_fields["measures"]["connections_opened"] == (6 if client == "h1" else 1)


def test_a_server_is_started_anew_when_it_has_ended_and_stays_while_nothing_changes() -> None:
    of = workload(["wget"])
    (condition,) = conditions(of)

    async def run() -> tuple[bool, list[str]]:
        load = TransferLoad(of, topology())
        try:
            first = await load.open(condition, PLACE, 0.01)
            await first.end()
            server = load._servers["apache"]
            second = await load.open(condition, PLACE, 0.01)
            await second.end()
            same = load._servers["apache"] is server
            await server.stop()
            third: TransferSession = await load.open(condition, PLACE, 0.01)
            await third.go()
            await third.outcome(FakeTime({}))
            await third.end()
            return same, [event.event for event in third.events]
        finally:
            await load.close()

    same, events = asyncio.run(run())
    assert same
    assert events == ["server_restarted"]


def test_repeats_of_an_earlier_session_stay() -> None:
    of = workload(["wget"])
    (condition,) = conditions(of)

    async def run() -> Outcome:
        load = TransferLoad(of, topology())
        load.recall(condition, {"work": {"repeat": 2}})
        try:
            session = await load.open(condition, PLACE, 60.0)
            await session.go()
            found = await session.outcome(FakeTime({}))
            await session.end()
            return found
        finally:
            await load.close()

    assert asyncio.run(run()).run_fields["work"]["repeat"] == 2


def told(**changes: Any) -> dict[str, Any]:
    run = {"bytes": 1000, "files_n": 2, "files_verified_n": 2, "cpu_s": 0.1, "connections_opened_n": 3}
    return {**run, "retries_n": None, "failures": [], **changes}


def test_what_a_client_does_not_tell_is_unknown_and_not_0() -> None:
    fields = run_fields([told(), told()], "here", Part(10.0, 12.0), reconciles=True)
    assert fields["measures"]["retries"] is None
    assert fields["measures"]["throughput_mbps"] == pytest.approx(2000 * 8 / 1e6 / 2)
    assert fields["measures"]["duration_s"] == 1.0
    both = run_fields([told(retries_n=1), told(retries_n=2)], "here", Part(10.0, 12.0), reconciles=True)
    assert both["measures"]["retries"] == 1.5


def test_a_run_with_a_file_that_is_not_right_does_not_count() -> None:
    failure = {"file": "a.bin", "code": "wrong_bytes", "sentence": "it differs"}
    wrong = told(files_verified_n=1, bytes=500, failures=[failure])
    reason = differs([told(), wrong], 1000)
    assert reason is not None
    assert (reason.code, reason.detail) == (
        "files_differ",
        "transfer 2 of 2: 1 of 2 files are right, a.bin: it differs",
    )
    assert differs([told(), told()], 1000) is None
    short = differs([told(bytes=999)], 1000)
    assert short is not None
    assert "999 of 1000 bytes" in short.detail


def test_meters_are_ranged_under_every_arm_at_the_highest_level() -> None:
    of = workload(["fixed", "curl"], concurrency=[1, 16, 4], parallelism=[1, 2])
    found = TransferLoad(of, topology()).heaviest()
    assert [one.arm for one in found] == ["fixed", "curl"]
    assert {(one.factors["concurrency"], one.factors["parallelism"]) for one in found} == {(16, 2)}


@pytest.mark.parametrize(
    ("change", "places"),
    [({}, []), ({"client": "wget"}, ["client"]), ({"runs": [told(bytes=999)]}, ["runs"])],
)
def test_what_a_run_kept_is_held_to_what_was_asked_and_to_its_work(
    change: dict[str, Any], places: list[str]
) -> None:
    of = workload(["curl"])
    (condition,) = conditions(of)
    document = {"client": "curl", "runs": [told()], **change}
    kept = Kept({"work": {"quantity": 1000 * 8 / 1e6}}, {1: document})
    defects = list(TransferLoad(of, topology()).check(condition, kept))
    assert [place for _, place, _ in defects] == places


@pytest.mark.netns
def test_a_campaign_fetches_over_the_emulated_path_and_pins_congestion_control(tmp_path: Path) -> None:
    files = written(tmp_path, [CONSTANT_METER])
    document = workload(
        ["wget", "auto"],
        http="2",
        tls=True,
        server="nginx",
        congestion_control="reno",
        path=[{"rtt_ms": 20, "rate_mbps": 50}],
        buffers="android-2-3",
        dataset="html-1:80",
    ).document
    files.workload.write_text(yaml.safe_dump({**document, "limits": {"max_attempts": 10}}))
    done = netjoule(*files.run)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = netjoule("check", str(files.out))
    assert "no defects" in checked.stdout, checked.stdout + checked.stderr
    valid = {row["run_id"] for row in table(files.out / "status.csv") if row["status"] == "valid"}
    rates = {}
    for run_id in valid:
        folder = files.out / "runs" / run_id
        run, report = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "transfer"))
        assert run["work"]["quantity"] == pytest.approx(run["work"]["repeat"] * 80 * 131072 * 8 / 1e6)
        assert report["server"]["congestion_control"] == "reno"
        assert report["server"]["software"] == "nginx"
        assert run["in_force"]["buffers"]["greatest_window_bytes"] == 55_104
        # Half of the greatest buffer is all that a connection has of a window, about.
        windows = [one["window_effective_bytes"] for one in report["runs"]]
        assert all(window is None or window < 110_208 for window in windows)
        rates[report["client"]] = (run["measures"]["throughput_mbps"], report["http_version"])
    # On a busy host one may have been repeated, the other one with it.
    assert set(rates) == {"wget", "auto"}
    assert rates["wget"][1] == "1.1"
    assert rates["auto"][1] == "2"
    assert rates["wget"][0] < rates["auto"][0] < 50


@pytest.mark.netns
def test_a_fitted_phone_sees_how_many_connections_move_bytes(tmp_path: Path) -> None:
    """16 files at once against one, over a path so long that bytes come in bursts."""
    models = {"fitted": "s5-seed", "doubled": "s5-seed:connection_w=0.03", "declared": "galaxy-s5"}
    meters = [
        CONSTANT_METER | {"meter_id": name, "device": {"model": model}} for name, model in models.items()
    ]
    files = written(tmp_path, meters)
    path = [{"rtt_ms": 100, "rate_mbps": 50}]
    document = workload(["fixed"], concurrency=[1, 16], path=path, dataset="html-1:48").document
    files.workload.write_text(yaml.safe_dump({**document, "limits": {"max_attempts": 10}}))
    done = netjoule(*files.run)
    assert done.returncode == 0, done.stdout + done.stderr
    levels = {row["run_id"]: int(row["concurrency"]) for row in table(files.out / "plan.csv")}
    valid = {row["run_id"] for row in table(files.out / "status.csv") if row["status"] == "valid"}
    for name, share_w in (("fitted", 0.015), ("doubled", 0.03)):
        power_w = {levels[run_id]: terms_in(files.out, run_id, name) for run_id in valid & levels.keys()}
        assert power_w[1]["connections"] == pytest.approx(share_w, rel=0.25)
        assert power_w[16]["connections"] == pytest.approx(16 * share_w, rel=0.25)
        assert power_w[16]["rate"] > 3 * power_w[1]["rate"]


def terms_in(campaign: Path, run_id: str, meter: str) -> dict[str, float]:
    """Means of a device's terms over the transfer of a run, W."""
    (part,) = table(campaign / "runs" / run_id / "intervals.csv")[:1]
    last = table(campaign / "runs" / run_id / "intervals.csv")[-1]
    start_s, end_s = float(part["t_start_s"]), float(last["t_end_s"])
    lines = (campaign / "devices" / f"{meter}.ndjson").read_text().splitlines()
    samples = [
        one for one in map(json.loads, lines) if start_s <= one["t_start_s"] and one["t_end_s"] <= end_s
    ]
    return {name: statistics.fmean(one["terms"][name] for one in samples) for name in samples[0]["terms"]}
