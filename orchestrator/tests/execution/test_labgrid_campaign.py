# SPDX-License-Identifier: Apache-2.0
"""A campaign on a lab of two hosts whose place a real labgrid hands out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parents[1]
WORKLOAD = {
    "schema_version": 1,
    "name": "tiny",
    "transports": ["udp"],
    "payload_bytes": [1440],
    "offered_rate_mbps": [10],
    "blocks": 1,
    "timing": {"idle_s": 2.0, "settle_s": 0.2, "warm_up_s": 1.5, "measure_s": 3.0, "tail_s": 0.3},
    "limits": {"max_attempts": 1},  # whether its runs count is another test's question
}


@pytest.mark.netns
@pytest.mark.skipif(
    os.geteuid() != 0,
    reason="sshd changes users and groups, which a namespace of an ordinary user forbids",
)
def test_a_campaign_has_its_place_gives_back_what_a_kill_left_and_revives_a_dead_host(tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
    argv = [sys.executable, HERE / "two_host_lab.py", tmp_path]
    argv += [sys.executable, HERE / "labgrid_bench.py", tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    story = json.loads((tmp_path / "story.json").read_text())
    assert story["of_another"]["code"] == 2
    assert "place rack of labgrid: it is acquired by controller/bob" in story["of_another"]["said"]
    assert not story["of_another"]["folder"]
    assert (story["during"], story["killed"], story["after"]) == ("controller/ann", "controller/ann", "None")
    assert story["switched"] == [["laptop", False], ["laptop", True]]
    assert story["resumed"]["code"] == 0, story["resumed"]["said"]
    assert "host client does not answer: labgrid cycles its power (rack, laptop)" in story["resumed"]["said"]
    assert json.loads((tmp_path / "campaign/campaign.json").read_text())["status"] == "complete"
