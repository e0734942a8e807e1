# SPDX-License-Identifier: Apache-2.0
"""Workloads that name a profile: one schedule for all transports and null of a mini-block."""

import asyncio
import json
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import runner_fakes
import synthetic
from flows import ENDS, HERE, spec

import netjoule_contracts as contracts
from netjoule import loads
from netjoule.cli.app import run_command
from netjoule.core import files, programs
from netjoule.core.errors import UsageError
from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.loads.flow import profile_rate, profiles
from netjoule.loads.flow.flows import flows_of
from netjoule.loads.flow.generators import FlowSpec
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.generators.netjoule_traffic import NetjouleTraffic, send_arguments
from netjoule.loads.flow.settings import FlowSettings
from netjoule.loads.flow.verdict import judge_flow
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign
from netjoule.workload.workload import Workload

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "workloads/flow" / "profiles").glob("*.json"))
BUSY: dict[str, Any] = {
    "schema_version": 1,
    "name": "busy",
    "messages": {
        "size_bytes": {"distribution": "uniform", "min": 64, "max": 900},
        "inter_departure_s": {"distribution": "exponential", "mean": 0.002},
    },
}
TEXT = """\
schema_version: 1
name: small
transports: [udp, null]
profile: busy
payload_bytes: [900]
offered_rate_mbps: [1.93]
blocks: 2
timing: {idle_s: 1, settle_s: 0.2, warm_up_s: 1, measure_s: 2, tail_s: 0.3}
"""


def write(folder: Path, text: str = TEXT, profile: object = BUSY) -> Path:
    (folder / "profiles").mkdir(exist_ok=True)
    (folder / "profiles" / "busy.json").write_text(json.dumps(profile))
    path = folder / "w.yaml"
    path.write_text(text)
    return path


def with_profile(**changes: Any) -> Workload:
    return synthetic.workload(profile=BUSY, payload_bytes=[900], offered_rate_mbps=[1.93], **changes)


# --- naming one ------------------------------------------------------------------------------------


def test_a_profile_is_named_by_word_or_file_or_written_out_and_a_campaign_keeps_it(tmp_path: Path) -> None:
    named = loads.read(write(tmp_path))
    assert FlowSettings.of(named).profile == BUSY
    assert named.document["factors"]["profile"] == [BUSY]
    assert named.cells[0]["profile"] == "busy"
    (tmp_path / "mine.json").write_text(json.dumps(BUSY))
    for other in ("mine.json", str(tmp_path / "mine.json"), json.dumps(BUSY)):
        assert loads.read(write(tmp_path, TEXT.replace("profile: busy", f"profile: {other}"))) == named
    (tmp_path / "profiles" / "busy.json").unlink()
    assert Workload.from_document(named.document, where="campaign.json") == named


