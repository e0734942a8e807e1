# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest
from golden_sentences import raises

from netjoule_contracts import document_defects, schema, table, table_defects
from netjoule_meters.config import load_meter_configs, meter_configs
from netjoule_meters.errors import UsageError
from netjoule_meters.logger.readings_file import COLUMNS, ReadingsFile
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange, Passport
from netjoule_meters.reading import Flag, Reading

METER = {"meter_id": "m1", "node": "client", "adapter": "wt210", "resource": "/dev/ttyS0"}


def test_columns_and_flags_are_those_of_the_table():
    fields = table("meters")["fields"]
    assert tuple(field["name"] for field in fields) == COLUMNS
    assert set(fields[-1]["constraints"]["enum"]) == {flag.value for flag in Flag} - {""}
    assert all("unit" in field for field in fields if field["type"] in ("number", "integer"))


@pytest.mark.parametrize("name", ["meter_passport", "meter_config"])
def test_numbers_have_units_and_everything_a_description(name):
    def walk(node, path):
        for key, child in node.get("properties", {}).items():
            assert child.get("description"), f"{path}.{key}"
            kinds = child.get("type", [])
            if {"number", "integer"} & set([kinds] if isinstance(kinds, str) else kinds):
                assert "unit" in child, f"{path}.{key}"
            walk(child, f"{path}.{key}")
        if node.get("type") == "object":
            assert node["additionalProperties"] is False, path
        if "items" in node:
            walk(node["items"], f"{path}[]")

    document = schema(name)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "schema_version" in document["required"]
    walk(document, name)


def test_written_rows_fit_the_table(tmp_path):
    path = tmp_path / "meters" / "m1.csv"
    file = ReadingsFile(path, origin_ns=0)
    file.append(Reading(1_000_000_000, 22.95, 230.12, 0.2064))
    for flag in Flag:
        file.append(Reading(2_000_000_000, flag=flag))
    file.close()
    assert list(table_defects("meters", path)) == []
    assert path.read_text().splitlines()[1] == "1.000000,0,22.95,230.12,0.2064,,"


def passport(**changes) -> dict[str, object]:
    values = {
        "meter_id": "m1",
        "node": "client",
        "adapter": "wt210",
        "identification": Identification("YOKOGAWA,760401,0,F2.01", "Yokogawa", "WT210", None, "F2.01"),
        "range": MeasuringRange(300.0, 0.5, 150.0),
        "crest_factor": 3.0,
        "update_interval_s": 0.1,
        "lag_s": 0.1,
        "accuracy": Accuracy(0.0015, 0.001, "manual"),
        "calibration_date": "2026-09-01",
        "power_source": "modelled",
        "device_model": "laptop-cpu",
        "device_form": "cpu",
    }
    return Passport(**{**values, **changes}).document()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"accuracy": Accuracy(None, None, "unknown"), "calibration_date": None, "power_source": "measured"},
        {"range": MeasuringRange(None, None, None), "crest_factor": None, "device_form": None},
    ],
)
def test_passports_fit_the_schema(changes):
    assert document_defects("meter_passport", passport(**changes)) == []


def test_configuration_with_defaults():
    (config,) = meter_configs({"schema_version": 1, "meters": [METER]})
    assert (config.power_source, config.settings, config.calibration_date) == ("measured", {}, None)


@pytest.mark.parametrize(
    "meters",
    [
        [],
        [{**METER, "colour": 1}],
        [{**METER, "meter_id": "../m"}],
        [METER, {**METER, "resource": "/dev/ttyS1"}],
        [METER, {**METER, "meter_id": "m2"}],
        [{**METER, "calibration_date": "yesterday"}],
        [{**METER, "settings": {"update_interval_s": 0}}],
    ],
)
def test_wrong_configurations_name_the_place(meters):
    with raises(UsageError):
        meter_configs({"schema_version": 1, "meters": meters})


def test_unreadable_configurations(tmp_path):
    with raises(UsageError):
        load_meter_configs(tmp_path / "absent.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with raises(UsageError):
        load_meter_configs(broken)
    good = tmp_path / "good.json"
    good.write_text(json.dumps({"schema_version": 1, "meters": [METER]}))
    assert load_meter_configs(good)[0].meter_id == "m1"
