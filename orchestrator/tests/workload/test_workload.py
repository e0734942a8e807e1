# SPDX-License-Identifier: Apache-2.0
"""Workloads as every load has them; the rules of one load are tested in its own room."""

import json
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import raises

from netjoule import loads
from netjoule.core.errors import UsageError
from netjoule.design.run_table import expand
from netjoule.workload.workload import Workload

TIMING = {"idle_s": 1, "settle_s": 0.2, "warm_up_s": 1, "measure_s": 2, "tail_s": 0.3}
FACTORS = {"transport": ["udp", "tcp"], "payload_bytes": [64, 1440], "offered_rate_mbps": 3}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "name": "small",
        "load": "flow",
        "factors": FACTORS,
        "blocks": 2,
        "timing": TIMING,
    } | changes


def made(**changes: Any) -> Workload:
    return loads.made(document(**changes), where="small.yaml")


def refused(**changes: Any) -> str:
    with pytest.raises(UsageError) as caught:
        made(**changes)
    return str(caught.value)


def test_one_value_is_a_list_of_one_and_defaults_are_factors_too() -> None:
    found = made()
    assert found.factors["offered_rate_mbps"] == (3.0,)
    assert {name: values for name, values in found.factors.items() if name not in FACTORS} == {
        "direction": ("up",),
        "parallel": (1,),
        "pacing": ("absolute",),
        "window_us": (0,),
        "gso": (False,),
    }
    assert (found.arm, found.arms, found.control) == ("transport", ("udp", "tcp", "null"), "null")
    assert Workload.from_document(json.loads(json.dumps(found.document)), where="campaign.json") == found


def test_a_control_arm_is_left_out_when_it_is_told_so() -> None:
    assert made(control=False).arms == ("udp", "tcp")
    assert made(control=False).runs == made().runs * 2 // 3


def test_excluded_combinations_are_no_cells() -> None:
    factors = FACTORS | {"payload_bytes": [64, 400, 1440], "offered_rate_mbps": [3, 6, 9]}
    found = made(factors=factors, exclude=[{"payload_bytes": 64, "offered_rate_mbps": [6, 9]}])
    left = [(cell["payload_bytes"], cell["offered_rate_mbps"]) for cell in found.cells]
    assert left == [(64, 3.0), *((size, rate) for size in (400, 1440) for rate in (3.0, 6.0, 9.0))]
    assert (found.mini_blocks, found.runs) == (14, 42)
    rows = expand(found, 1)
    assert len(rows) == 42
    assert {row.cell for row in rows} == set(found.cells)
    assert Workload.from_document(json.loads(json.dumps(found.document)), where="campaign.json") == found


def test_what_no_cell_has_cannot_be_excluded() -> None:
    assert "field exclude.0.payload_bytes: no cell has payload_bytes 65; name some of 64, 1440" in refused(
        exclude=[{"payload_bytes": 65}]
    )
    assert "no cell has transport udp; leave it out" in refused(exclude=[{"transport": "udp"}])
    assert "it leaves no cell; exclude fewer" in refused(exclude=[{"payload_bytes": [64, 1440]}])


def test_any_factor_may_be_the_arm() -> None:
    found = made(arm="path", factors=FACTORS | {"path": ["near", "far"]})
    assert found.arms == ("near", "far", "null")
    assert all("transport" in cell and "path" not in cell for cell in found.cells)
    rows = expand(found, 7)
    assert len(rows) == found.runs == 2 * 2 * 2 * 3
    far = next(row for row in rows if row.arm == "far").condition(found, 7)
    assert (far.factors["path"], far.control) == ("far", False)
    control = next(row for row in rows if row.kind == "control").condition(found, 7)
    assert (control.factors["transport"], control.control) == ("null", True)


def test_arms_that_differ_in_what_the_sender_does_have_no_control_run() -> None:
    several = FACTORS | {"pacing": ["absolute", "spin"]}
    found = made(arm="pacing", factors=several)
    assert found.arms == ("absolute", "spin")
    with raises(UsageError):
        made(arm="pacing", control=True, factors=several)


@pytest.mark.parametrize("arm", ["gso", "payload_bytes", "offered_rate_mbps", "direction"])
def test_an_arm_of_numbers_or_truth_values_has_their_names(arm: str) -> None:
    values = {"gso": [False, True], "payload_bytes": [64, 1440], "offered_rate_mbps": [0.5, 30]}
    several = FACTORS | {arm: values.get(arm, ["up", "down"])}
    found = made(arm=arm, control=False, factors=several)
    assert found.arms == {
        "gso": ("false", "true"),
        "payload_bytes": ("64", "1440"),
        "offered_rate_mbps": ("0.5", "30"),
        "direction": ("up", "down"),
    }.get(arm)
    conditions = [row.condition(found, 1) for row in expand(found, 1)]
    assert {condition.factors[arm] for condition in conditions} == set(found.factors[arm])


