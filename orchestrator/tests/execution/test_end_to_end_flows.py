# SPDX-License-Identifier: Apache-2.0
"""Tiny real campaigns whose runs have several flows at once: side by side, and both ways."""

import json
from pathlib import Path
from typing import Any

import pytest
from plans import plan
from tiny_campaign import SEED, netjoule, written

from netjoule.store.blocks import document_name
from netjoule_energy import jain_index

pytestmark = pytest.mark.netns

METER = {
    "meter_id": "linear",
    "node": "client",
    "adapter": "wt210",
    "resource": "emulated",
    "device": {"model": "linear"},
    "settings": {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.05},
}


def run(folder: Path, **load: Any) -> Path:
    files = written(folder, [METER], **load)
    done = netjoule(*files.run, "--seed", str(SEED))
    assert done.returncode == 0, done.stdout + done.stderr
    checked = netjoule("check", str(files.out))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return files.out


def result(campaign: Path, transport: str) -> dict[str, Any]:
    rows = [r for r in plan(campaign) if r["transport"] == transport and r["status"] == "valid"]
    return dict(json.loads((campaign / "runs" / rows[-1]["run_id"] / "result.json").read_text()))


def kinds(campaign: Path, found: dict[str, Any]) -> list[tuple[str, str]]:
    """Of the flows of a result's run, which are its parts."""
    folder = campaign / "runs" / found["run_id"]
    run = json.loads((folder / "run.json").read_text())
    assert [part["part"] for part in found["parts"]] == [part["part"] for part in run["work"]["parts"]]
    reports = [
        json.loads((folder / document_name("flow", int(part["part"]))).read_text()) for part in found["parts"]
    ]
    return [(report["transport"], report["direction"]) for report in reports]


def test_transports_side_by_side_share_one_window_and_one_energy(tmp_path: Path) -> None:
    beside = [{"transport": "tcp", "offered_rate_mbps": 5}]
    campaign = run(tmp_path, transports=["udp", "quic", "null"], beside=beside)
    for transport in ("udp", "quic"):
        found = result(campaign, transport)
        assert kinds(campaign, found) == [(transport, "up"), ("tcp", "up")]
        own, other = (part["work_per_s"] for part in found["parts"])
        # Nothing is in their way: each gets what it asks for.
        assert own == pytest.approx(10, rel=0.1)
        assert other == pytest.approx(5, rel=0.1)
        assert found["work"]["work_per_s"] == pytest.approx(own + other, rel=1e-4)
        assert found["fairness"]["jain_work"] == pytest.approx(jain_index([own, other]))
        (node,) = found["nodes"]
        assert node["ea_j_per_mbit"] == pytest.approx(node["delta_p_w"] / found["work"]["work_per_s"])
    floor = result(campaign, "null")
    assert kinds(campaign, floor) == [("null", "up")] * 2
    assert floor["fairness"] == {"jain_work": None, "jain_met": None}


def test_several_flows_of_a_transport_go_both_ways_at_once(tmp_path: Path) -> None:
    campaign = run(tmp_path, transports=["udp"], offered_rate_mbps=[2], parallel=2, direction="both")
    found = result(campaign, "udp")
    assert kinds(campaign, found) == [("udp", "up"), ("udp", "down")] * 2
    assert [part["work_per_s"] for part in found["parts"]] == pytest.approx([2] * 4, rel=0.1)
    assert found["fairness"]["jain_work"] > 0.99
    (run_dir,) = (path.parent for path in campaign.glob("runs/*/result.json") if found["run_id"] in str(path))
    assert sorted(path.name for path in (run_dir / "flows").iterdir()) == ["2.json", "3.json", "4.json"]
