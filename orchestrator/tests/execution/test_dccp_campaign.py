# SPDX-License-Identifier: Apache-2.0
"""A campaign with DCCP that congestion control holds back: sound, valid, and every number says what it is."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import synthetic

from netjoule.loads.flow.run_document import flow_parts
from netjoule.validation.check import check_campaign
from netjoule.workload.load import Kept
from netjoule_contracts.flow_control import control_of
from netjoule_contracts.flow_work import measures_of_all
from netjoule_energy import compute_and_write


@pytest.fixture(scope="module")
def held_back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign whose DCCP sends 6 of 8 Mb/s."""
    wanted = synthetic.workload(transports=["udp", "dccp", "null"], offered_rate_mbps=[2, 8])
    return synthetic.finished(tmp_path_factory.mktemp("dccp") / "dccp", workload=wanted)


def dccp_result(campaign: Path, rate_mbps: float) -> dict[str, Any]:
    found = [json.loads(path.read_text()) for path in campaign.glob("runs/*-dccp-*/result.json")]
    return next(dict(r) for r in found if r["factors"]["offered_rate_mbps"] == rate_mbps)


def test_a_campaign_with_many_messages_not_sent_has_no_defect(held_back: Path) -> None:
    assert list(check_campaign(held_back)) == []


def test_not_sent_is_not_lost_and_leaves_the_run_valid(held_back: Path) -> None:
    result = dccp_result(held_back, 8)
    assert result["valid"]
    assert result["measures"]["achieved_ratio"] == pytest.approx(0.75, abs=0.001)
    assert result["measures"]["loss_ratio"] == 0
    assert result["work"]["work_per_s"] == pytest.approx(6, rel=0.01)
    (node,) = result["nodes"]
    assert node["ea_j_per_mbit"] == pytest.approx(0.5 / 6, rel=0.02)
    # null did the work of 8 Mb/s: no floor of a run at 6.
    assert node["floor"]["reason"] == "floor_achieved_low"
    assert dccp_result(held_back, 2)["nodes"][0]["floor"]["reason"] is None


def test_a_slow_start_alone_leaves_the_floor(held_back: Path, tmp_path: Path) -> None:
    place = tmp_path / held_back.name
    shutil.copytree(held_back, place)
    run_id = next(p.parent.name for p in place.glob("runs/*-dccp-*/result.json") if rate_of(p) == 2)
    path = place / "runs" / run_id / "flow.json"
    flow = json.loads(path.read_text())
    # A fifth of the first second did not leave; in the window everything did.
    first = next(i for i in flow["intervals"] if i["end"] == "sender")
    missing = first["messages"]
    first |= {"messages": 0, "bytes": 0}
    flow["sender"]["messages_scheduled"] += 4 * missing
    flow["sender"]["messages_not_sent"] += 4 * missing
    path.write_text(json.dumps(flow))
    # run.json says of a flow what its report says.
    run = json.loads((path.parent / "run.json").read_text())
    null = place / "runs" / run["control"]["run_id"]
    of_null = [json.loads((null / name).read_text()) for name in ("run.json", "flow.json")]
    own, nulls = flow_parts(Kept(run, {1: flow})), flow_parts(Kept(of_null[0], {1: of_null[1]}))
    run |= {"measures": measures_of_all(own), "control": control_of(own, nulls, null.name)}
    (path.parent / "run.json").write_text(json.dumps(run))
    (result,) = compute_and_write(place, [run_id])
    assert result.measures["achieved_ratio"] < 0.95
    assert result.nodes[0].floor.reason is None


def rate_of(result: Path) -> float:
    return float(json.loads(result.read_text())["factors"]["offered_rate_mbps"])


def test_a_flow_records_the_options_of_dccp(held_back: Path) -> None:
    for path in held_back.glob("runs/*/flow.json"):
        options = json.loads(path.read_text())["transport_options"]
        if "-dccp-" in path.parent.name:
            assert (options["ccid"], options["carrier"]) == (3, "udp")
        else:
            assert options == {}


def test_a_flow_with_other_options_than_asked_is_a_defect(held_back: Path, tmp_path: Path) -> None:
    place = tmp_path / held_back.name
    shutil.copytree(held_back, place)
    path = next(place.glob("runs/*-dccp-*/flow.json"))
    flow = json.loads(path.read_text())
    flow["transport_options"]["ccid"] = 2
    path.write_text(json.dumps(flow))
    (defect,) = check_campaign(place)
    assert "field transport_options.ccid: 2, but the campaign asks for 3" in str(defect)
