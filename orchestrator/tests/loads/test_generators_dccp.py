# SPDX-License-Identifier: Apache-2.0
"""Generators with DCCP: how netjoule-traffic and iperf3's fork are asked, and the fork's report.

The fork's report is invented (no recorded one was at hand), and its file says so.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import netjoule_contracts as contracts
from netjoule.core.errors import HostLacks
from netjoule.hosts.host import LocalHost
from netjoule.loads.flow.generators import FlowSpec, generator
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.generators.iperf3 import Bracket, Iperf3, flow_report
from netjoule.loads.flow.generators.netjoule_traffic import send_arguments

INVENTED = Path(__file__).parents[1] / "data" / "iperf-dccp" / "invented-up.json"
HERE = LocalHost("here")
ENDS = Endpoints(HERE, HERE, "10.77.0.1", "10.79.0.1", 5301)


def spec(transport: str, **options: Any) -> FlowSpec:
    return FlowSpec("r", transport, 1440, 3.0, 0.5, "up", 4, 1, options=options)


def program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("NETJOULE_BIN_DIR", str(folder))


@pytest.mark.parametrize(
    ("transport", "options", "expected"),
    [
        ("dccp", {"ccid": 3, "carrier": "udp"}, ["--ccid", "3", "--carrier", "udp"]),
        ("dccp", {"ccid": 2, "carrier": "raw"}, ["--ccid", "2", "--carrier", "raw"]),
        ("dccp", {"ccid": 3, "carrier": "udp", "ecn": True}, ["--ccid", "3", "--carrier", "udp", "--ecn"]),
        ("dccp", {"ccid": 3, "ecn": False}, ["--ccid", "3", "--no-ecn"]),
        ("dccp-kernel", {"ccid": 2}, ["--ccid", "2"]),
        (
            "tcp",
            {"congestion_control": "bbr", "nodelay": False},
            ["--congestion-control", "bbr", "--no-nodelay"],
        ),
        ("quic", {"early_data": True, "cc_pacing": False}, ["--early-data", "--no-cc-pacing"]),
        ("udp", {}, []),
    ],
)
def test_options_reach_netjoule_traffic(transport: str, options: dict[str, Any], expected: list[str]) -> None:
    argv = send_arguments(spec(transport, **options), ENDS)
    start = argv.index(expected[0]) if expected else len(argv)
    assert argv[start : start + len(expected)] == expected
    assert "--carrier" in argv or "carrier" not in options


def test_the_forks_report_fits_the_contract_and_counts_loss_from_both_ends() -> None:
    document = json.loads(INVENTED.read_text())
    assert document["invented"]
    flow = flow_report(
        spec("dccp-kernel"),
        document,
        Bracket(10_000_000_000, 11_200_000_000, "boot"),
        hosts={"client": "laptop", "server": "rack"},
        generator={"name": "iperf-dccp", "version": "3.10.1+"},
    )
    contracts.validate("flow_report", flow)
    assert flow["generator"]["name"] == "iperf-dccp"
    assert (flow["sender"]["messages_sent"], flow["receiver"]["messages_lost"]) == (261, 2)
    assert flow["receiver"]["loss_ratio"] == pytest.approx(2 / 261)
    assert flow["reconciles"]
    # What a TCP-style report cannot know of datagrams stays empty.
    assert flow["receiver"]["jitter_ms"] is None
    assert (flow["nodelay"], flow["mean_ip_packet_bytes"], flow["frames_per_message"]) == (None, None, 1.0)


def test_the_fork_is_asked_for_dccp() -> None:
    argv = Iperf3().arguments(spec("dccp-kernel"), ENDS, Path())
    assert "--dccp" in argv
    assert "--udp" not in argv
    assert "--no-delay" not in argv


def test_an_iperf3_without_dccp_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "iperf3", "echo '-u, --udp   use UDP rather than TCP'", monkeypatch)
    with pytest.raises(HostLacks, match=r"no iperf3 with DCCP is on this host; .*--dccp") as caught:
        generator("iperf-dccp").require()
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", ["iperf3", "iperf3-dccp"])
def test_an_iperf3_whose_help_knows_dccp_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, name, "echo '--dccp   use DCCP rather than TCP'", monkeypatch)
    generator("iperf-dccp").require()
