# SPDX-License-Identifier: Apache-2.0
"""The quick answer to whether a document fits its contract never says yes where the thorough one says no."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

import netjoule_contracts
from netjoule_contracts.lift.results import lifted_result
from netjoule_contracts.lift.runs import documents_of, lifted_run

ROOT = netjoule_contracts.root()
SCHEMAS = sorted(path.name.removesuffix(".schema.json") for path in (ROOT / "schemas").glob("*.schema.json"))
GOLDEN = ROOT.parents[1] / "results/golden/guest-hwsim"
ODD = [
    None,
    True,
    0,
    -1,
    1.0,
    0.5,
    1e300,
    float("inf"),
    float("nan"),
    10**30,
    "",
    "x\n",
    "2026-11-24",
    [],
    [0],
    {},
]
NO_JSON = [(), b"", dt.date(2026, 11, 24), Path()]


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each key of it."""
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from places(node[key])


def golden(name: str) -> Any:
    """A document of a shipped campaign of version 1, or what it is lifted to."""
    path = next(GOLDEN.rglob(f"{name.removesuffix('_1')}.json"))
    document = json.loads(path.read_text(encoding="utf-8"))
    if name == "run":
        reports = [json.loads((path.parent / one).read_text()) for one in documents_of(document)]
        return lifted_run(document, reports, [])
    return lifted_result(document) if name == "result" else document


@pytest.mark.parametrize("name", ["campaign", "run", "run_1", "result", "result_1"])
@settings(deadline=None)
@given(data=strategies.data())
def test_it_is_yes_only_of_what_fits(name: str, data: strategies.DataObject) -> None:
    document = golden(name)
    surely_fits = netjoule_contracts._surely_fits(name)
    assert surely_fits(document)
    container, key = data.draw(strategies.sampled_from(list(places(document))))
    container[key] = data.draw(strategies.sampled_from([*ODD, *NO_JSON]))
    if surely_fits(document):
        assert list(netjoule_contracts.validator(name).iter_errors(document)) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_there_is_one_of_every_schema(name: str) -> None:
    assert not netjoule_contracts._surely_fits(name)([])


CELLS = [
    "",
    "0",
    "-1",
    "1",
    "1.5",
    "1e400",
    "-1e400",
    "nan",
    "inf",
    "1" * 101,
    "1_0",
    " 1",
    "x",
    "true",
    "udp",
    "receiver",
]
TABLES = sorted(path.name.partition(".")[0] for path in (netjoule_contracts.root() / "tables").glob("*.json"))


@pytest.mark.parametrize("name", TABLES)
def test_a_cell_is_said_to_fit_only_where_nothing_is_wrong_with_it(name: str) -> None:
    for field in netjoule_contracts.table(name)["fields"]:
        quick_fit = netjoule_contracts._quick_fit(field)
        for cell in [*CELLS, *field.get("constraints", {}).get("enum", [])]:
            if quick_fit(cell):
                assert netjoule_contracts._cell_problem(cell, field) is None, (field, cell)


def test_most_cells_that_fit_are_said_to() -> None:
    fits = {
        f["name"]: netjoule_contracts._quick_fit(f) for f in netjoule_contracts.table("intervals_1")["fields"]
    }
    assert fits["end"]("receiver")
    assert fits["t_start_s"]("12.5")
    assert fits["messages"]("7")
    assert fits["messages_lost"]("")
