# SPDX-License-Identifier: Apache-2.0
"""The vectors of schedules are what the second implementation gives; their profiles fit their contract."""

from __future__ import annotations

import importlib.util
import itertools
import json
from pathlib import Path
from types import ModuleType

import pytest

import netjoule_contracts


def _reference() -> ModuleType:
    """Tests are imported by path, so the module beside this one is, too."""
    path = Path(__file__).with_name("schedule_reference.py")
    spec = importlib.util.spec_from_file_location("schedule_reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _reference()


@pytest.mark.parametrize("name", list(reference.DOCUMENTS))
def test_the_vectors_are_what_the_reference_gives(name: str) -> None:
    written = json.loads((reference.VECTORS / name).read_text(encoding="utf-8"))
    assert written == reference.DOCUMENTS[name]()


def test_the_generators_are_the_published_ones() -> None:
    first = list(itertools.islice(reference.splitmix64(1234567), 3))
    assert first == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    first = list(itertools.islice(reference.xoshiro256plusplus([1, 2, 3, 4]), 3))
    assert first == [41943041, 58720359, 3588806011781223]
    assert reference.fnv1a64(b"foobar") == 0x85944171F73967E8


def test_every_profile_of_the_vectors_fits_the_contract() -> None:
    cases = json.loads((reference.VECTORS / "schedules.json").read_text(encoding="utf-8"))["cases"]
    for case in cases:
        netjoule_contracts.validate("profile", case["profile"])