def test_a_workload_elsewhere_may_name_a_shipped_profile(tmp_path: Path) -> None:
    text = TEXT.replace("busy", "skype").replace("[900]", "[300]").replace("[1.93]", "[0.065]")
    loaded = FlowSettings.of(loads.read(write(tmp_path, text)))
    assert loaded.profile is not None
    assert loaded.profile["name"] == "skype"


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("profile: busy", "profile: lazy", "profile", "no profile 'lazy'"),
        ("profile: busy", "profile: 3", "profile.0", "not text or a mapping"),
        ("[900]", "[1440]", "payload_bytes", "has 900 bytes"),
        ("[900]", "[64, 900]", "payload_bytes", "has 900 bytes"),
        ("[1.93]", "[1, 2]", "offered_rate_mbps", "has one mean rate"),
        ("blocks: 2", "blocks: 2\ngenerator: iperf3", "profile", "iperf3 takes no profile"),
    ],
)
def test_what_does_not_go_with_a_profile_is_refused_at_its_field(
    tmp_path: Path, old: str, new: str, field: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        loads.read(write(tmp_path, TEXT.replace(old, new)))
    assert str(caught.value.where).endswith(f"field {field}")


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ([1], "a JSON object is wanted"),
        (BUSY | {"speed": 1}, "unknown field"),
        (BUSY | {"name": "a b"}, "does not have the form"),
        (BUSY | {"trace": {"csv": "t_s,bytes\n0,900\n"}}, "exactly one of"),
        ({"schema_version": 1, "name": "x"}, "exactly one of"),
        (BUSY | {"messages": {"size_bytes": 8, "inter_departure_s": 1}}, "below the least allowed 16 byte"),
        (
            BUSY | {"messages": {"size_bytes": {"distribution": "normal"}, "inter_departure_s": 1}},
            "its greatest message cannot be determined",
        ),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, profile: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        loads.read(write(tmp_path, profile=profile))


@pytest.mark.parametrize(
    ("shape", "greatest"),
    [
        ({"messages": {"size_bytes": 300.4, "inter_departure_s": 1}}, 300),
        ({"messages": {"size_bytes": {"distribution": "constant", "value": 64}, "inter_departure_s": 1}}, 64),
        (
            {
                "messages": {
                    "size_bytes": {
                        "distribution": "empirical",
                        "values": [64, 900, 70],
                        "weights": [1, 0, 1],
                    },
                    "inter_departure_s": 1,
                }
            },
            70,
        ),
        (
            {
                "video_chunks": {
                    "chunk_bytes": {"distribution": "uniform", "min": 500, "max": 1000},
                    "message_bytes": 1400,
                }
            },
            1000,
        ),
        ({"trace": {"csv": "t_s,bytes\n0,64\n1,700\n"}}, 700),
    ],
)
def test_the_greatest_message_of_a_profile_is_what_the_sender_says(
    shape: dict[str, Any], greatest: int, tmp_path: Path
) -> None:
    """Two programs compute it: campaigns are checked where none is run."""
    assert profiles.greatest_message_bytes(shape) == greatest
    if "video_chunks" in shape:
        more = {"chunk_s": 4, "download_mbps": 8, "start_buffer_s": 4, "greatest_buffer_s": 30}
        shape = {"video_chunks": shape["video_chunks"] | more}
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"schema_version": 1, "name": "x"} | shape))
    argv = [programs.find("netjoule-traffic"), "profile", str(file), "--json"]
    told = json.loads(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)
    assert told["greatest_message_bytes"] == greatest


def first_spec(load: Workload, row: PlanRow, seed: int) -> FlowSpec:
    return flows_of(FlowSettings.of(load), row.condition(load, seed), ["client"], 3.0)[0]


# --- its rate ----------------------------------------------------------------------------------------


def says(**by_seed: float | None) -> profile_rate.Ask:
    """A netjoule-traffic that tells these mean rates, by seed; None: the schedule is too long."""

    def ask(_file: Path, _span_s: float | None, seed: int) -> dict[str, float] | None:
        rate_mbps = by_seed[f"seed{seed}"]
        return None if rate_mbps is None else {"messages": 200_000, "mean_rate_mbps": rate_mbps}

    return ask


def test_a_rate_that_the_profile_does_not_have_is_refused() -> None:
    profile_rate.require(FlowSettings.of(with_profile()), says(seed1=2.0, seed2=2.0))
    with pytest.raises(UsageError, match=r"profile busy sends 0\.065 Mb/s on average, not 1\.93") as caught:
        profile_rate.require(FlowSettings.of(with_profile()), says(seed1=0.065, seed2=0.065))
    assert "write offered_rate_mbps: [0.065]" in str(caught.value)


def test_chance_is_no_difference_and_a_constant_rate_is_not_asked_about() -> None:
    profile_rate.require(FlowSettings.of(with_profile()), says(seed1=2.2, seed2=2.6))
    profile_rate.require(FlowSettings.of(synthetic.workload()), says())
    with pytest.raises(UsageError, match="more messages in 50 s than a schedule holds"):
        profile_rate.require(FlowSettings.of(with_profile()), says(seed1=None, seed2=None))


def test_this_build_tells_the_mean_rate_and_says_why_not(tmp_path: Path) -> None:
    profile_rate.require(FlowSettings.of(with_profile()))
    with pytest.raises(UsageError, match=r"sends 1\.93 Mb/s on average, not 10"):
        profile_rate.require(
            FlowSettings.of(synthetic.workload(profile=BUSY, payload_bytes=[900], offered_rate_mbps=[10]))
        )
    fast = BUSY | {"messages": {"size_bytes": 64, "inter_departure_s": 1e-6}}
    load = synthetic.workload(profile=fast, payload_bytes=[64], offered_rate_mbps=[512])
    with pytest.raises(UsageError, match="more messages in 50 s"):
        profile_rate.require(FlowSettings.of(load))
    trace = {"schema_version": 1, "name": "x", "trace": {"csv": "t_s,bytes\n0,500\n1,500\n"}}
    told = tmp_path / "x.json"
    told.write_text(json.dumps(trace))
    found = profile_rate.ask(told, None, 1)
    assert found is not None
    assert found["messages"] == 2


