# SPDX-License-Identifier: Apache-2.0
"""docs/lab.md says what is so: its files load, and the words of its troubleshooting are the programs' own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from render import ANSIBLE

from netjoule import loads
from netjoule.loads import load_of
from netjoule.topology import topology

ROOT = ANSIBLE.parent
LAB = (ROOT / "docs/lab.md").read_text()
SPEAKERS = ("orchestrator/src/netjoule", "testbed/radio/src/netjoule_radio")


def examples() -> dict[str, str]:
    """YAML of the page by its name field."""
    found = re.findall(r"(?ms)^( *)```yaml\n(.*?)^ *```", LAB)
    blocks = [re.sub(rf"(?m)^{indent}", "", text) for indent, text in found]
    return {yaml.safe_load(block)["name"]: block for block in blocks}


def texts(source: Path) -> Iterator[str]:
    """Every text of a Python file, pieces of one text joined, what is filled in as {}."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)


@pytest.fixture(scope="module")
def said() -> str:
    """All that programs and roles may say, spaces made one."""
    spoken = [t for folder in SPEAKERS for path in (ROOT / folder).rglob("*.py") for t in texts(path)]
    spoken += [path.read_text() for path in (ANSIBLE / "roles").rglob("*.yml")]
    return " ".join("\n".join(spoken).split())


def troubles() -> list[str]:
    table = LAB[LAB.index("## Troubleshooting") :]
    cells = re.findall(r"(?m)^\| (.*?) \|", table)
    return [words for cell in cells for words in re.findall(r"`([^`]+)`", cell)]


def test_the_examples_are_a_lab_and_a_workload_that_fit(tmp_path: Path) -> None:
    files = {}
    for name, text in examples().items():
        files[name] = tmp_path / f"{name}.yaml"
        files[name].write_text(text)
    assert set(files) == {"my-rack", "first"}
    rack = topology.load(files["my-rack"])
    assert (rack.radio_source, rack.meters[0].power_source) == ("real", "measured")
    load_of(loads.read(files["first"]), rack).require_fit()


def test_there_are_troubles() -> None:
    assert len(troubles()) > 20


@pytest.mark.parametrize("words", troubles())
def test_the_words_of_a_trouble_are_the_programs_own(words: str, said: str) -> None:
    assert words in said


def test_reasons_are_those_of_the_contract() -> None:
    reasons = json.loads((ROOT / "protocols/contracts/reasons.json").read_text())["reasons"]
    last = LAB[LAB.index("**while flows run**") :]
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", last))
    assert len(named) >= 6
    assert named <= {reason["code"] for reason in reasons}


def test_the_fields_of_the_page_are_those_of_the_schema() -> None:
    schema = json.loads((ROOT / "protocols/contracts/schemas/topology.schema.json").read_text())
    host = schema["properties"]["hosts"]["additionalProperties"]["properties"]
    fields = LAB[LAB.index("| field | what it says |") : LAB.index("## Step by step")]
    for name in (*host, *schema["properties"]["wifi"]["properties"]):
        assert re.search(rf"`(\w+\.)*{name}`|\.{name}`", fields), name
