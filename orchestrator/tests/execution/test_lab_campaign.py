# SPDX-License-Identifier: Apache-2.0
"""A campaign on a lab of two hosts: sshd in namespaces, one meter on the controller and one on the server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan
from tiny_campaign import table
from two_host_lab import AHEAD_S, RECORD

HERE = Path(__file__).parents[1]
WORKLOAD = {
    "schema_version": 1,
    "name": "tiny",
    "transports": ["udp"],
    "payload_bytes": [1440],
    "offered_rate_mbps": [10],
    "blocks": 2,
    # Clocks are compared over SSH: a busy host answers late; a thousandth of the window may be unsure.
    "timing": {"idle_s": 6.0, "settle_s": 0.2, "warm_up_s": 1.5, "measure_s": 6.0, "tail_s": 0.3},
    "limits": {"max_attempts": 10},  # a busy host may spoil some
}
pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        os.geteuid() != 0,
        reason="sshd changes users and groups, which a namespace of an ordinary user forbids",
    ),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which `lab_story.py` has been told."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
    argv = [sys.executable, HERE / "two_host_lab.py", folder, sys.executable, HERE / "lab_story.py", folder]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def story(lab: Path) -> dict[str, Any]:
    return dict(json.loads((lab / "story.json").read_text()))


def events(lab: Path) -> list[dict[str, str]]:
    return [row for path in sorted(lab.glob("campaign/runs/*/events.csv")) for row in table(path)]


def test_the_campaign_is_whole_after_a_kill_of_its_controller(lab: Path, story: dict[str, Any]) -> None:
    assert story["resumed"]["code"] == 0, story["resumed"]["said"]
    assert story["checked"]["code"] == 0, story["checked"]["said"]
    rows = plan(lab / "campaign")
    latest = {row["mini_block"]: row["status"] for row in rows}
    assert latest == {"1": "valid", "2": "valid"}
    sessions = json.loads((lab / "campaign" / "campaign.json").read_text())["sessions"]
    assert [session["end"] for session in sessions] == ["killed", "complete"]


def test_a_flow_survives_broken_connections(lab: Path, story: dict[str, Any]) -> None:
    assert story["broken_connections"] >= 2
    said = [row["detail"] for row in events(lab) if row["event"] == "host"]
    for host in ("client", "server"):
        assert any(f"host {host} is out of reach" in detail for detail in said)
        assert any(f"host {host} is back" in detail for detail in said)
    first = story["first_result"]["run_id"]
    flow = json.loads((lab / "campaign" / "runs" / first / "flow.json").read_text())
    assert flow["end_reason"] == "duration"
    assert flow["receiver"]["messages_received_unique"] == flow["sender"]["messages_sent"] > 1000
    run = json.loads((lab / "campaign" / "runs" / first / "run.json").read_text())
    assert run["status"] == "done" or {reason["code"] for reason in run["reasons"]} <= {"meter_gap"}


def test_whatever_else_wants_the_hosts_is_refused_with_one_sentence(lab: Path, story: dict[str, Any]) -> None:
    assert set(story["others"]) == {"run", "doctor", "provision"}
    for name, other in story["others"].items():
        *before, refusal = other["said"].splitlines()
        assert (name, other["code"], before) == (name, 2, [])
        assert refusal.startswith(f"netjoule: host client: it is in use by campaign {lab}/campaign of ")
    assert not (lab / "second").exists()


def test_nothing_is_left_on_the_hosts(lab: Path, story: dict[str, Any]) -> None:
    assert story["left"] == []
    assert list(lab.glob("cache-*/netjoule/session-*")) == []


def test_readings_of_both_hosts_are_on_the_controller(lab: Path) -> None:
    for meter, watts in (("client-power", 8.0), ("server-power", 5.0)):
        rows = table(lab / "campaign" / "meters" / f"{meter}.csv")
        assert [int(row["seq"]) for row in rows] == list(range(len(rows)))
        powers_w = [float(row["power_w"]) for row in rows if row["power_w"]]
        assert abs(min(powers_w) - watts) < 0.2 < max(powers_w) - watts  # idle, and with a flow


def test_results_say_what_was_measured_and_that_no_radio_was_in_it(lab: Path) -> None:
    results = [json.loads(path.read_text()) for path in lab.glob("campaign/runs/*/result.json")]
    nodes = [node for result in results if result["valid"] for node in result["nodes"]]
    assert {node["meter_id"] for node in nodes} == {"client-power", "server-power"}
    assert {(node["power_source"], node["radio_source"]) for node in nodes} == {("measured", "wired")}


def test_the_clock_of_another_machine_is_compared_over_ssh(lab: Path) -> None:
    rows = table(lab / "campaign" / "clocks.csv")
    assert {(row["host"], row["method"]) for row in rows} == {
        ("client", "same_boot"),
        ("server", "control_exchange"),
    }
    compared = [row for row in rows if row["host"] == "server"]
    assert len(compared) >= 4
    for row in compared:
        assert abs(float(row["offset_s"]) - AHEAD_S) <= float(row["residual_s"])
        assert 0 < float(row["residual_s"]) < 0.05
    assert {float(row["offset_s"]) for row in rows if row["host"] == "client"} == {0.0}


def test_the_other_machines_stamps_are_in_campaign_time(lab: Path) -> None:
    """Its readings and its end of the flow, whose clocks are AHEAD_S ahead."""
    sessions = json.loads((lab / "campaign" / "campaign.json").read_text())["sessions"]
    readings = table(lab / "campaign" / "meters" / "server-power.csv")
    assert all(0 < float(row["t_s"]) < sessions[-1]["t_end_s"] + 1 for row in readings)
    run = next(path.parent for path in lab.glob("campaign/runs/*/result.json"))
    window = json.loads((run / "run.json").read_text())["windows"]["measure"]
    received = [float(row["t_start_s"]) for row in table(run / "intervals.csv")]
    assert min(received) < window["t_start_s"] < window["t_end_s"] < max(received) + 1


def test_a_meter_on_another_host_finds_its_range_once(lab: Path) -> None:
    document = json.loads((lab / "campaign" / "campaign.json").read_text())
    settings = {meter["meter_id"]: meter["settings"] for meter in document["topology"]["meters"]}
    passports = {meter["meter_id"]: meter for meter in document["meters"]}
    # 5 W at 230 V are 22 mA
    assert settings["server-power"]["current_range_a"] == 0.05
    assert passports["server-power"]["range"]["current_a"] == 0.05
    fixed = [row["detail"] for row in events(lab) if row["event"] == "range_fixed"]
    assert len(fixed) == 1
    assert fixed[0].startswith("server-power: at most ")


def test_what_provisioning_recorded_of_the_hosts_is_in_the_campaign(lab: Path) -> None:
    found = json.loads((lab / "campaign" / "campaign.json").read_text())["lab_hosts"]
    assert [(one["host"], one["session"], one["governor"]) for one in found] == [
        ("client", 1, "performance"),
        ("server", 1, "performance"),
        ("client", 2, "powersave"),
        ("server", 2, "powersave"),
    ]
    assert {key: value for key, value in found[0].items() if key not in ("host", "session")} == RECORD
    changed = [row["detail"] for row in events(lab) if row["event"] == "host_changed"]
    assert "host client: governor was 'performance', is 'powersave'" in changed


def test_which_build_the_hosts_ran_is_told(lab: Path) -> None:
    versions = json.loads((lab / "campaign" / "campaign.json").read_text())["versions"]
    for host in ("client", "server"):
        assert versions[f"netjoule-traffic on {host}"].startswith(f"{versions['netjoule-traffic']} at /")
    assert any("runs netjoule-traffic" in row["detail"] for row in events(lab) if row["event"] == "program")
