# SPDX-License-Identifier: Apache-2.0
"""A factor of the testbed: a campaign whose runs differ in the path between access point and server."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import yaml
from plans import plan
from runner_fakes import Script, new_campaign, run, topology, workload
from tiny_campaign import CONSTANT_METER, netjoule, table, written

import netjoule_contracts
from netjoule.core.errors import UsageError
from netjoule.design.limits import check_workload
from netjoule.topology.paths import asked_paths, in_force, path_elements
from netjoule.topology.topology import Topology

PRESETS = {"path": {"near": {"rtt_ms": 5}, "far": {"rtt_ms": 40, "rate_mbps": 50}}}
ELEMENTS = {"core": {"delay_ms": 10, "rate_mbps": 100}, "dsl": {"delay_ms": 3, "queue_packets": 60}}


def with_presets() -> Topology:
    document = topology(wired={"loss_ratio": 0.01, "delay_ms": 1}).document
    return Topology.from_document(document | {"presets": PRESETS, "elements": ELEMENTS}, where="test")


def asked(**changes: object) -> dict[str, object]:
    factors = {"transport": ["udp"], "payload_bytes": [1440], "offered_rate_mbps": [6]}
    return {"schema_version": 2, "load": "flow", "factors": factors | changes}


def flows(name: str = "path", values: object = ("near", "far"), arm: str = "transport"):
    document = {key: value for key, value in workload().document.items() if key != "flow"}
    factors = asked(**{name: list(values)})["factors"]
    return type(workload()).from_document(document | {"factors": factors, "arm": arm}, where="test")


def test_a_path_is_a_preset_parameters_or_elements_and_the_testbeds_own_in_what_it_leaves_open() -> None:
    where = with_presets().document

    def elements(value: object) -> list[dict[str, object]]:
        return path_elements(where, "server", value)

    assert elements("far") == [{"loss_ratio": 0.01, "delay_ms": 20, "rate_mbps": 50}]
    assert elements({"loss_ratio": 0}) == [{"loss_ratio": 0, "delay_ms": 1}]
    assert elements({"elements": ["dsl", "core"]}) == [ELEMENTS["dsl"], ELEMENTS["core"]]
    assert elements(None) == [{"loss_ratio": 0.01, "delay_ms": 1}]


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("path", ["fra"], "has no preset 'fra' of path, did you mean 'far'"),
        ("path", [{"elements": ["dls"]}], "no element of the testbed is called 'dls'; elements: core, dsl"),
        ("path", [{"elements": ["dsl"], "rtt_ms": 3}], "give one or the other"),
        (
            "path",
            [{"elements": ["dsl"], "access": ["dsl"]}],
            "only on a testbed of kind simulated have flows",
        ),
        ("path.uplink", ["near"], "fake has no path that is called path.uplink"),
        ("access", ["ltee"], "fake has no preset 'ltee' of access, did you mean 'lte'"),
        ("scaling", [{"kind": "none"}], "no path of fake has an element with scaling"),
        ("scaling", ["slow"], "fake has no preset 'slow' of scaling"),
    ],
)
def test_a_value_that_the_testbed_does_not_have_is_named(name: str, values: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_workload(flows(name, values), with_presets())
    assert words in caught.value.what
    assert caught.value.where == f"workload fake, field factors.{name}"


def test_a_kind_that_cannot_set_a_factor_names_those_that_can() -> None:
    document = with_presets().document
    lab = {key: value for key, value in document.items() if key not in ("link", "presets", "elements")}
    hosts = {name: host | {"control_address": "10.9.9.9"} for name, host in document["hosts"].items()}
    made = Topology.from_document(lab | {"kind": "imported", "hosts": hosts}, where="test")
    with pytest.raises(UsageError) as caught:
        check_workload(flows(), made)
    assert caught.value.next_step == "use one of kind emulated or lab or simulated"


def test_a_factor_of_elements_is_of_all_that_have_its_field_on_every_path() -> None:
    plain, router = {"rate_mbps": 100}, {"rate_mbps": 10, "scaling": {"kind": "none"}}
    fixed = {"kind": "fixed", "rate_mbps": 4}
    few, many = ({"mean_burst_ms": 1, "cycle_ms": 10, "rate_mbps": rate} for rate in (1, 9))
    document = with_presets().document
    hosts = document["hosts"] | {"origin": {"roles": ["origin"], "test_addresses": {"ipv4": "10.77.0.8"}}}
    where = document | {
        "hosts": hosts,
        "elements": {"plain": plain, "router": router},
        "link": document["link"] | {"paths": {"server": {"elements": ["plain", "router"]}}},
        "presets": {"scaling": {"slow": fixed}},
    }
    where["elements"]["busy"] = {"bursts": few}
    scaled = router | {"scaling": fixed}
    busy = {"path.server": {"elements": ["busy", "router"]}, "bursts": many, "scaling": "slow"}
    assert asked_paths(where, busy) == {"server": [{"bursts": many}, scaled]}
    assert asked_paths(where, {"scaling": "slow"}) == {"server": [plain, scaled]}
    both = {"path.origin": {"elements": ["router"]}, "scaling": fixed}
    found = asked_paths(where, both)
    assert found == {"server": [plain, scaled], "origin": [scaled]}
    assert in_force(where, both, found) == {
        "path.origin": {"elements": [scaled]},
        "scaling": {"elements": [scaled, scaled]},
    }


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"presets": {"path": {"a": {"elements": ["b"]}}}}, "presets.path.a", "elements: it has none"),
        ({"presets": {"path": {"a": {"speed": 1}}}}, "presets.path.a.speed", "unknown field"),
        ({"elements": {"a": {"delay_ms": -1}}}, "elements.a.delay_ms", "below the least"),
    ],
)
def test_a_topology_with_a_wrong_path_is_refused(change: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Topology.from_document(topology().document | change, where="t")
    assert caught.value.where.endswith(f"field {field}")
    assert words in caught.value.what


def test_each_of_several_paths_is_a_factor_that_is_called_by_its_host() -> None:
    document = with_presets().document
    origin = {"roles": ["origin"], "test_addresses": {"ipv4": "10.77.0.8"}}
    link = document["link"] | {"paths": {"origin": {"elements": ["core"]}}}
    several = document | {"hosts": document["hosts"] | {"origin": origin}, "link": link}
    where = Topology.from_document(several, where="test")
    check_workload(flows("path.origin", ["near", {"loss_ratio": 0.5}]), where)
    assert path_elements(several, "origin", {"loss_ratio": 0.5}) == [{"loss_ratio": 0.5, "delay_ms": 1}]
    with pytest.raises(UsageError) as caught:
        check_workload(flows(), where)
    assert caught.value.next_step == "name path.server or path.origin"
    with pytest.raises(UsageError) as caught:
        Topology.from_document(several | {"link": link | {"paths": {"orgin": {"rtt_ms": 5}}}}, where="t")
    assert caught.value.what == "no host behind the access point is called 'orgin'; hosts: server, origin"


@pytest.mark.parametrize("arm", ["transport", "path"])
def test_the_testbed_is_set_only_where_a_run_differs_from_the_one_before(tmp_path: Path, arm: str) -> None:
    script = Script()
    load = flows(arm=arm)
    with new_campaign(tmp_path / "c", load, with_presets()) as campaign:
        run(campaign, script)
        rows = campaign.rows()
        kept = {row.run_id: campaign.read_run(row.run_id)["in_force"]["path"]["value"] for row in rows}
        values = [load.values_of(row.arm, row.cell)["path"] for row in rows]
        assert list(kept.values()) == values
        changes = [
            row.run_id
            for row, before in zip(rows, [None, *values], strict=False)
            if kept[row.run_id] != before
        ]
        assert script.of("apply") == changes
        assert script.of("go") == [row.run_id for row in rows]
        for run_id in changes:  # before its own sender is ready, and so before its idle window
            noted = [what for what, of, _ in script.log if of == run_id]
            assert noted.index("apply") < noted.index("open")


def test_what_moves_idle_power_changes_behind_the_idle_window_of_the_run_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = netjoule_contracts.factors()
    for moves in (False, True):
        told = known | {"path": known["path"] | {"moves_idle_power": moves}}
        monkeypatch.setattr(netjoule_contracts, "factors", lambda told=told: told)
        script = Script()
        with new_campaign(tmp_path / str(moves), flows(), with_presets()) as campaign:
            run(campaign, script)
            windows = {row.run_id: campaign.read_run(row.run_id)["windows"] for row in campaign.rows()}
        changes = {run_id: t_s for what, run_id, t_s in script.log if what == "apply"}
        assert len(changes) == 2
        for (_, before), (run_id, after) in itertools.pairwise(windows.items()):
            shared = before["idle_after"] == after["idle_before"]
            assert shared == (run_id not in changes or not moves)
            assert shared or before["idle_after"]["t_end_s"] <= changes[run_id]


@pytest.mark.netns
def test_a_campaign_compares_two_paths(tmp_path: Path) -> None:
    files = written(tmp_path, [CONSTANT_METER])
    where = yaml.safe_load(files.topology.read_text())
    presets = {"path": {"near": {"rtt_ms": 5}, "far": {"elements": ["core", "last"]}}}
    elements = {"core": {"delay_ms": 15, "rate_mbps": 100}, "last": {"delay_ms": 5}}
    files.topology.write_text(yaml.safe_dump(where | {"presets": presets, "elements": elements}))
    asked_of = yaml.safe_load(files.workload.read_text())
    kept = {name: asked_of[name] for name in ("name", "timing", "limits")}
    document = asked(path=["near", "far"]) | kept | {"arm": "path", "control": False, "blocks": 2, "seed": 4}
    files.workload.write_text(yaml.safe_dump(document))
    planned = netjoule("plan", str(files.workload), "--testbed", str(files.topology))
    assert "path       near (rtt_ms 5); far (elements core+last)" in planned.stdout, planned.stderr
    done = netjoule(*files.run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert netjoule("check", str(files.out)).returncode == 0
    delays_ms: dict[str, list[float]] = {"near": [], "far": []}
    for row in plan(files.out):
        if row["status"] != "valid":
            continue
        folder = files.out / "runs" / row["run_id"]
        told = json.loads((folder / "run.json").read_text())
        in_force = [one["delay_ms"] for one in told["in_force"]["path"]["elements"]]
        assert in_force == {"near": [2.5], "far": [15, 5]}[told["arm"]]
        flow = json.loads((folder / "flow.json").read_text())
        delays_ms[told["arm"]].append(flow["receiver"]["one_way_delay_ms"]["p50"])
    assert [len(found) for found in delays_ms.values()] == [2, 2]
    assert all(2.5 < delay_ms < 12 for delay_ms in delays_ms["near"]), delays_ms
    assert all(20 < delay_ms < 30 for delay_ms in delays_ms["far"]), delays_ms
    assert netjoule("analyse", str(files.out)).returncode == 0
    assert {row["path"] for row in table(files.out / "tables" / "energy_summary.csv")} == {"near", "far"}