def test_lists_of_flows_at_once_directions_and_congestion_controls_are_factors() -> None:
    more = {"parallel": [1, 4], "direction": ["up", "down"], "congestion_control": ["cubic", "bbr"]}
    found = made(control=False, factors=FACTORS | more)
    assert found.mini_blocks == 2 * 2 * 2 * 2 * 2
    assert {cell["congestion_control"] for cell in found.cells} == {"cubic", "bbr"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"load": "flaw"}, "field load: 'flaw' is not one of flow"),
        ({"factors": FACTORS | {"colour": ["red"]}}, "field factors.colour: flow has no factor colour"),
        ({"factors": FACTORS | {"LEVEL": ["a"]}}, "field factors.LEVEL: flow has no factor LEVEL"),
        ({"factors": {"transport": ["udp"]}}, "field factors: the field payload_bytes is missing"),
        ({"factors": FACTORS | {"gso": [True, True]}}, "field factors.gso: a value stands twice"),
        ({"arm": "build"}, "field arm: build is no factor of this workload"),
        ({"command": {"run": ["true"]}}, "settings of command, and the load of this workload is flow"),
        ({"factors": FACTORS | {"transport": ["udp", "null"]}}, "null is the control arm"),
        ({"blocks": 0}, "field blocks: 0 is below the least allowed 1"),
        ({"sync_pulses": True}, "field flow.sync_pulse: sync pulses have a rate and a size"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(changes: dict[str, Any], words: str) -> None:
    assert words in refused(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"schema_version": 3},
            "field schema_version: this netjoule reads versions up to 2, and the file is of a newer one, 3",
        ),
        ({"schema_version": 1}, "a workload with factors is of version 2"),
    ],
)
def test_another_version_is_named_before_all_else(changes: dict[str, Any], words: str) -> None:
    assert words in refused(**changes, blocks=0)


OLDER = {
    "schema_version": 1,
    "name": "small",
    "transports": ["udp", "tcp", "null"],
    "payload_bytes": [64],
    "offered_rate_mbps": [3],
    "blocks": 2,
    "timing": TIMING,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"transports": ["udp", "udpp"]}, "old, field transports.1: there is no transport 'udpp'"),
        ({"transports": ["null"]}, "old, field transports: the list is too short"),
        ({"pacing": {"mode": "absolute", "window_us": -3}}, "old, field pacing.window_us.0: -3"),
        ({"window_us": -3}, "old, field window_us.0: -3"),
        ({"ip_version": 5}, "old, field ip_version: 5"),
        ({"load_pulses": {"rate_mbps": 0, "payload_bytes": 64}}, "old, field load_pulses.rate_mbps: 0"),
        ({"block": 1}, "old, field block: unknown field, did you mean 'blocks'? known here: schema_version,"),
        (
            {"statistics": {"contrasts": [{"transport": "udp", "reference": "tcp", "payload_bytes": 65}]}},
            "old, field statistics.contrasts.0.payload_bytes: payload_bytes 65 is not in this workload",
        ),
        (
            {"statistics": {"contrasts": [{"transport": "up", "reference": "tcp", "payload_bytes": 64}]}},
            "old, field statistics.contrasts.0.transport: up is not an arm",
        ),
    ],
)
def test_a_field_is_named_as_a_workload_of_schema_1_has_it(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        loads.made(OLDER | changes, where="old")
    assert words in str(caught.value)


def test_a_factor_that_would_be_an_environment_variable_is_told_in_capitals() -> None:
    asked = {"load": "command", "command": {"run": ["true"]}}
    words = "field factors.threads: command has no factor threads; name some of build, THREADS (environment"
    assert words in refused(**asked, factors={"threads": [1, 2]})
    assert "factor environment; name some of build" in refused(**asked, factors={"environment": ["a"]})
    assert "factor biuld, did you mean 'build'" in refused(**asked, factors={"biuld": ["a"]})


def test_a_field_that_a_workload_of_schema_1_lacks_is_named_as_it_would_have_it() -> None:
    with pytest.raises(UsageError) as caught:
        loads.made({name: value for name, value in OLDER.items() if name != "transports"}, where="old")
    assert str(caught.value) == "old: the field transports is missing"


def test_a_contrast_names_arms_that_are_numbers_as_the_factors_do() -> None:
    sizes = FACTORS | {"payload_bytes": [64, 1440]}
    asked = {"statistics": {"contrasts": [{"arm": 1440, "reference": "64"}]}}
    found = made(arm="payload_bytes", factors=sizes, **asked)
    assert found.document["statistics"] == {"contrasts": [{"arm": "1440", "reference": "64"}]}
    at = {"at": {"payload_bytes": 64}}
    asked = {"statistics": {"contrasts": [{"arm": True, "reference": False} | at]}}
    made(arm="gso", factors=FACTORS | {"gso": [False, True]}, **asked)
    asked = {"statistics": {"contrasts": [{"arm": 6.0, "reference": 0.5} | at]}}
    made(arm="offered_rate_mbps", factors=FACTORS | {"offered_rate_mbps": [0.5, 6]}, **asked)
    with pytest.raises(UsageError, match=r"field statistics\.contrasts\.0\.arm: 7 is not an arm"):
        made(arm="payload_bytes", factors=sizes, statistics={"contrasts": [{"arm": 7, "reference": 64}]})


def test_a_line_of_a_file_is_named_whatever_its_version(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(
        "schema_version: 1\nname: small\ntransports: [udp]\npayload_bytes:\n  - 64\n  - 8\n"
        f"offered_rate_mbps: [3]\nblocks: 1\ntiming: {json.dumps(TIMING)}\n"
    )
    with raises(UsageError):
        loads.read(old)
