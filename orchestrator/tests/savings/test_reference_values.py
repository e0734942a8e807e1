# SPDX-License-Identifier: Apache-2.0
"""results/reference: what was published, as data. R's tests hold the same files to the same contract."""

import copy
import csv
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from golden_sentences import raises

import netjoule_contracts as contracts
from netjoule.core.errors import InvalidData
from netjoule.savings import published

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "results" / "reference"
FILES = sorted(FOLDER.glob("*.json"))


def document(path=ROOT / published.FILE):
    return json.loads(path.read_text(encoding="utf-8"))


def values():
    return {value["value_id"]: value for value in document()["values"]}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_file_fits_the_contract_and_is_named_as_it_says(path):
    found = document(path)
    assert contracts.document_defects("reference", found) == []
    assert found["reference_id"] == path.stem
    for part, name in (("values", "value_id"), ("slips", "slip_id")):
        ids = [entry[name] for entry in found[part]]
        assert len(ids) == len(set(ids))


def test_there_is_the_one_that_savings_reads():
    assert ROOT / published.FILE in FILES


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("precision", "exactly"), ("quantity", "joules"), ("payload_bytes", 0), ("source", {"kind": "table"})],
)
def test_the_contract_refuses_what_it_does_not_know(field, wrong):
    spoilt = copy.deepcopy(document())
    spoilt["values"][0][field] = wrong
    assert contracts.document_defects("reference", spoilt)
    del spoilt["values"][0][field]
    assert contracts.document_defects("reference", spoilt)


def test_table_iv_is_there_digit_by_digit():
    found = values()
    printed = {
        application: [found[f"{application}-{name}"]["printed"] for name in ("udp-ea", "dccp-ea", "dea")]
        for application in ("skype", "youtube")
    }
    assert printed == {"skype": ["454", "334", "120"], "youtube": ["45", "33", "12"]}
    for value in found.values():
        if value["source"]["label"] == "Table IV":
            assert value["precision"] == "exact"
            assert Decimal(value["printed"]) == value["low"] == value["high"]


@pytest.mark.parametrize("application", ["skype", "youtube"])
def test_differences_are_those_of_the_values_they_are_taken_of(application):
    udp, dccp, dea = (values()[f"{application}-{name}"]["low"] for name in ("udp-ea", "dccp-ea", "dea"))
    assert dea == udp - dccp
    assert values()[f"{application}-dea-percent"]["low"] == math.floor(Fraction(100 * dea, udp))


def test_what_is_told_roughly_says_so():
    for value in values().values():
        rough = value["printed"].startswith("~") or value["relation"] in ("little", "mostly", "at_least")
        assert (value["precision"] == "approximate") == rough, value["value_id"]
        assert (value["source"]["kind"] == "text") == rough, value["value_id"]


def test_profiles_and_sweep_are_those_of_the_shipped_workloads():
    for application in ("skype", "youtube"):
        workload = yaml.safe_load((ROOT / f"workloads/flow/{application}.yaml").read_text())["factors"]
        cells = [value for value in values().values() if value["application"] == application]
        assert {value["payload_bytes"] for value in cells} == set(workload["payload_bytes"])
        assert {value["offered_rate_mbps"] for value in cells} == set(workload["offered_rate_mbps"])


def test_the_slips_are_named_and_their_right_values_follow():
    slips = {slip["slip_id"]: slip for slip in document()["slips"]}
    assert set(slips) == {"rate-table", "combinations", "application-time", "conclusion", "leap-year"}
    for slip in slips.values():
        if slip["factors"]:
            product = math.prod(factor["value"] for factor in slip["factors"])
            assert round(product / slip["divisor"], 2) == slip["corrected_value"]
        assert f"{slip['corrected_value']:g}" in slip["corrected"]
    sweep = yaml.safe_load((ROOT / "workloads/flow/table-i.yaml").read_text())
    rates = sweep["factors"]["offered_rate_mbps"]
    assert slips["rate-table"]["corrected_value"] == len(set(rates)) == len(rates)
    runs = len(rates) * len(sweep["factors"]["payload_bytes"]) * sweep["blocks"]
    assert slips["combinations"]["corrected_value"] == runs == 1920
    assert slips["conclusion"]["corrected_value"] == values()["skype-dea-percent"]["low"]


def test_no_step_of_the_chain_is_said_to_be_cut_off_where_rounding_gives_it():
    for unit, judgement in published.read().judgements():
        step = next(s for s in document()["savings"]["steps"] if s["unit"] == unit)
        assert (step["cut"] == "truncated") == (judgement.rounded != judgement.printed)


def test_the_table_that_r_wrote_of_a_kept_campaign_fits_its_contract():
    table = ROOT / "results/golden/guest-hwsim/tables/side_by_side.csv"
    assert list(contracts.table_defects("side_by_side", table)) == []
    with table.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["value_id"] for row in rows} == set(values())
    assert all(bool(row["ours_low"]) != bool(row["reason"]) for row in rows)


def test_a_spoilt_file_is_refused_with_the_place(tmp_path, monkeypatch):
    spoilt = document()
    spoilt["savings"]["minutes"] = "many"
    place = tmp_path / Path(published.FILE).name
    place.write_text(json.dumps(spoilt))
    monkeypatch.setattr(published.programs, "shipped", lambda _: place)
    with raises(InvalidData):
        published.read()
