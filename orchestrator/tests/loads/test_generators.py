# SPDX-License-Identifier: Apache-2.0
"""Generators: arguments, and iperf3's real output (3.12, recorded) as flow reports."""

import asyncio
import dataclasses
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from flows import ENDS, HERE, HOSTS, spec
from runner_fakes import workload

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.hosts.host import Process
from netjoule.loads.flow.generators import FlowSpec, generator, interval_rows, netjoule_traffic
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.generators.iperf3 import Bracket, Iperf3, flow_report
from netjoule.loads.flow.generators.netjoule_traffic import NetjouleTraffic, send_arguments
from netjoule.loads.flow.settings import FlowSettings

DATA = Path(__file__).parents[1] / "data" / "iperf3"
# The client ran for 1.2 s around a test of about 1 s.
BRACKET = Bracket(10_000_000_000, 11_200_000_000, "boot")


def recorded(name: str) -> dict[str, Any]:
    return dict(json.loads((DATA / f"{name}.json").read_text()))


def report(name: str, flow: FlowSpec) -> dict[str, Any]:
    return flow_report(
        flow, recorded(name), BRACKET, hosts=HOSTS, generator={"name": "iperf3", "version": "3.12"}
    )


@pytest.mark.parametrize(("direction", "start_s"), [("up", 1.0), ("down", 6.0)])
def test_intervals_of_the_servers_end_get_the_controllers_clock(direction: str, start_s: float) -> None:
    flow = {
        "direction": direction,
        "clock_offset": {"offset_ns": 5_000_000_000},
        "intervals": [
            {"end": end, "start_ns": 7e9, "end_ns": 8e9, "bytes": 1} for end in ("sender", "receiver")
        ],
    }
    # Of the receiver alone, which is the server of a flow up.
    (row,) = interval_rows(flow, 1_000_000_000, node="laptop")
    assert row["t_start_s"] == pytest.approx(start_s)


def test_a_drift_of_the_servers_clock_is_taken_out_of_its_intervals() -> None:
    # The server is 5 s ahead when the client's clock shows 100 s, and gains 50 us with every second.
    clock = {"offset_ns": 5_000_000_000, "reference_ns": 100_000_000_000, "drift_ppm": 50.0}
    for elapsed_s in (-60, 0, 60):
        at_client_ns = (100 + elapsed_s) * 10**9
        at_server_ns = at_client_ns + 5 * 10**9 + elapsed_s * 50_000
        interval = {"end": "receiver", "start_ns": at_server_ns, "end_ns": at_server_ns, "bytes": 125}
        flow = {"direction": "up", "clock_offset": clock, "intervals": [interval]}
        (row,) = interval_rows(flow, 0, part="2", node="laptop")
        assert row["t_start_s"] == row["t_end_s"] == pytest.approx(100 + elapsed_s, abs=1e-9)
        assert (row["part"], row["node"], row["work"]) == ("2", "laptop", 0.001)
        assert set(row) == {"part", "node", "t_start_s", "t_end_s", "work"}  # the table has no other columns


# --- netjoule-traffic ------------------------------------------------------------------------------


def test_send_arguments_carry_the_rate_in_bits_without_rounding() -> None:
    argv = send_arguments(spec("udp", offered_rate_mbps=0.031, duration_s=2.4), ENDS)
    assert argv[argv.index("-b") + 1] == "31000"
    assert argv[argv.index("-t") + 1] == "2.400000"
    assert argv[argv.index("--to") + 1] == "10.77.0.1:5301"
    assert argv[argv.index("--control") + 1] == "10.79.0.1:5301"
    assert "--hold" in argv
    assert "-R" not in argv
    assert "--gso" not in argv


def test_quantities_go_out_in_the_base_units_of_the_shared_vectors() -> None:
    vectors = json.loads((contracts.root() / "vectors" / "units.json").read_text(encoding="utf-8"))
    assert (vectors["base_units"]["rate"], vectors["base_units"]["size"]) == ("bit/s", "byte")
    for offered_rate_mbps, payload_bytes in itertools.product((0.031, 0.639, 1, 30), (64, 1440)):
        flow = spec("udp", offered_rate_mbps=offered_rate_mbps, payload_bytes=payload_bytes)
        argv = send_arguments(flow, ENDS)
        assert int(argv[argv.index("-b") + 1]) == pytest.approx(offered_rate_mbps * 1e6, abs=1e-6)
        assert int(argv[argv.index("-l") + 1]) == payload_bytes


