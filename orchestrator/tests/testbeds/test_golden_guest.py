# SPDX-License-Identifier: Apache-2.0
"""The campaign that was run once over the guest's hwsim radio and is kept: results/golden/guest-hwsim.

Its tables are held by analysis-r/tests/testthat/test-golden.R.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from bundles import differing_anew
from tiny_campaign import table

from netjoule.loads.flow.energy_table import summary_rows, summary_tables
from netjoule.validation.check import check_campaign
from netjoule_radio.rates import PhyMode, rate_matches

GOLDEN = Path(__file__).parents[3] / "results/golden/guest-hwsim"
MOST_BYTES = 500_000
# HT40 is announced and MCS 13 of two streams pinned; single frames go out at 20 MHz.
PINNED_MCS = 13
ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
OF_THE_GUEST = re.compile(r"(10\.(0\.2|77\.0|78\.0)\.\d+|127\.0\.0\.1)$")
STATION = re.compile(r"(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b")
OF_A_MACHINE = re.compile(r"/(home|root|work|Users|workspace|builds)/|/tmp/(?!guest-lab\b)")


def documents(name: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(GOLDEN.glob(f"runs/*/{name}.json"))]


def radio(node: str) -> list[dict[str, str]]:
    return table(GOLDEN / "radio" / f"{node}.csv")


def test_it_has_no_defect() -> None:
    assert list(check_campaign(GOLDEN)) == []


def test_it_is_whole() -> None:
    rows = table(GOLDEN / "plan.csv")
    assert {(row["block"], row["transport"]) for row in rows if row["status"] == "done"} == {
        (block, transport) for block in "12" for transport in ("udp", "dccp-kernel")
    }


def test_every_result_says_hwsim_and_modelled_and_has_no_energy_per_megabit() -> None:
    campaign = json.loads((GOLDEN / "campaign.json").read_text())
    assert campaign["radio_source"] == "hwsim"
    assert {run["radio_source"] for run in documents("run")} == {"hwsim"}
    assert {meter["emulated"] for meter in campaign["meters"]} == {True}
    nodes = [node for result in documents("result") for node in result["nodes"]]
    assert len(nodes) >= 4
    assert {(node["radio_source"], node["power_source"]) for node in nodes} == {("hwsim", "modelled")}
    assert {(node["ea_j_per_mbit"], node["ea_reason"]) for node in nodes} == {
        (None, "radio_without_air_time")
    }
    for name, value in ((name, node[name]) for node in nodes for name in node if name.endswith("_per_mbit")):
        assert value is None, name


def test_tables_have_no_energy_per_megabit_either() -> None:
    runs = table(GOLDEN / "tables/runs.csv")
    assert {row["ea_reason"] for row in runs} == {"radio_without_air_time"}
    for path in sorted((GOLDEN / "tables").glob("*.csv")):
        for row in table(path):
            filled = [name for name in row if "j_per_mbit" in name and row[name]]
            assert not filled, (path.name, filled)


def test_the_printed_table_says_why_there_is_none() -> None:
    (printed,) = summary_tables(summary_rows(GOLDEN))
    place = [column.name for column in printed.columns].index("E_A J/Mb")
    assert {row[place] for row in printed.rows if row} == {"none"}
    assert "No E_A: the radio (hwsim)" in str(printed.caption)


def test_datagrams_went_over_the_radio_by_udp_and_by_the_kernel_s_dccp() -> None:
    done = [row["run_id"] for row in table(GOLDEN / "plan.csv") if row["status"] == "done"]
    flows = [json.loads((GOLDEN / "runs" / run_id / "flow.json").read_text()) for run_id in done]
    assert sorted(flow["transport"] for flow in flows) == ["dccp-kernel", "dccp-kernel", "udp", "udp"]
    for flow in flows:
        sender, receiver = flow["sender"], flow["receiver"]
        assert flow["reconciles"]
        assert sender["messages_sent"] == receiver["messages_received_unique"] + receiver["messages_lost"]
        assert receiver["messages_received_unique"] > 100


def test_lab_hosts_are_recorded_with_the_guest_s_kernel() -> None:
    hosts = json.loads((GOLDEN / "campaign.json").read_text())["lab_hosts"]
    assert {host["host"] for host in hosts} == {"access_point", "client", "server"}
    assert all(host["kernel"].startswith("6.1.") for host in hosts)
    provisioning = json.loads((GOLDEN / "provisioning.json").read_text())
    assert provisioning["network"]["width_mhz"] == 40
    assert {
        (radio["frequency_mhz"], radio["width_mhz"], radio["mode"], radio["streams"])
        for radio in provisioning["radio"].values()
    } == {(5180, 40, "11n", 2)}
    assert provisioning["plays"]["provision"]["tasks"] > provisioning["plays"]["verify"]["tasks"] > 0


@pytest.mark.parametrize(("node", "peer"), [("client", "access_point"), ("access_point", "client")])
def test_radio_readings_agree_with_themselves_and_with_the_other_end(node: str, peer: str) -> None:
    rows = radio(node)
    assert {row["mcs"] for row in rows} <= {"", str(PINNED_MCS)}
    for row in rows:
        assert row["source"] in ("nl80211", "iw")
        assert (row["power_save"], row["flag"]) == ("off", "")
        for side in ("", "rx_"):
            if row[f"{side}mcs"]:
                streams, width, guard = (
                    int(row[f"{side}{name}"]) for name in ("streams", "width_mhz", "guard_interval_ns")
                )
                mode = PhyMode("ht", int(row[f"{side}mcs"]), streams, width, guard)
                assert rate_matches(float(row[f"{side}phy_rate_mbps"]), mode)
    assert {row["bssid"] for row in rows} == {row["bssid"] for row in radio(peer)}
    assert str(PINNED_MCS) in {row["mcs" if node == "client" else "rx_mcs"] for row in rows}


def test_the_radio_was_read_in_every_measure_window() -> None:
    for run in documents("run"):
        if run["status"] == "done":
            window = run["windows"]["measure"]
            for node in ("client", "access_point"):
                inside = [
                    row
                    for row in radio(node)
                    if window["t_start_s"] <= float(row["t_s"]) <= window["t_end_s"]
                ]
                assert len(inside) >= 5, (run["run_id"], node)


def test_it_is_small_and_tells_nothing_of_a_machine_or_a_person() -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not OF_A_MACHINE.search(text), (path, OF_A_MACHINE.search(text))
        assert all(OF_THE_GUEST.match(found) for found in ADDRESS.findall(text)), path
        assert all(found.startswith("02:00:") for found in STATION.findall(text)), path
        assert "PRIVATE KEY" not in text


def test_its_results_are_computed_anew(tmp_path: Path) -> None:
    copy = tmp_path / GOLDEN.name
    shutil.copytree(GOLDEN, copy)
    assert differing_anew(copy) == {}