def test_plan_refuses_a_wrong_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXT.replace("busy", "skype").replace("[900]", "[300]").replace("[1.93]", "[10]")
    assert run_command(["plan", str(write(tmp_path, text))]) == 2
    assert "profile skype sends 0.065 Mb/s on average, not 10" in capsys.readouterr().err


# --- the schedule of a mini-block ------------------------------------------------------------------


def test_a_mini_block_has_one_schedule_seed_and_every_other_another() -> None:
    load = with_profile(blocks=3, transports=["udp", "tcp", "quic", "dccp", "null"])
    rows = run_table.expand(load, 11)
    seeds: dict[int, set[int]] = {}
    for row in rows:
        flow = first_spec(load, row, 11)
        assert flow.profile == BUSY
        seeds.setdefault(row.mini_block, set()).add(flow.schedule_seed)
    assert [len(found) for found in seeds.values()] == [1, 1, 1]
    assert len(set.union(*seeds.values())) == 3
    again = run_table.with_repeats(
        [replace(row, status="invalid" if row.arm == "udp" else "valid") for row in rows], 11, 2
    )
    repeated = next(row for row in again if row.attempt == 2)
    assert first_spec(load, repeated, 11).schedule_seed in seeds[repeated.mini_block]
    assert first_spec(load, rows[0], 12).schedule_seed not in seeds[rows[0].mini_block]


def test_the_sender_is_told_of_a_profile_instead_of_size_and_rate() -> None:
    argv = send_arguments(spec("udp", profile=BUSY, schedule_seed=77), ENDS)
    assert argv[argv.index("--profile") : argv.index("--profile") + 4] == [
        "--profile",
        "-",
        "--schedule-seed",
        "77",
    ]
    assert "-b" not in argv
    assert "-l" not in argv


async def _flow(ends: Endpoints, flow: FlowSpec) -> dict[str, Any]:
    opened = await NetjouleTraffic().open(flow, ends)
    try:
        await opened.go()
        return await opened.report()
    finally:
        await opened.end()


def _mini_block(direction: str, transports: list[str]) -> dict[str, dict[str, Any]]:
    """The reports of a mini-block over the loopback, by transport."""
    with socket.socket() as probe:
        # Other tests' ports are of 127.0.0.1: nobody takes this one meanwhile.
        probe.bind(("127.0.0.3", 0))
        port = probe.getsockname()[1]
    ends = Endpoints(HERE, HERE, "127.0.0.3", "127.0.0.3", port)
    load = with_profile(transports=transports, direction=direction)

    async def run() -> dict[str, dict[str, Any]]:
        server = await NetjouleTraffic().serve(ends)
        try:
            flows = [first_spec(load, row, 5) for row in run_table.expand(load, 5)]
            return {flow.transport: await _flow(ends, replace(flow, duration_s=0.5)) for flow in flows}
        finally:
            await server.stop()

    return asyncio.run(run())


@pytest.mark.parametrize("direction", ["up", "down"])
def test_all_transports_and_null_have_the_same_messages_at_the_same_times(direction: str) -> None:
    transports = ["udp", "dccp", "tcp", "quic", "quic-datagram"]
    reports = _mini_block(direction, [*transports, "null"] if direction == "up" else transports)
    assert len({report["schedule_digest"] for report in reports.values()}) == 1
    assert len({json.dumps(report["profile"], sort_keys=True) for report in reports.values()}) == 1
    for transport, report in reports.items():
        contracts.validate("flow_report", report)
        assert report["reconciles"], transport
        assert report["payload_bytes"] == 900
        assert report["sender"]["messages_scheduled"] == report["profile"]["messages"]
        if not report["sender"]["messages_not_sent"]:
            assert report["sender"]["bytes_sent"] == report["profile"]["bytes"], transport


# --- what is shipped -------------------------------------------------------------------------------


