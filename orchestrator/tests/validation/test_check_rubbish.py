# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a campaign's files, check names defects and does not fall over."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netjoule.validation.check import check_campaign

RUBBISH = [None, True, -1, 3.5, 2**70, "", "x", [], [1], [[]], {}, {"a": 1}, [{}], [None]]


def places(value, path=()):
    """Paths of all parts of a JSON document."""
    yield path
    children = value.items() if isinstance(value, dict) else ()
    children = enumerate(value) if isinstance(value, list) else children
    for key, child in list(children)[:20]:
        yield from places(child, (*path, key))


def draw_place(chance, document):
    """A part of a document, every depth as likely as another."""
    found = list(places(document))
    depth = chance.choice(sorted({len(p) for p in found}))
    return chance.choice([p for p in found if len(p) == depth])


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), new=st.sampled_from(RUBBISH))
def test_any_part_of_any_document_may_be_anything(golden: Path, seed, new):
    chance = random.Random(seed)
    path = chance.choice(sorted(golden.rglob("*.json")))
    text = path.read_text()
    document = json.loads(text)
    place = draw_place(chance, document)
    try:
        path.write_text(json.dumps(replaced(document, place, new)))
        assert all(str(d) for d in check_campaign(golden))
    finally:
        path.write_text(text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rubbish=st.binary(max_size=30))
def test_any_bytes_may_stand_anywhere_in_a_table(golden: Path, seed, rubbish):
    chance = random.Random(seed)
    path = chance.choice(sorted([*golden.rglob("*.csv"), *golden.rglob("*.ndjson")]))
    whole = path.read_bytes()
    start = chance.randrange(len(whole))
    try:
        path.write_bytes(whole[:start] + rubbish + whole[chance.randrange(start, len(whole)) :])
        assert all(str(d) for d in check_campaign(golden))
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["campaign.json", "datapackage.json", "plan.csv"])
def test_deeply_nested_json_does_not_exhaust_the_stack(campaign_dir, name):
    (campaign_dir / name).write_text("[" * 100_000)
    assert list(check_campaign(campaign_dir))
