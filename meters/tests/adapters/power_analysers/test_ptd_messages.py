# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.adapters.power_analysers.ptd_messages import (
    age_s,
    parse_identity,
    parse_ranges,
    parse_sample,
    parse_uncertainty,
    sample_count,
)
from netjoule_meters.errors import GarbageReply

SAMPLE = "Time,28-12-2020 15:21:14.682,Watts,22.950000,Volts,228.570000,Amps,0.206430,PF,0.486400,Mark,run1"


def sample_at(clock: str, watts: str = "10.0"):
    return parse_sample(f"Time,12-28-2020 {clock},Watts,{watts},Volts,230,Amps,0.1,PF,1")


def test_a_sample_as_logged_by_ptdaemon():
    sample = parse_sample(SAMPLE)
    assert (sample.power_w, sample.voltage_v, sample.current_a) == (22.95, 228.57, 0.20643)
    assert sample.time_of_day_s == pytest.approx(15 * 3600 + 21 * 60 + 14.682)
    assert sample.missing is None


def test_of_several_channels_the_sum_comes_first():
    line = "Time,01-02-2020 00:00:01.000,Watts,30.0,Volts,230,Amps,0.2,PF,1,Watts,10.0,Volts,230,Amps,0.1"
    assert parse_sample(line).power_w == 30.0


@pytest.mark.parametrize(
    ("watts", "words"),
    [("-1.000000", "error"), ("-2.000000", "missed"), ("nan", "nan"), ("NaN", "NaN"), ("-inf", "-inf")],
)
def test_no_number_stays_no_number(watts, words):
    sample = sample_at("10:00:00.000", watts)
    assert sample.power_w is None and words in sample.missing


def test_errors_of_volts_and_amps_are_no_numbers():
    sample = parse_sample("Time,1-1-2020 1:00:00.0,Watts,5,Volts,-1.000000,Amps,nan,PF,-1")
    assert (sample.power_w, sample.voltage_v, sample.current_a) == (5.0, None, None)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Last 1 samples",
        "Time,28-12-2020 15:21:14.682",
        "Time,yesterday,Watts,1.0",
        "Time,28-12-2020 15:21:14.682,Volts,230,Amps,1",
        "Time,28-12-2020 15:21:14.682,Watts,12.x,Volts,230",
        "Time,28-12-2020 15:21:14.682,Watts",
        SAMPLE[:40],
    ],
)
def test_what_is_no_sample_is_garbage(line):
    with pytest.raises(GarbageReply):
        parse_sample(line)


@given(st.text(max_size=200))
def test_any_text_is_a_sample_or_garbage(text):
    for parse in (parse_sample, parse_identity, parse_ranges, parse_uncertainty):
        try:
            parse(text)
        except GarbageReply:
            continue


def test_age_goes_over_midnight():
    before, after = sample_at("23:59:59.500"), sample_at("00:00:00.500")
    assert age_s(before, after) == pytest.approx(1.0)
    assert age_s(after, after) == 0.0


def test_head_of_a_list():
    assert sample_count("Last 12 samples") == 12
    assert sample_count("Last 1 sample") == 1
    assert sample_count("No unread samples available") is None


def test_identity():
    identity = parse_identity(
        "YokogawaWT310-na,1000,1,1,1,1,0,1,1,version=1.9.1-a2d19f26-20190717,OS=Linux,mode=power,1,1,1,0,0"
    )
    assert (identity.driver, identity.interval_s, identity.mode) == ("YokogawaWT310", 1.0, "power")
    assert identity.version == "1.9.1-a2d19f26-20190717" and identity.can_set_range
    fixed = parse_identity("Meter,1000,1,1,1,1,0,0,0,version=1.9.1,OS=x,mode=power,1,0,1")
    assert not fixed.can_set_range
    with pytest.raises(GarbageReply):
        parse_identity("YOKOGAWA,760401,0,F2.01")


def test_ranges_and_what_is_unknown_of_them():
    ranges = parse_ranges("Ranges,0,0.500000,1,300.000000")
    assert (ranges.current_auto, ranges.current_a, ranges.voltage_auto, ranges.voltage_v) == (
        False,
        0.5,
        True,
        300,
    )
    unknown = parse_ranges("Ranges,-1,-1.0,-1,-1.0")
    assert (unknown.current_auto, unknown.current_a) == (None, None)
    with pytest.raises(GarbageReply):
        parse_ranges("Ranges,0,0.5")


def test_uncertainty():
    found = parse_uncertainty("Uncertainty,0.012,0.008,0.02,100,7,90,3")
    assert (found.average_ratio, found.samples, found.over_limit, found.unknown) == (0.012, 100, 7, 3)
    assert parse_uncertainty("Error: none") is None
