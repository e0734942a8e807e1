# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.adapters.power_analysers.nr_values import (
    ITEM_ORDER,
    Gap,
    parse_value,
    parse_values,
)
from netjoule_meters.emulated.quantisation import nr3, quantised
from netjoule_meters.errors import GarbageReply


def test_manual_examples():
    assert parse_value("123.45E+00") == 123.45
    assert parse_value(" 0.0E+00") == 0.0
    assert parse_value("+180.0E+00") == 180.0
    assert parse_value("206.40E-03") == pytest.approx(0.2064)


def test_overrange_and_no_data_are_kept_apart():
    assert parse_value("9.9E+37") is Gap.OVERRANGE
    assert parse_value("9.91E+37") is Gap.NO_DATA
    assert parse_value("NAN") is Gap.NO_DATA
    assert parse_value("INF") is Gap.OVERRANGE


def test_three_items_in_fixed_order_whatever_the_order_asked():
    values = parse_values("230.12E+00,0.2064E+00,22.95E+00", ("W", "V", "A"))
    assert values == {"V": 230.12, "A": 0.2064, "W": 22.95}


def test_integration_time_takes_three_fields():
    values = parse_values("22.95E+00,1.2345E+00,999,59,59,325.4E+00", ("W", "WH", "TIME", "VPK"))
    assert values == {"W": 22.95, "WH": 1.2345, "TIME": 3_599_999.0, "VPK": 325.4}


@pytest.mark.parametrize(
    "reply",
    ["", "1,2", "1,2,3,4", "1,2,x", "1,2,1e", "1,,2", "1,2,0x10", "1,2,--3", "1,2,3 4", "1;2;3", "1,2,1_0"],
)
def test_what_is_not_a_value_list_is_garbage(reply):
    with pytest.raises(GarbageReply):
        parse_values(reply, ("V", "A", "W"))


@pytest.mark.parametrize("time", ["1,60,0", "1,0,60", "1,-1,0", "a,0,0", "1,0,0.5"])
def test_impossible_times_are_garbage(time):
    with pytest.raises(GarbageReply):
        parse_values(time, ("TIME",))


@given(st.text(max_size=60), st.sets(st.sampled_from(ITEM_ORDER)))
def test_any_text_gives_values_or_garbage(text, items):
    try:
        values = parse_values(text, tuple(items))
    except GarbageReply:
        return
    assert set(values) == items


@given(
    st.floats(-2, 2, allow_nan=False),
    st.sampled_from([15.0, 30.0, 60.0, 150.0, 300.0, 600.0, 0.075, 0.5, 1500.0, 12_000.0]),
)
def test_emulated_text_is_read_back_as_what_the_display_shows(part, range_value):
    value = part * range_value
    text = nr3(value, range_value)
    assert parse_value(text) == pytest.approx(quantised(value, range_value), abs=1e-9)
    digits = text.split("E", maxsplit=1)[0].lstrip("-").replace(".", "")
    assert len(digits.lstrip("0")) <= 5