def test_the_library_names_the_profiles_of_the_study_and_of_both_kinds_of_silence() -> None:
    kinds = {path.stem: profiles.shape(json.loads(path.read_text())) for path in SHIPPED}
    assert kinds["skype"] == kinds["youtube"] == "messages"
    assert (kinds["talk"], kinds["video"]) == ("talk_spurts", "video_chunks")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_workload_says_of_its_profile_what_the_profile_gives(path: Path) -> None:
    load = FlowSettings.of(loads.read(ROOT / "workloads/flow" / f"{path.stem}.yaml"))
    contracts.validate("profile", load.profile)
    argv = [programs.find("netjoule-traffic"), "profile", str(path), "-t", "20000", "--json"]
    told = json.loads(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)
    assert [told["greatest_message_bytes"]] == list(load.payload_bytes)
    # Twenty thousand seconds of talk spurts are known to about 2 %.
    assert told["mean_rate_mbps"] == pytest.approx(load.offered_rate_mbps[0], rel=0.05)


# --- records ---------------------------------------------------------------------------------------


def test_a_flow_that_ends_in_silence_is_not_short() -> None:
    flow = FlowSpec("r", "udp", 900, 1.93, 2.6, "up", 4, 1)
    report = runner_fakes.flow_report(flow, 0)
    report["sender"]["last_packet_ns"] = 500_000_000
    assert [reason.code for reason in judge_flow(report, 2_600_000_000)] == ["flow_short"]
    assert judge_flow(report | {"profile": {"name": "talk"}}, 2_600_000_000) == []
    report["sender"]["end_ns"] = 1_000_000_000
    found = judge_flow(report | {"profile": {"name": "talk"}}, 2_600_000_000)
    assert [reason.code for reason in found] == ["flow_short"]


def _campaign(folder: Path, **changes: Any) -> Path:
    """A finished campaign with a profile; its flows say what they were asked."""
    path = synthetic.finished(folder, workload=with_profile(**changes))
    for row in read_plan(path):
        run = path / "runs" / row.run_id
        for place, file in enumerate([run / "flow.json", *sorted(run.glob("flows/*.json"))]):
            file.write_text(json.dumps(_with_schedule(files.read_json(file), row, place)))
    return path


def _with_schedule(report: dict[str, Any], row: PlanRow, place: int) -> dict[str, Any]:
    """The report of the flow at a place, with what it says of its schedule."""
    sender = report["sender"]
    profile = {
        "name": "busy",
        "shape": "messages",
        "seed": run_table.schedule_seed(11, row.mini_block) + place,
        "messages": sender["messages_scheduled"],
        "bytes": sender["bytes_sent"],
        "least_message_bytes": 64,
        "greatest_message_bytes": 900,
        "last_due_ns": 3_000_000_000,
        "burst_rate_bps": 4_000_000,
    }
    return report | {"profile": profile, "schedule_digest": f"fnv1a64:0123456789abcde{place}"}


def test_check_finds_another_schedule_in_a_mini_block(tmp_path: Path) -> None:
    path = _campaign(tmp_path / "c")
    assert list(check_campaign(path)) == []
    udp = next(row for row in read_plan(path) if row.arm == "udp")
    file = path / "runs" / udp.run_id / "flow.json"
    report = files.read_json(file)
    file.write_text(json.dumps(report | {"schedule_digest": "fnv1a64:0000000000000000"}))
    assert any("another schedule than" in str(defect) for defect in check_campaign(path))
    report["profile"]["seed"] += 1
    file.write_text(json.dumps(report))
    assert [d.place for d in check_campaign(path)] == ["field profile.seed"]


def test_check_holds_each_of_several_flows_to_the_schedule_of_its_place(tmp_path: Path) -> None:
    path = _campaign(tmp_path / "c", parallel=2)
    assert list(check_campaign(path)) == []
    udp = next(row for row in read_plan(path) if row.arm == "udp")
    file = path / "runs" / udp.run_id / "flows" / "2.json"
    report = files.read_json(file)
    first = files.read_json(path / "runs" / udp.run_id / "flow.json")
    file.write_text(json.dumps(report | {name: first[name] for name in ("profile", "schedule_digest")}))
    found = [str(defect) for defect in check_campaign(path)]
    assert any("flows/2.json, field profile.seed" in defect for defect in found), found
    assert any("another schedule than" in defect for defect in found), found


def test_check_holds_the_campaigns_profile_to_its_contract(tmp_path: Path) -> None:
    path = _campaign(tmp_path / "c")
    document = files.read_json(path / "campaign.json")
    document["workload"]["factors"]["profile"][0]["speed"] = 1
    (path / "campaign.json").write_text(json.dumps(document))
    assert any("workload.factors.profile.0.speed" in str(defect) for defect in check_campaign(path))
