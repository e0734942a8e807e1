# SPDX-License-Identifier: Apache-2.0
"""Both forms of the HM8115-2's lines, and what is none of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.adapters.power_analysers.hm8115_messages import (
    Measurement,
    Status,
    Value,
    digit_w,
    parse_measurement,
    parse_status,
)
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_analysers.hm8115_measurement import (
    Errors,
    MeasurementSetup,
    line,
    measure,
)
from netjoule_meters.errors import GarbageReply


def numbers(text: str) -> tuple[object, ...]:
    found = parse_measurement(text)
    values = (found.voltage, found.current, found.value)
    return (
        found.voltage_range,
        found.current_range,
        found.function,
        *(value and value.number for value in values),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("U3=238.5E+0 I1=0.3E-3 W=0.02E+0", (3, 1, "W", 238.5, 0.0003, 0.02)),
        ("U3 I1 W=200.0E+0", (3, 1, "W", None, None, 200.0)),
        # Examples as the HM8115-2 manual prints them: blanks, commas, a decimal comma.
        ("U3= 225.6E+0 I2= 0.243E+0 VAR= 23,3E+0", (3, 2, "VAR", 225.6, 0.243, 23.3)),
        ("U3, I2, PF= 0.87E+0", (3, 2, "PF", None, None, 0.87)),
        ("U1=0.01E+0 I1=0.0E-3   W=-0.000E+0", (1, 1, "W", 0.01, 0.0, 0.0)),
        ("u2=149.9E+0 i3=15.99E+0 w=2398E+0", (2, 3, "W", 149.9, 15.99, 2398.0)),
    ],
)
def test_both_forms(text, expected):
    assert numbers(text) == expected
    assert not parse_measurement(text).overrange


@pytest.mark.parametrize("word", ["OF", "of", "overflow"])
def test_over_range_is_said_in_words(word):
    found = parse_measurement(f"U3=230.0E+0 I2={word} W={word}")
    assert found == Measurement(3, 2, "W", Value(None), Value(230.0), Value(None))
    assert found.overrange
    assert parse_measurement(f"U3 I2 PF={word}").overrange


@pytest.mark.parametrize(
    "text",
    [
        "",
        "HAMEG HM8115-2",
        "WATT U3 I2",
        "U3=238.5E+0 I1=0.3E-3 W=0.02E",  # cut off
        "U3=238.5E+0 I1=0.3E-3 W=0.02",
        "U3=238.5E+0 I1=0.3E-3 W=",
        "U3=238.5E+0 I1=0.3E-3",
        "3=238.5E+0 I1=0.3E-3 W=0.02E+0",
        "U3=238.5E+0 W=0.02E+0",
        "U3=238.5E+0 I1=0.3E-3 W=0.02E+0 W=0.02E+0",
        "U3=238.5E+0I1=0.3E-3 W=0.02E+0",  # a lost blank
        "U4=238.5E+0 I1=0.3E-3 W=0.02E+0",
        "U3=238.5E+0 Ix=0.3E-3 W=0.02E+0",
        "U3=nan I1=0.3E-3 W=0.02E+0",
        "230.12E+00,0.2064E+00,22.95E+00",
    ],
)
def test_anything_else_is_no_reading(text):
    with pytest.raises(GarbageReply):
        parse_measurement(text)


@given(st.integers(0, 34), st.sampled_from("EU=I+0.x "))
def test_a_damaged_line_is_refused_or_still_holds_a_number_for_each_field(place, byte):
    text = "U3=229.6E+0 I2=0.101E+0 W=22.1E+0"
    try:
        found = parse_measurement(text[:place] + byte + text[place + 1 :])
    except GarbageReply:
        return
    assert found.function in ("W", "VAR", "VA", "PF") and not found.overrange


@pytest.mark.parametrize("text", ["WATT U3 I2", "watt; U3, I2", " WATT  U3 I2 "])
def test_status(text):
    assert parse_status(text) == Status("WATT", 3, 2)


@pytest.mark.parametrize("text", ["", "WATT", "U3 I2 W=1.0E+0", "WATT U4 I2"])
def test_what_is_no_status(text):
    with pytest.raises(GarbageReply):
        parse_status(text)


@pytest.mark.parametrize(
    ("voltage_range", "current_range", "weight_w"),
    [
        (1, 1, 0.001),  # 8 W
        (2, 1, 0.01),  # 24 W
        (3, 1, 0.01),  # 80 W
        (1, 2, 0.01),  # 80 W
        (2, 2, 0.1),  # 240 W
        (3, 2, 0.1),  # 800 W
        (1, 3, 0.1),  # 800 W
        (2, 3, 1.0),  # 2400 W
        (3, 3, 1.0),  # 8000 W
    ],
)
def test_weight_of_a_digit(voltage_range, current_range, weight_w):
    assert digit_w(voltage_range, current_range) == weight_w


@given(
    st.floats(0, 700),
    st.sampled_from(["WATT", "VAR", "VA", "PF"]),
    st.integers(1, 3),
    st.booleans(),
    st.none() | st.integers(0, 9),
)
def test_every_line_of_the_emulated_instrument_is_read(power_w, function, current_range, with_values, seed):
    how = MeasurementSetup(3, current_range, function)
    shown = measure(power_w, Supply(), how, Errors.drawn(seed))
    found = parse_measurement(line(shown, how, with_values=with_values))
    assert (found.voltage_range, found.current_range) == (3, current_range)
    assert (found.voltage is not None) == with_values
    if function == "WATT":
        assert found.value.number == pytest.approx(shown.power_w) or shown.power_w is None
        assert found.overrange == (shown.power_w is None)


@given(st.text(st.sampled_from("UIWVARPF123=.,;E+-0 x")) | st.text())
def test_any_text_is_a_line_or_refused(text):
    for parse in (parse_measurement, parse_status):
        try:
            parse(text)
        except GarbageReply as error:
            assert str(error)