def test_null_needs_no_server_and_down_is_reversed() -> None:
    assert "--to" not in send_arguments(spec("null"), ENDS)
    assert "-R" in send_arguments(spec("tcp", direction="down"), ENDS)
    assert "--gso" in send_arguments(spec("udp", gso=True), ENDS)


def test_pacing_window_and_limits_go_out_as_the_workload_has_them() -> None:
    limits = {"max_error_p99_us": 1234567.25, "min_achieved_ratio": 0.9999999}
    argv = send_arguments(spec("udp", pacing="burst:8", window_us=50, pacing_limits=limits), ENDS)
    for words in (
        ["--pacing", "burst:8"],
        ["--window-us", "50"],
        ["--pacing-limit", "max_error_p99_us=1234567.25"],
        ["--pacing-limit", "min_achieved_ratio=0.9999999"],
    ):
        assert any(argv[i : i + 2] == words for i in range(len(argv))), argv
    assert "--pacing-limit" not in send_arguments(spec("udp"), ENDS)


def test_a_sender_that_drains_is_waited_for_longer_than_both_ends_take() -> None:
    sources = Path(__file__).parents[3] / "traffic" / "flow" / "src"
    waits_s = [
        int(re.findall(rf"const {name}: i64 = ([0-9_]+);", (sources / file).read_text())[0]) * 1e-9
        for file, name in (("sender/mod.rs", "STREAM_DRAIN_NS"), ("receiver/mod.rs", "OVERTIME_NS"))
    ]
    assert sum(waits_s) < netjoule_traffic.REPORT_GRACE_S


def test_a_server_sends_any_schedule_that_a_sender_of_ours_does() -> None:
    source = Path(__file__).parents[3] / "traffic" / "flow" / "src" / "schedule" / "table.rs"
    (most,) = re.findall(r"const MOST_MESSAGES: usize = ([0-9_]+);", source.read_text())
    assert int(most) == netjoule_traffic.MAX_MESSAGES


def test_only_a_server_that_sends_profiles_may_write_long_schedules_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []

    class Ready:
        async def expect(self, *_: object) -> None:
            return None

    async def start(_host: object, argv: list[str], **_: object) -> Ready:
        started.append(argv)
        return Ready()

    monkeypatch.setattr(netjoule_traffic.programs, "find", lambda name: name)
    monkeypatch.setattr(type(HERE), "start", start)
    for sends in (False, True):
        asyncio.run(NetjouleTraffic().serve(dataclasses.replace(ENDS, server_sends_profile=sends)))
    assert ["--max-messages" in argv for argv in started] == [False, True]
    profile = json.loads((Path(__file__).parents[3] / "workloads/flow/profiles" / "talk.json").read_text())
    asked = [
        FlowSettings.of(workload(**flow)).server_sends_profile
        for flow in (
            {"transports": ["udp"], "direction": "down"},
            {"payload_bytes": [172], "offered_rate_mbps": [0.0267], "profile": profile},
            {
                "transports": ["udp"],
                "payload_bytes": [172],
                "offered_rate_mbps": [0.0267],
                "profile": profile,
                "direction": "both",
            },
        )
    ]
    assert asked == [False, False, True]


def test_an_ipv6_address_stands_in_brackets() -> None:
    ends = Endpoints(HERE, HERE, "fd77::1", "10.79.0.1", 5301)
    argv = send_arguments(spec("udp"), ends)
    assert argv[argv.index("--to") + 1] == "[fd77::1]:5301"


def fake_program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(folder))


@pytest.mark.parametrize(("code", "error"), [(1, RunFailed), (2, UsageError), (3, HostLacks)])
def test_a_sender_that_is_not_ready_is_told_by_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    script = (
        f"""echo '{{"event":"error","code":"x","message":"this host has no such socket"}}'; exit {code}"""
    )
    fake_program(tmp_path, "netjoule-traffic", script, monkeypatch)
    with pytest.raises(error, match="this host has no such socket"):
        asyncio.run(NetjouleTraffic().open(spec("udp"), ENDS))


def test_a_secret_reaches_both_ends_by_the_environment_and_by_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    script = (
        f"""echo "$NETJOULE_TRAFFIC_SECRET" "$@" >>{log}; """
        """echo '{"event":"listening"}'; echo '{"event":"ready"}'; read word"""
    )
    fake_program(tmp_path, "netjoule-traffic", script, monkeypatch)
    monkeypatch.setenv("RACK_TRAFFIC_SECRET", "correct horse battery")
    ends = dataclasses.replace(ENDS, traffic_secret="env:RACK_TRAFFIC_SECRET")

    async def both_ends() -> None:
        server = await NetjouleTraffic().serve(ends)
        flow = await NetjouleTraffic().open(spec("udp"), ends)
        await flow.end()
        await server.stop()

    asyncio.run(both_ends())
    lines = log.read_text().splitlines()
    assert [line.split(" ")[3] for line in lines] == ["serve", "send"]
    assert "--max-hold-s 3600" in lines[0]  # longer than an idle window
    for line in lines:
        words = line.removeprefix("correct horse battery ")
        assert words != line
        assert "horse" not in words
        assert "--secret env:NETJOULE_TRAFFIC_SECRET" in words


