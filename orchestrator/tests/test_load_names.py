# SPDX-License-Identifier: Apache-2.0
"""The lint rule that finds loads and their factors where nobody should know them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "load_names.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("load_names", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_are_those_of_loads_and_of_their_own_factors(script: ModuleType) -> None:
    names = script.names()
    assert {"flow", "command", "transport", "payload_bytes", "build"} <= names
    assert not names & {"path", "device", "environment"}, "factors of the testbed, and forms of names"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x = run['payload_bytes']\n", ["payload_bytes"]),
        ("x = of.payload_bytes\n", ["payload_bytes"]),
        ("def f(payload_bytes): pass\n", ["payload_bytes"]),
        ("f(gso=1)\n", ["gso"]),
        ("x = 'flow'\n", ["flow"]),
        ("flow = command = 1  # ordinary words as names\n", []),
        ('"""payload_bytes"""\ndef f():\n    """gso"""\n', []),
        ("x = 'the payload_bytes of a cell'\n", []),
    ],
)
def test_identifiers_and_strings_of_python_are_found(
    script: ModuleType, tmp_path: Path, code: str, found: list[str]
) -> None:
    file = tmp_path / "x.py"
    file.write_text(code)
    assert [name for _, name in script.in_python(file, script.names())] == found


def test_those_of_r_are_found_and_its_comments_are_not(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "x.R"
    file.write_text('f <- function(gso) x$payload_bytes["transport"]  # pacing\n')
    assert [name for _, name in script.in_r(file, script.names())] == ["gso", "payload_bytes", "transport"]
