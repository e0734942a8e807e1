# SPDX-License-Identifier: Apache-2.0
"""The load `transfer` on a lab of two hosts over SSH: a program of others and one of ours, a real server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan

FACTORS = {"client": ["curl", "fixed", "auto"], "dataset": "html-1:40", "tls": True, "http": "2"}
PATH = {"rtt_ms": 59, "rate_mbps": 1000}
HERE = Path(__file__).parents[1]
NETJOULE = Path(sys.executable).parent / "netjoule"
pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        os.geteuid() != 0,
        reason="sshd changes users and groups, which a namespace of an ordinary user forbids",
    ),
]


STAND_IN = """#!/bin/sh
echo "$*" >>{log}
# As fast as the host can, meters would starve beside it.
case "$*" in
  "qdisc add dev cable root"*)
    exec {tc} qdisc add dev cable root handle 4e4a: tbf rate 100mbit burst 64k latency 99ms ;;
  "qdisc del dev cable root") exec {tc} "$@" ;;
esac
"""


def test_files_are_fetched_between_hosts_over_ssh(tmp_path: Path) -> None:
    document = {
        "schema_version": 2,
        "name": "lab",
        "load": "transfer",
        "factors": FACTORS | {"path": [PATH]},
        "transfer": {"interval_s": 0.3},
        "blocks": 1,
        "timing": {"idle_s": 3.0, "settle_s": 0.2, "warm_up_s": 0, "measure_s": 1.0, "tail_s": 0.5},
        "limits": {"max_attempts": 4},  # a busy host may spoil some
    }
    file, campaign = tmp_path / "lab-transfer.yaml", tmp_path / "campaign"
    file.write_text(yaml.safe_dump(document))
    run = [NETJOULE, "run", "--no-verify", file, "--testbed", tmp_path / "lab.yaml", "--out", campaign]
    tc = tmp_path / "bin/tc"  # in place of one whose kernel has netem: no packet is delayed
    tc.parent.mkdir()
    tc.write_text(
        STAND_IN.format(log=tmp_path / "tc", tc=shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin"))
    )
    tc.chmod(0o755)
    # So many frames a second take the instrument out of the range that other campaigns of this lab need.
    # The client's meter is plugged into the server, so that its readings come over SSH while the client runs.
    ranges, plug = "s/current_range_a: 0.1/current_range_a: 5/", r"s/^\( *\)node: client$/&\n\1host: server/"
    changed = f'sed -i \'{ranges};{plug}\' "$0/lab.yaml"; exec "$@"'
    done = subprocess.run(
        [sys.executable, HERE / "two_host_lab.py", tmp_path, "sh", "-c", changed, tmp_path, *run],
        env=os.environ | {"PATH": f"{tc.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    checked = subprocess.run([NETJOULE, "check", campaign], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    valid = [row["run_id"] for row in plan(campaign) if row["status"] == "valid"]
    assert len(valid) == 3
    topology = json.loads((campaign / "campaign.json").read_text())["topology"]
    hosts = {meter["node"]: meter["host"] for meter in topology["meters"]}
    assert hosts == {"client": "server", "server": "server"}
    for name in valid:
        folder = campaign / "runs" / name
        run_document, kept = (json.loads((folder / f"{one}.json").read_text()) for one in ("run", "transfer"))
        assert run_document["work"]["reconciles"]
        assert run_document["in_force"]["path"]["elements"] == [{"rate_mbps": 1000, "delay_ms": 29.5}]
        assert run_document["hosts"] == {"client": "client", "server": "server"}
        assert {one["files_verified_n"] for one in kept["runs"]} == {40}
        assert {one["http_version"] for one in kept["runs"]} == {"2"}
        assert kept["server"]["congestion_control"] == "cubic"
        if kept["client"] == "auto":  # it is told what the meter reads, over SSH as all else
            assert kept["objective"]["asked"] == "efficiency"
            assert told(kept)
    asked = (tmp_path / "tc").read_text().splitlines()
    assert "qdisc add dev cable root handle 4e4a: netem limit 5917 delay 59000us" in asked
    assert asked[-1] == "qdisc del dev cable root"


def told(kept: dict[str, Any]) -> list[int]:
    """Energies that decisions rested on."""
    records = [record for run in kept["runs"] for record in run["records"]]
    seen = [decision["seen"]["energy_uj"] for record in records for decision in record["decisions"]]
    return [energy_uj for energy_uj in seen if energy_uj is not None]