def test_a_secret_that_is_not_there_is_missed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACK_TRAFFIC_SECRET", raising=False)
    ends = dataclasses.replace(ENDS, traffic_secret="env:RACK_TRAFFIC_SECRET")
    with pytest.raises(HostLacks, match=r"traffic_secret: .*RACK_TRAFFIC_SECRET"):
        asyncio.run(NetjouleTraffic().serve(ends))


def test_a_flow_holds_until_go_and_stays_until_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    script = (
        """echo '{"direction":"up","event":"ready"}'; read word; """
        f"""echo "$word" >>{log}; echo '{{"end":"sender","event":"interval"}}'; """
        f"""echo '{{"clock_offset":{{}},"event":"report","x":1}}'; read word; echo "$word" >>{log}"""
    )
    fake_program(tmp_path, "netjoule-traffic", script, monkeypatch)

    async def flow() -> dict[str, Any]:
        opened = await NetjouleTraffic().open(spec("udp"), ENDS)
        assert opened.holds
        assert not log.exists()
        await opened.go()
        got = await opened.report()
        assert log.read_text() == "go\n"
        await opened.end()
        await opened.end()
        return got

    assert asyncio.run(flow()) == {"clock_offset": {}, "x": 1}
    assert log.read_text() == "go\nend\n"


@pytest.mark.parametrize(
    ("script", "profile"), [("exec cat", {"size": b"no JSON"}), ("echo '[]'; exec cat", None)]
)
def test_a_sender_that_does_not_get_ready_is_not_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, profile: dict[str, Any] | None
) -> None:
    fake_program(tmp_path, "netjoule-traffic", script, monkeypatch)
    host = _Remembering()

    async def refused() -> None:
        with pytest.raises((TypeError, AttributeError)):
            ends = dataclasses.replace(ENDS, client=host)
            await NetjouleTraffic().open(spec("udp", profile=profile), ends)
        async with asyncio.timeout(5):
            await host.started[0].wait()

    asyncio.run(refused())


class _Remembering:
    """This host; it remembers what it started."""

    name = "here"

    def __init__(self) -> None:
        self.started: list[Process] = []

    async def start(self, argv: Sequence[str], *, name: str, env: Mapping[str, str] | None = None) -> Process:
        self.started.append(await HERE.start(argv, name=name, env=env))
        return self.started[-1]


# --- iperf3 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_recorded_flows_fit_the_contract_and_balance(transport: str, direction: str, tmp_path: Path) -> None:
    flow = report(f"{transport}-{direction}", spec(transport, direction=direction))
    contracts.validate("flow_report", flow)
    sender, receiver = flow["sender"], flow["receiver"]
    assert flow["reconciles"]
    assert sender["messages_sent"] == 261  # 375840 bytes, as iperf3's own sum says
    assert receiver["messages_received_unique"] == 261
    assert receiver["messages_lost"] == (0 if transport == "udp" else None)
    assert sender["messages_scheduled"] == sender["messages_sent"] + sender["messages_not_sent"]
    assert sender["goodput_mbps"] == pytest.approx(3.006, rel=1e-3)
    assert (sender["host"], receiver["host"]) == (
        ("laptop", "rack") if direction == "up" else ("rack", "laptop")
    )
    files.append_table(
        tmp_path / "intervals.csv", "intervals", interval_rows(flow, 9_000_000_000, node="laptop")
    )
    assert list(contracts.table_defects("intervals", tmp_path / "intervals.csv")) == []


def test_both_ends_report_tenths_of_a_second_that_add_up() -> None:
    flow = report("udp-up", spec("udp"))
    for end in ("sender", "receiver"):
        mine = [i for i in flow["intervals"] if i["end"] == end]
        assert len(mine) == 10
        assert sum(i["messages"] for i in mine) == 261
        assert all(a["end_ns"] == b["start_ns"] for a, b in itertools.pairwise(mine))
        assert all(i["end_ns"] - i["start_ns"] == pytest.approx(1e8, rel=0.01) for i in mine)


