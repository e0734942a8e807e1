# SPDX-License-Identifier: Apache-2.0
"""`netjoule run --rigs 2` on real testbeds: two emulated ones, and two labs of hosts behind sshd."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import counted_power
import pytest
import yaml
from test_campaign_run import statuses

from netjoule.store import blocks
from netjoule.store.campaign import Campaign

HERE = Path(__file__).parents[1]
WORKLOAD: dict[str, Any] = {
    "schema_version": 1,
    "name": "side-by-side",
    "transports": ["udp"],
    "payload_bytes": [1440],
    "offered_rate_mbps": [4],
    "blocks": 4,
    "timing": {"idle_s": 3.0, "settle_s": 0.2, "warm_up_s": 1.0, "measure_s": 3.0, "tail_s": 0.3},
    "limits": {"max_attempts": 10},  # a busy host may spoil some
}
pytestmark = pytest.mark.netns


def spans(of: Path) -> dict[str, list[tuple[datetime, datetime]]]:
    """When each rig ran its blocks."""
    found: dict[str, list[tuple[datetime, datetime]]] = {}
    for block in blocks.committed(of):
        document = Campaign.read(blocks.home(of, block)).document
        (session, *_) = document["sessions"]
        ends = [datetime.fromisoformat(session[name]) for name in ("started_utc", "ended_utc")]
        found.setdefault(document["topology"]["rig"], []).append((ends[0], ends[1]))
    return found


def netjoule(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "netjoule", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600, **options)


def require_side_by_side(of: Path, rigs: set[str]) -> None:
    """Each block once, on one of the rigs, and two of them at the same time."""
    found = spans(of)
    assert set(found) == rigs
    one, other = found.values()
    assert any(a < d and c < b for a, b in one for c, d in other)
    assert netjoule("check", of).returncode == 0
    last = {row["run_id"]: row["status"] for row in statuses(of)}
    assert set(last.values()) <= {"valid", "invalid"}
    assert "valid" in last.values()


def require_effects(of: Path, rigs: set[str]) -> None:
    """What each rig adds is told."""
    with (of / "tables/rig_effects.csv").open() as table:
        effects = list(csv.DictReader(table))
    assert {row["rig"] for row in effects} == rigs
    for row in effects:
        assert float(row["effect_ci95_low"]) < float(row["effect_percent"]) < float(row["effect_ci95_high"])


def test_two_emulated_rigs_share_a_campaign(tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
    env = {**os.environ, "NETJOULE_LOCKS": str(tmp_path)}
    done = netjoule("run", tmp_path / "workload.yaml", "--rigs", "2", "--out", tmp_path / "c", env=env)
    assert done.returncode == 0, done.stderr
    assert "dashboard http://127.0.0.1:" in done.stderr
    require_side_by_side(tmp_path / "c", {"rig1", "rig2"})
    require_effects(tmp_path / "c", {"rig1", "rig2"})
    assert blocks.committed(tmp_path / "c") == [1, 2, 3, 4]
    assert not (tmp_path / "c" / ".blocks").exists()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="sshd changes users and groups, which a namespace of an ordinary user forbids"
)
def test_two_labs_behind_ssh_share_a_campaign(tmp_path: Path) -> None:
    timing = {"idle_s": 6.0, "settle_s": 0.2, "warm_up_s": 1.5, "measure_s": 6.0, "tail_s": 0.3}
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump({**WORKLOAD, "timing": timing}))
    lab = [sys.executable, str(HERE / "two_host_lab.py"), str(tmp_path), "--rigs", "2"]
    run = [sys.executable, "-m", "netjoule", "run", str(tmp_path / "workload.yaml"), "--no-verify"]
    run += ["--testbed", str(tmp_path / "lab.yaml"), "--rigs", "2", "--out", str(tmp_path / "c")]
    done = subprocess.run([*lab, *run], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    require_side_by_side(tmp_path / "c", {"left", "right"})
    require_effects(tmp_path / "c", {"left", "right"})
    with (tmp_path / "c/tables/ea_summary.csv").open() as table:
        for row in csv.DictReader(table):  # frames of one message each, at 4 Mb/s
            joules_per_mbit = counted_power.FRAME_J / (1440 * 8 / 1e6)
            assert float(row["ea_j_per_mbit_mean"]) == pytest.approx(joules_per_mbit, rel=0.1)
    document = json.loads((tmp_path / "c" / "campaign.json").read_text())
    assert list(document["topology"]["rigs"]) == ["left", "right"]
