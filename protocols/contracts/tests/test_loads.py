# SPDX-License-Identifier: Apache-2.0
"""loads.json and factors.json fit their schemas and each other, and ranges stand there alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

import netjoule_contracts as contracts

ROOT = contracts.root()
SCHEMAS = sorted((ROOT / "schemas").glob("*.schema.json"))
RANGES = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "enum", "x-transports"}


def listed(kinds: str | list[str]) -> set[str]:
    """Types that a schema allows."""
    return {kinds} if isinstance(kinds, str) else set(kinds)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a document."""
    if isinstance(node, dict):
        yield node
    if isinstance(node, dict | list):
        for inner in node.values() if isinstance(node, dict) else node:
            yield from nodes(inner)


@pytest.mark.parametrize("name", ["loads", "factors"])
def test_the_document_fits_its_schema_and_names_nothing_twice(name: str) -> None:
    document = json.loads((ROOT / f"{name}.json").read_text(encoding="utf-8"))
    assert contracts.document_defects(name, document) == []
    names = [entry["name"] for entry in document[name]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", sorted(contracts.factors()))
def test_a_factor_has_a_sound_type_a_unit_where_it_is_a_number_and_a_fitting_default(name: str) -> None:
    entry = contracts.factors()[name]
    jsonschema.Draft202012Validator.check_schema(entry["value"])
    kinds = entry["value"]["type"]
    assert ("unit" in entry) == (kinds in ("integer", "number"))
    if "default" in entry:
        jsonschema.Draft202012Validator(entry["value"]).validate(entry["default"])


@pytest.mark.parametrize("name", sorted(contracts.loads()))
def test_a_load_names_factors_that_there_are(name: str) -> None:
    load = contracts.loads()[name]
    own = load["factors"]
    assert {contracts.factors()[factor]["owner"] for factor in own} <= {"load", "program"}
    assert load["arm"] in own
    assert set(load["required"]) <= set(own)
    arms = contracts.factors()[load["arm"]]["value"]
    for arm in (load["reference"], load["control"]):
        assert arm is None or jsonschema.Draft202012Validator(arms).is_valid(arm)
    assert {figure["panel"] for figure in load["figures"]} - {None} <= set(own)
    assert {figure["colour"] for figure in load["figures"]} - {None} <= set(own)


def test_every_factor_of_a_load_is_some_loads() -> None:
    named = {factor for load in contracts.loads().values() for factor in load["factors"]}
    owned = {name for name, entry in contracts.factors().items() if entry["owner"] != "testbed"}
    assert named == owned


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda p: p.name)
def test_a_range_of_a_factor_stands_in_factors_json_alone(path: Any) -> None:
    for node in nodes(json.loads(path.read_text(encoding="utf-8"))):
        if isinstance(node.get("x-factor"), str):
            entry = contracts.factors()[node["x-factor"]]
            assert not RANGES & set(node), f"{path.name}: {node}"
            assert listed(node["type"]) & listed(entry["value"]["type"])
            assert node.get("unit") == entry.get("unit")


def test_the_schema_of_workloads_has_the_ranges() -> None:
    factors = contracts.schema("workload")["properties"]["factors"]["properties"]
    size = factors["payload_bytes"]["items"]
    assert {"type": "integer", "minimum": 16, "maximum": 1048576}.items() <= size.items()
    assert factors["pacing"]["items"]["pattern"] == contracts.factors()["pacing"]["value"]["pattern"]


@pytest.mark.parametrize(
    ("name", "known_as"),
    [("path", "path"), ("path.uplink", "path"), ("QUIC_GSO", "environment"), ("build", "build")],
)
def test_a_factor_is_also_known_by_the_form_of_its_name(name: str, known_as: str) -> None:
    assert contracts.factor(name) is contracts.factors()[known_as]


@pytest.mark.parametrize("name", ["colour", "path.", "PATH-X", "window_us\n", ""])
def test_another_name_is_none(name: str) -> None:
    assert contracts.factor(name) is None
