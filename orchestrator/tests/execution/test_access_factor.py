# SPDX-License-Identifier: Apache-2.0
"""The factor access: a radio that sleeps between packets before the air of a client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import plan
from runner_fakes import topology, workload
from tiny_campaign import CONSTANT_METER, netjoule, written

from netjoule.core.errors import UsageError
from netjoule.design.limits import check_workload
from netjoule.topology.paths import parameters
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.workload import Workload

FACTORS = {"transport": ["udp"], "payload_bytes": [1440], "offered_rate_mbps": [6]}


def flows(access: list[Any]) -> Workload:
    document = workload().document | {"factors": FACTORS | {"access": access}}
    return Workload.from_document(document, where="test")


def test_a_preset_is_of_every_testbed_and_a_testbeds_own_takes_its_place() -> None:
    where = topology().document
    assert parameters(where, "access", "wifi-nexus-s")["rate_mbps"] == 20
    assert parameters(where, "access", "wifi") == {"radio_states": "energybox-s2"}
    own = {"presets": {"access": {"wifi": {"radio_states": "n9-wlan"}}}}
    made = Topology.from_document(where | own, where="test")
    check_workload(flows(["wifi", {"radio_states": "aro-lte", "rate_mbps": 12.7}]), made)
    assert parameters(made.document, "access", "wifi") == {"radio_states": "n9-wlan"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("wifi-nexus", "has no preset 'wifi-nexus' of access, did you mean 'wifi-nexus-s'"),
        ({"radio_states": "mobisys"}, "'mobisys' is not one of"),
        ({"rate_mbps": 20}, "the field 'radio_states' is missing"),
    ],
)
def test_a_network_that_does_not_exist_is_named(value: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_workload(flows([value]), topology())
    assert words in caught.value.what


def test_a_simulated_testbed_has_no_access_network() -> None:
    hosts = {"client": {"roles": ["client"]}, "server": {"roles": ["server"]}}
    document = {"schema_version": 1, "name": "fake", "kind": SIMULATED, "hosts": hosts, "meters": []}
    made = Topology.from_document(document, where="test")
    with pytest.raises(UsageError) as caught:
        check_workload(flows(["lte"]), made)
    assert caught.value.what == "a testbed of kind simulated cannot set access"
    assert caught.value.next_step == "use one of kind emulated"


@pytest.mark.netns
def test_a_campaign_tells_what_each_radio_spent(tmp_path: Path) -> None:
    files = written(tmp_path, [CONSTANT_METER])
    asked_of = yaml.safe_load(files.workload.read_text())
    kept = {name: asked_of[name] for name in ("name", "timing", "limits")}
    document = {"schema_version": 2, "load": "flow", "factors": FACTORS | {"access": ["wifi", "lte"]}}
    document |= kept | {"arm": "access", "control": False, "blocks": 1, "seed": 4}
    files.workload.write_text(yaml.safe_dump(document))
    planned = netjoule("plan", str(files.workload), "--testbed", str(files.topology))
    assert "lte (radio_states mobisys12, rate_mbps 150)" in planned.stdout, planned.stdout + planned.stderr
    done = netjoule(*files.run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no defects" in netjoule("check", str(files.out)).stdout
    found = {}
    for row in plan(files.out):
        if row["status"] == "valid":
            folder = files.out / "runs" / row["run_id"]
            run, result = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "result"))
            assert result["radio_states"] == run["radio_states"]
            (found[run["arm"]],) = result["radio_states"]
    assert {(entry["node"], entry["power_source"]) for entry in found.values()} == {("client", "modelled")}
    length_s = kept["timing"]["measure_s"]
    for entry in found.values():
        told = entry["measure"]["states"].values()
        assert sum(state["time_s"] for state in told) == pytest.approx(length_s, abs=0.01)
        assert sum(state["energy_j"] for state in told) == pytest.approx(entry["measure"]["energy_j"])
    # LTE receives all the time; UDP and IP add 28 bytes to each message.
    lte = found["lte"]["measure"]
    assert set(lte["states"]) == {"CR"}
    assert lte["energy_j"] == pytest.approx(length_s * (1.288 + 0.43839 * 6 * 1468 / 1440), rel=0.03)
    assert set(found["lte"]["tail"]["states"]) >= {"CR", "SHORT_DRX", "LONG_DRX"}
    wifi = found["wifi"]["measure"]
    assert set(wifi["states"]) <= {"CAM", "CAMH"}
    assert 0.25 * length_s <= wifi["energy_j"] <= 0.451 * length_s
    assert found["wifi"]["tail"]["energy_j"] < found["lte"]["tail"]["energy_j"]
