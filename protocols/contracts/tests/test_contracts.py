# SPDX-License-Identifier: Apache-2.0
"""The contracts themselves: every schema is sound, closed, described and carries units."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import netjoule_contracts

ROOT = netjoule_contracts.root()
SCHEMAS = sorted((ROOT / "schemas").glob("*.schema.json"))
TABLES = sorted((ROOT / "tables").glob("*.table.json"))
WANTED_SCHEMAS = {
    "topology",
    "workload",
    "campaign",
    "run",
    "flow_report",
    "result",
    "device_stream",
    "loads",
}
WANTED_TABLES = {"plan", "clocks", "meters", "radio", "intervals", "events"}


def walk(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sub-schema of a JSON Schema with its place."""
    if isinstance(node, dict):
        yield place, node
        for key, value in node.items():
            if key not in ("enum", "const", "examples", "default"):
                yield from walk(value, f"{place}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from walk(value, f"{place}/{index}")


def test_every_document_and_table_of_the_design_has_a_contract() -> None:
    assert {p.name.removesuffix(".schema.json") for p in SCHEMAS} >= WANTED_SCHEMAS
    assert {p.name.removesuffix(".table.json") for p in TABLES} >= WANTED_TABLES


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda p: p.name)
def test_schema_is_sound_closed_and_described(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(document)
    for place, node in walk(document):
        if "properties" in node and isinstance(node["properties"], dict):
            assert node.get("additionalProperties") is False, f"{path.name}{place} is open"
            for name, field in node["properties"].items():
                described = "description" in field or "$ref" in field
                assert described, f"{path.name}{place}: {name} has no description"
                kinds = field.get("type", [])
                kinds = [kinds] if isinstance(kinds, str) else kinds
                if "number" in kinds:
                    assert "unit" in field, f"{path.name}{place}: number {name} has no unit"


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda p: p.name)
def test_schema_requires_its_version(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    if path.name == "device_stream.schema.json" or document.get("x-stream-line") or document.get("x-part-of"):
        return  # a line of a stream or a part of a document, versioned by the first line or the whole
    assert "schema_version" in document["required"], path.name
    newest = {
        "run.schema.json": 2,
        "result.schema.json": 2,
        "workload.schema.json": 2,
        "link_config.schema.json": 2,
    }
    assert document["properties"]["schema_version"].get("const") == newest.get(path.name, 1), path.name


@pytest.mark.parametrize("path", TABLES, ids=lambda p: p.name)
def test_table_columns_are_described_and_carry_units(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document.get("schemaVersion") == 1
    names = [f["name"] for f in document["fields"]]
    assert len(names) == len(set(names))
    for field in document["fields"]:
        assert field.get("description"), f"{path.name}: {field['name']} has no description"
        if field["type"] == "number":
            assert field.get("unit"), f"{path.name}: {field['name']} has no unit"


def test_the_end_of_a_name_says_its_unit_everywhere() -> None:
    vectors = json.loads((ROOT / "vectors" / "unit_suffixes.json").read_text(encoding="utf-8"))
    seen = set()
    for place, name, unit in named_units():
        suffix = max((s for s in vectors["suffixes"] if name.endswith(s)), key=len, default=None)
        if suffix is None or name in vectors["exceptions"]:
            continue
        seen.add(suffix)
        assert unit == vectors["suffixes"][suffix], f"{place}: {name} is in {unit}"
    assert seen == set(vectors["suffixes"]), "a suffix that no contract uses"


def named_units() -> Iterator[tuple[str, str, str]]:
    """(file, field name, unit) of every field of every contract that states a unit."""
    for path in [*SCHEMAS, *TABLES]:
        for _, node in walk(json.loads(path.read_text(encoding="utf-8"))):
            properties = node.get("properties")
            for name, field in properties.items() if isinstance(properties, dict) else ():
                if isinstance(field, dict) and "unit" in field:
                    yield path.name, name, field["unit"]
            if isinstance(node.get("name"), str) and "unit" in node:
                yield path.name, node["name"], node["unit"]


def test_reason_codes_are_unique_and_say_what_to_do() -> None:
    reasons = json.loads((ROOT / "reasons.json").read_text(encoding="utf-8"))
    rows = reasons["reasons"] if isinstance(reasons, dict) else reasons
    codes = [row["code"] for row in rows]
    assert len(codes) == len(set(codes))
    assert all(row["meaning"] and row["next_step"] and isinstance(row["invalidates"], bool) for row in rows)


def test_a_table_defect_names_line_and_column(tmp_path: Path) -> None:
    fields = [f["name"] for f in netjoule_contracts.table("clocks")["fields"]]
    good = {
        "t_s": "0.000000",
        "host": "client",
        "offset_s": "0.000000",
        "drift_ppm": "",
        "residual_s": "0.000000",
    }
    row = [good.get(name, "same_boot") for name in fields]
    path = tmp_path / "clocks.csv"
    path.write_text(",".join(fields) + "\n" + ",".join(row) + "\n", encoding="utf-8")
    assert list(netjoule_contracts.table_defects("clocks", path)) == []
    bad = ["soon" if name == "t_s" else value for name, value in zip(fields, row, strict=True)]
    path.write_text(",".join(fields) + "\n" + ",".join(bad) + "\n", encoding="utf-8")
    assert list(netjoule_contracts.table_defects("clocks", path)) == [
        "line 2, column t_s: 'soon' is not a valid number"
    ]
    path.write_text(",".join(reversed(fields)) + "\n", encoding="utf-8")
    assert "line 1" in next(netjoule_contracts.table_defects("clocks", path))


def test_a_table_from_before_a_column_was_added_still_fits(tmp_path: Path) -> None:
    names = [f["name"] for f in netjoule_contracts.table("plan_1")["fields"]]
    younger = {f["name"] for f in netjoule_contracts.table("plan_1")["fields"] if "default" in f}
    assert younger == {"pacing", "window_us", "gso"}
    row = "b01m001-udp-a1,1,1,1,1,udp,64,3,up,netjoule-traffic,1,done,"
    older = tmp_path / "plan.csv"
    older.write_text(",".join(n for n in names if n not in younger) + f"\n{row}\n", encoding="utf-8")
    assert list(netjoule_contracts.table_defects("plan", older)) == []
    older.write_text(",".join(names) + f"\n{row},burst:8,50,true\n", encoding="utf-8")
    assert list(netjoule_contracts.table_defects("plan", older)) == []
    older.write_text(",".join(names[1:]) + f"\n{row}\n", encoding="utf-8")
    assert "line 1" in next(netjoule_contracts.table_defects("plan", older))


def test_a_selftest_has_the_certificate_of_a_flow_report() -> None:
    of_flow = netjoule_contracts.schema("flow_report")["properties"]["pacing_certificate"]
    flows = netjoule_contracts.schema("selftest")["properties"]["flows"]
    of_selftest = flows["items"]["properties"]["pacing_certificate"]
    assert of_selftest["properties"] == of_flow["properties"]
    assert of_selftest["required"] == of_flow["required"]


def test_limits_have_the_same_names_wherever_they_stand() -> None:
    asked = netjoule_contracts.schema("workload_flow")["properties"]["pacing_limits"]["properties"]
    certificate = netjoule_contracts.schema("flow_report")["properties"]["pacing_certificate"]
    assert certificate["properties"]["limits"]["properties"] == asked


def test_a_document_defect_names_the_field() -> None:
    with pytest.raises(netjoule_contracts.ContractError, match="contract 'run'"):
        netjoule_contracts.validate("run", {"schema_version": 1, "nonsense": True})


def test_a_pattern_ends_where_its_text_ends() -> None:
    """To Python a dollar also stands before a last line feed; to Rust, R and the standard it does not."""
    nodes = [node for path in SCHEMAS + TABLES for _, node in walk(json.loads(path.read_text()))]
    patterns = {str(node["pattern"]) for node in nodes if isinstance(node.get("pattern"), str)}
    texts = ["udp", "auto", "env:A", "2026-11-24", "2026-11-24T00:00:00Z", "8N1", "absolute", "a" * 64]
    has_form = netjoule_contracts.has_form
    held = [(text, pattern) for text in texts for pattern in patterns if has_form(text, pattern)]
    assert len({pattern for _, pattern in held}) > len(patterns) / 2
    assert [one for one in held if one[1].endswith("$") and has_form(f"{one[0]}\n", one[1])] == []
    assert has_form("a$", "^a\\$") and has_form("a$\n", "^a\\$")
    found = netjoule_contracts.document_defects("workload", {"name": "demo\n"})
    assert any("'demo\\n' does not match" in defect for defect in found)


def test_an_unfit_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netjoule_contracts.root.cache_clear()
    monkeypatch.setenv("NETJOULE_CONTRACTS", str(tmp_path))
    with pytest.raises(netjoule_contracts.ContractError, match="NETJOULE_CONTRACTS"):
        netjoule_contracts.root()
    netjoule_contracts.root.cache_clear()
