# SPDX-License-Identifier: Apache-2.0
"""What R makes of a lab's campaign: a histogram of PHY modes per run, and the hosts it ran on."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_campaign import netjoule, table

from netjoule.core import files
from netjoule.radio.agent_reader import record_from_line

ORIGIN_NS = 7_000_000_000_000
READING: dict[str, Any] = {
    "event": "reading",
    "state": "associated",
    "role": "client",
    "bssid": "02:00:00:00:00:0a",
    "station": "02:00:00:00:00:0a",
    "phy_rate_mbps": 270.0,
    "mcs": 15,
    "streams": 2,
    "width_mhz": 40,
    "guard_interval_ns": 800,
    "rssi_dbm": -48,
    "power_save": False,
    "source": "nl80211",
    "flag": "",
} | {f"rx_{name}": value for name, value in {"phy_rate_mbps": 81.0, "mcs": 10, "streams": 2}.items()}
LAB_HOST = {
    "host": "client",
    "session": 1,
    "kernel": "6.1.0-13-arm64",
    "machine": "aarch64",
    "governor": "schedutil",
    "sysctls": {"net.core.rmem_max": 4194304},
    "offloads": {"wlan0": {"generic-receive-offload": "on"}},
}


@pytest.fixture
def lab(campaign_dir: Path) -> Path:
    """The finished campaign as one of kind lab: a look of the agent at the client's radio each 0.1 s."""
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    hosts = document["topology"]["hosts"]
    for number, host in enumerate(hosts.values()):
        host["control_address"] = f"192.0.2.{number + 1}"
    hosts["client"]["radio"] = {"interface": "wlan0"}
    document["topology"] |= {"kind": "lab"}
    del document["topology"]["link"]
    document |= {"radio_source": "real", "lab_hosts": [LAB_HOST]}
    path.write_text(json.dumps(document))
    radio = campaign_dir / "radio" / "client.csv"
    end_s = max(float(row["t_s"]) for row in table(radio))
    radio.unlink()
    looks = [record_from_line(READING, look / 10, 0.0001).as_row() for look in range(round(10 * end_s) + 200)]
    files.append_table(radio, "radio", looks)
    return campaign_dir


def test_a_lab_campaign_has_a_histogram_per_run_and_names_its_hosts(lab: Path) -> None:
    reported = netjoule("report", str(lab))
    assert reported.returncode == 0, reported.stderr
    rows = table(lab / "tables" / "mcs_histogram.csv")
    runs = {row["run_id"] for row in table(lab / "plan.csv")}
    assert {(row["run_id"], row["node"], row["direction"]) for row in rows} == {
        (run, "client", direction) for run in runs for direction in ("tx", "rx")
    }
    assert {(row["direction"], row["mcs"], float(row["share"])) for row in rows} == {
        ("tx", "15", 1.0),
        ("rx", "10", 1.0),
    }
    page = (lab / "report.html").read_text()
    assert "Hosts of the lab" in page
    for words in ("6.1.0-13-arm64", "schedutil", "client.governor"):
        assert words in page
