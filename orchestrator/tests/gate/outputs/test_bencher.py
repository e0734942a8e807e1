# SPDX-License-Identifier: Apache-2.0
import json

import jsonschema
import pytest
import verdict_documents as made

from netjoule.gate.outputs import bencher

BMF = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "additionalProperties": False,
            "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
        },
    },
}
"""Bencher Metric Format as its reference has it: benchmark, measure, value; either bound may be absent."""


def read(verdict: dict) -> dict:
    document = json.loads(bencher.text(verdict))
    jsonschema.validate(document, BMF)
    return document


def test_decision_cells_and_arms_are_benchmarks():
    found = read(made.verdict("fail"))
    assert found["gate-64"] == {"energy ratio": {"value": 1.049, "lower_value": 1.021, "upper_value": 1.078}}
    assert found["gate-64/head"]["energy (J/Mb)"]["value"] == pytest.approx(0.021)
    assert found["gate-64/payload_bytes=1300"] == {
        "power difference (W)": {"value": 0.012, "lower_value": -0.001, "upper_value": 0.025}
    }
    assert found["gate-64/payload_bytes=1400"] == {"energy ratio": {"value": 1.0}}
    assert "gate-64/payload_bytes=1200" not in found


def test_without_a_session_there_is_nothing():
    assert read(made.verdict("skipped")) == {}


def test_hostile_names_stay_names():
    text = bencher.text(made.hostile())
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert all(name.startswith("a|b\\n::error::x]]>") for name in read(made.hostile()))