def test_the_flows_start_is_the_middle_of_its_bracket() -> None:
    flow = report("udp-up", spec("udp"))
    assert flow["sender"]["first_packet_ns"] == pytest.approx(10_100_000_000, abs=1e6)
    assert flow["clock_offset"]["residual_ns"] == pytest.approx(100_000_000, abs=1e6)
    assert flow["sender"]["end_ns"] - flow["sender"]["start_ns"] == pytest.approx(1e9, rel=1e-3)


def test_cpu_is_per_cent_of_a_core_over_the_test() -> None:
    flow = report("udp-up", spec("udp"))
    assert flow["sender"]["cpu_s"] == pytest.approx(0.02397, abs=1e-5)
    assert flow["receiver"]["cpu_s"] == pytest.approx(0.00274, abs=1e-5)


def test_loss_is_what_was_sent_and_did_not_arrive() -> None:
    flow = report("udp-overload", spec("udp", payload_bytes=64, offered_rate_mbps=10.0))
    contracts.validate("flow_report", flow)
    sender, receiver = flow["sender"], flow["receiver"]
    assert sender["messages_sent"] == 19515
    # iperf3 itself counts 7018 lost up to the last datagram that arrived; ten more followed it.
    assert receiver["messages_lost"] == sender["messages_sent"] - receiver["messages_received_unique"]
    assert 7018 <= receiver["messages_lost"] <= 7040
    assert receiver["loss_ratio"] == pytest.approx(receiver["messages_lost"] / 19515)
    assert receiver["jitter_ms"] == pytest.approx(0.1457, abs=1e-4)


def test_what_iperf3_cannot_know_is_null() -> None:
    udp, tcp = report("udp-up", spec("udp")), report("tcp-up", spec("tcp"))
    assert udp["receiver"]["one_way_delay_ms"] is None
    assert (udp["nodelay"], tcp["nodelay"]) == (None, True)
    assert (udp["mean_ip_packet_bytes"], tcp["mean_ip_packet_bytes"]) == (1468.0, None)
    assert (udp["frames_per_message"], tcp["frames_per_message"]) == (1.0, None)
    assert tcp["receiver"]["jitter_ms"] is None
    assert tcp["mtu_bytes"] == 65535
    assert tcp["sender"]["transport_stats"]["retransmits"] == 0


def test_json_without_the_servers_part_is_refused_in_words() -> None:
    document = recorded("udp-up")
    del document["server_output_json"]
    with pytest.raises(RunFailed, match="iperf3's JSON lacks 'server_output_json'") as caught:
        flow_report(
            spec("udp"), document, BRACKET, hosts=HOSTS, generator={"name": "iperf3", "version": "3.12"}
        )
    assert caught.value.code == "generator_failed"


def test_iperf3s_own_error_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(tmp_path, "iperf3", f"cat {DATA}/refused.json; exit 1", monkeypatch)
    fake_program(tmp_path, "ss", "echo LISTEN", monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    async def flow() -> None:
        opened = await generator("iperf3").open(spec("udp"), ENDS)
        assert not opened.holds
        await opened.go()
        try:
            await opened.report()
        finally:
            await opened.end()

    with pytest.raises(RunFailed, match="iperf3 client: unable to connect to server: Connection refused"):
        asyncio.run(flow())


def test_client_arguments() -> None:
    argv = Iperf3().arguments(spec("tcp", direction="down", offered_rate_mbps=0.25), ENDS, Path())
    assert argv[argv.index("--bitrate") + 1] == "250000"
    assert argv[argv.index("--time") + 1] == "1"
    assert "--no-delay" in argv
    assert "--reverse" in argv
    assert "--udp" in Iperf3().arguments(spec("udp"), ENDS, Path())


@pytest.mark.netns
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_real_iperf3_flow_over_loopback(transport: str) -> None:
    ends = Endpoints(HERE, HERE, "127.0.0.1", "127.0.0.1", 5397)

    async def flow() -> dict[str, Any]:
        maker = generator("iperf3")
        assert (await maker.version())[0].isdigit()
        opened = await maker.open(spec(transport), ends)
        try:
            await opened.go()
            return await opened.report()
        finally:
            await opened.end()

    got = asyncio.run(flow())
    contracts.validate("flow_report", got)
    assert got["reconciles"]
    assert got["sender"]["messages_sent"] == pytest.approx(261, abs=2)
    assert got["clock_offset"]["residual_ns"] < 500_000_000


def test_an_unknown_generator_is_refused() -> None:
    with pytest.raises(UsageError, match="no generator 'mgen'"):
        generator("mgen")
