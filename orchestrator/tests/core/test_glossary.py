# SPDX-License-Identifier: Apache-2.0
"""The words and codes that every room shares are complete and used as written."""

import json
import re
from pathlib import Path

import pytest
from golden_sentences import raises

import netjoule_contracts as contracts
from netjoule.core import glossary
from netjoule.core.errors import UsageError
from netjoule.core.reason import codes as reason_codes

ROOT = Path(__file__).parents[3]


def test_every_word_stands_once_and_means_something():
    entries = glossary.entries()
    terms = [e.term for e in entries]
    assert len(terms) == len(set(terms))
    assert all(e.meaning.endswith(".") or e.meaning.endswith(")") for e in entries), terms


def test_the_definitions_of_the_design_are_there():
    terms = {e.term for e in glossary.entries()}
    assert {
        "E_A",
        "P_A",
        "P_I",
        "T_A",
        "generator floor",
        "u95",
        "energy envelope",
        "dE_A",
        "mini-block",
    } <= terms


@pytest.mark.parametrize(
    "column", ["ea_j_per_mbit", "u95_ea_j_per_mbit", "p_a_w", "p_null_w", "tail_energy_j"]
)
def test_columns_of_the_glossary_are_fields_of_the_result(column):
    text = json.dumps(contracts.schema("result"))
    assert f'"{column}"' in text
    assert [e for e in glossary.entries() if e.column == column]


def test_t_a_is_a_column_of_the_analysis():
    assert "t_a_mbps" in {field["name"] for field in contracts.table("runs")["fields"]}
    assert [e for e in glossary.entries() if e.column == "t_a_mbps"]


def test_lookup_finds_by_word_or_column():
    assert [e.term for e in glossary.lookup(["floor_w"])] == ["generator floor"]
    assert glossary.lookup([]) == glossary.entries()
    with raises(UsageError):
        glossary.lookup(["floor", "nonsense"])


def test_every_reason_says_what_to_do():
    document = json.loads((contracts.root() / "reasons.json").read_text())
    assert len(reason_codes()) == len(document["reasons"])
    for reason in document["reasons"]:
        assert set(reason) == {"code", "meaning", "invalidates", "next_step"}
        assert reason["next_step"].endswith(".")


def test_codes_in_the_source_are_codes_of_the_contract():
    pattern = re.compile(r"""Reason\(\s*"([a-z_]+)"|code="([a-z_]+)\"""")
    folders = [ROOT / "orchestrator" / "src", ROOT / "meters" / "src"]
    used = {
        first or second
        for folder in folders
        for path in folder.rglob("*.py")
        for first, second in pattern.findall(path.read_text())
    }
    assert used, "the pattern finds the codes"
    assert used <= set(reason_codes())
