# SPDX-License-Identifier: Apache-2.0
"""results/reference/transfer: what was published on HTTP transfers, held to its contract and to itself."""

from __future__ import annotations

import copy
import json
import math
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import netjoule_contracts

FOLDER = Path(__file__).parents[3] / "results" / "reference" / "transfer"
FILES = sorted(FOLDER.glob("*.json"))
STEPS = {"KB": 2**10, "MB": 2**20, "GB": 2**30}
NUMBERS = ("is", "from_to", "up_to")


def document(name: str = "transfers-1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def values(name: str = "transfers-1") -> dict[str, dict[str, Any]]:
    return {value["value_id"]: value for value in document(name)["values"]}


def slips(name: str = "transfers-1") -> dict[str, dict[str, Any]]:
    return {slip["slip_id"]: slip for slip in document(name)["slips"]}


def digits_of(printed: str) -> Decimal:
    """One unit of the last digit of a printed number."""
    return Decimal(1).scaleb(-len(printed.partition(".")[2]))


def rounded(exact: Fraction, printed: str) -> Decimal:
    """A number in the digits of a printed one."""
    value = Decimal(exact.numerator) / Decimal(exact.denominator)
    return value.quantize(digits_of(printed), ROUND_HALF_UP)


def allowed(value: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """What a printed number was before it was rounded."""
    half = Fraction(digits_of(value["printed"])) / 2
    return Fraction(value["printed"]) - half, Fraction(value["printed"]) + half


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_file_fits_the_contract_and_is_named_as_it_says(path: Path) -> None:
    found = document(path.stem)
    assert netjoule_contracts.document_defects("reference_transfer", found) == []
    assert found["reference_id"] == path.stem
    for part, name in {"values": "value_id", "slips": "slip_id", "datasets": "dataset"}.items():
        ids = [entry[name] for entry in found[part]]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("part", "field", "wrong"),
    [
        ("values", "quantity", "joules"),
        ("values", "statement", 12),
        ("values", "phone", "iphone"),
        ("values", "source", {"kind": "table"}),
        ("datasets", "mean", "128 KiB"),
        ("phones", "memory_mb", 0.5),
        ("slips", "ratio", {"of": "a", "by": "b"}),
    ],
)
def test_the_contract_refuses_what_it_does_not_know(part: str, field: str, wrong: Any) -> None:
    spoilt = copy.deepcopy(document())
    spoilt[part][0][field] = wrong
    assert netjoule_contracts.document_defects("reference_transfer", spoilt)
    del spoilt[part][0][field]
    assert netjoule_contracts.document_defects("reference_transfer", spoilt)


def test_each_of_the_eleven_statements_has_its_values() -> None:
    told = [value["statement"] for name in ("transfers-1", "transfers-2") for value in values(name).values()]
    assert {statement for statement in told if statement} == set(range(1, 12))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_value_has_the_numbers_that_its_relation_wants_as_printed(path: Path) -> None:
    for name, value in values(path.stem).items():
        low, high, relation = value["low"], value["high"], value["relation"]
        assert (low is not None) == (relation in ("is", "from_to")), name
        assert (high is not None) == (relation in NUMBERS), name
        if relation == "is":
            assert low == high, name
        if relation == "from_to":
            assert low < high, name
        if value["precision"] == "exact" and relation == "is" and value["printed"] != "3 billion":
            assert Decimal(value["printed"]) == Decimal(str(low)), name
        assert relation in NUMBERS or value["precision"] == "approximate", name
        if relation in ("above", "below"):
            assert value["against"], name
        if value["from_level"] and value["to_level"]:
            assert value["from_level"] < value["to_level"], name


def test_table_1_and_the_servers_are_there() -> None:
    phones = {phone["phone"]: phone["memory_mb"] for phone in document()["phones"]}
    assert phones == {"nexus-s": 512, "galaxy-nexus-l700": 1024, "galaxy-s4": 2048, "galaxy-s5": 2048}
    servers = {server["path"]: server["rtt_ms"] for server in document()["setup"]["servers"]}
    assert servers == {"chameleon": 59, "frankfurt": 115, "sydney": 290}
    told = {value["phone"] for value in values().values()} - {None}
    assert told == set(phones)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_sizes_of_the_data_sets_are_those_printed(path: Path) -> None:
    for dataset in document(path.stem)["datasets"]:
        number, unit = dataset["mean"].split()
        assert dataset["mean_bytes"] == round(Fraction(number) * STEPS[unit])
        assert dataset["least_bytes"] <= dataset["mean_bytes"] <= dataset["greatest_bytes"]
        assert (dataset["files"] is None) == (dataset["total"] is None)


def test_a_total_follows_from_its_row_or_a_slip_names_it() -> None:
    named = {slip["printed"]: slip["corrected"] for slip in slips().values() if slip["unit"] == "MB"}
    wrong = {}
    for dataset in document()["datasets"]:
        number, unit = dataset["mean"].split()
        total_bytes = dataset["files"] * Fraction(number) * STEPS[unit]
        ways = {f"{math.floor(total_bytes / mb)} MB" for mb in (10**6, 2**20)}
        if dataset["total"] not in ways:
            wrong[dataset["total"]] = f"{round(total_bytes / 10**6)} MB"
    assert wrong == named == {"128 MB": "131 MB", "1124 MB": "1101 MB"}
    total_mb = sum(int(dataset["total"].split()[0]) for dataset in document()["datasets"])
    assert total_mb == 47528
    assert slips()["overall-total"]["corrected_value"] == round(total_mb / 1024, 1)


def test_a_gain_is_the_ratio_of_its_throughputs_or_a_slip_names_it() -> None:
    place = ("phone", "path", "access", "dataset", "factor")
    judged, wrong = set(), set()
    for name, gain in values().items():
        if gain["quantity"] != "throughput_gain_ratio":
            continue
        rates = [
            Fraction(value["printed"])
            for value in values().values()
            if value["quantity"] == "throughput_mbps"
            and value["relation"] == "is"
            and [value[field] for field in place] == [gain[field] for field in place]
        ]
        if rates:
            judged.add(name)
            if rounded(max(rates) / min(rates), gain["printed"]) != Decimal(gain["printed"]):
                wrong.add(name)
    assert len(judged) == 9
    assert wrong == {name for name, slip in slips().items() if slip["ratio"]}
    assert slips()["s5-html-gain"]["corrected"] == slips()["conclusion-gain"]["corrected"] == "16.15X"


def test_the_right_values_of_slips_follow() -> None:
    for slip in (*slips().values(), *slips("transfers-2").values()):
        right = slip["corrected_value"]
        assert (right is None) == (slip["unit"] is None)
        if right is not None:
            assert f"{right:g}" in slip["corrected"]
        if slip["factors"]:
            product = math.prod(Fraction(str(factor["value"])) for factor in slip["factors"])
            assert round(product / slip["divisor"]) == right
        if slip["ratio"]:
            of, by = (values()[slip["ratio"][end]] for end in ("of", "by"))
            assert float(rounded(Fraction(of["printed"]) / Fraction(by["printed"]), "0.00")) == right
            least = allowed(of)[0] / allowed(by)[1]
            greatest = allowed(of)[1] / allowed(by)[0]
            limits = (slip["ratio"]["least"], slip["ratio"]["greatest"])
            assert limits == (round(float(least), 2), round(float(greatest), 2))
            assert f"{limits[0]:.2f} to {limits[1]:.2f}" in slip["effect"]
    wget = Fraction(values("transfers-2")["wget-energy"]["printed"])
    assert slips("transfers-2")["saving-without-unit"]["corrected_value"] == round(100 * (1 - 1 / wget))
    assert slips()["nexus-image"]["corrected_value"] == values()["nexus-s-image-gain"]["low"]


def test_what_both_papers_tell_is_the_same_in_both() -> None:
    first, second = values(), values("transfers-2")
    assert first["combined-saving"]["high"] == second["combined-saving"]["high"] == 81
    assert second["greatest-gain"]["high"] == first["s5-image-gain"]["low"] == 8.5
    assert first["s5-html-saving"]["low"] == first["sydney-html-saving"]["low"] == 70
    assert first["s5-html-cc-16"]["low"] == first["sydney-html-best"]["low"] == 42


def test_what_is_said_of_the_world_follows_from_its_numbers() -> None:
    world = values("transfers-2")
    energy_wh = 1e12 * world["world-energy"]["low"]
    power_w = energy_wh / (24 * 365) / world["world-phones"]["low"]
    assert f"{power_w:.3f} W for each phone" in world["world-energy"]["note"]
    price = world["world-cost"]["low"] / (energy_wh / 1000)
    assert f"{price:.3f} USD/kWh" in world["world-cost"]["note"]
