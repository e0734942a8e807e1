# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yokogawa_bench import Bench

from netjoule_meters.emulated.power_analysers.wt210 import EmulatedWT210
from netjoule_meters.emulated.power_analysers.wt210_measurement import (
    OVERRANGE_BIT,
    PEAK_CURRENT_BIT,
    RANGE_RATIO,
    READING_RATIO,
    Errors,
    Ranges,
    Supply,
    measure,
)

RANGES = Ranges(300.0, 0.5, 3)


def bench_of(power_w: float = 22.95, **options) -> Bench:
    return Bench(EmulatedWT210, power_w, **options)


def test_before_the_first_update_there_is_no_data():
    assert bench_of().ask(":MEAS:VAL?") == "9.91E+37,9.91E+37,9.91E+37"


def test_voltage_current_power_of_the_fed_stream():
    bench = bench_of()
    bench.advance(3)
    assert bench.ask(":MEAS:VAL?") == "230.00E+00,99.78E-03,22.95E+00"


def test_wait_holds_the_dialogue_until_the_falling_edge_of_the_update():
    bench = bench_of()
    bench.advance(2)
    bench.ask(":STAT:EESR?")
    assert bench.ask(":COMM:WAIT 1") == ""
    assert bench.ask(":STAT:EESR?;:MEAS:VAL?") == ""
    assert bench.advance(1) == "1;230.00E+00,99.78E-03,22.95E+00"
    assert bench.ask(":STAT:EESR?") == "0"  # reading clears


def test_wait_passes_at_once_when_the_event_has_happened():
    bench = bench_of()
    bench.advance(3)
    assert bench.ask(":COMM:WAIT 1;*OPC?") == "1"


def test_without_a_filter_there_is_no_event():
    bench = bench_of()
    bench.ask(":STAT:FILT1 NEVER;:STAT:EESR?")
    bench.advance(4)
    assert bench.ask(":STAT:EESR?") == "0"


def test_overrange_and_its_bit():
    bench = bench_of(power_w=230 * 0.5 * 1.5)
    bench.ask(":STAT:FILT7 RISE")
    bench.advance(3)
    assert bench.ask(":MEAS:VAL?") == "230.00E+00,9.9E+37,9.9E+37"
    assert int(bench.ask(":STAT:COND?")) & OVERRANGE_BIT
    assert int(bench.ask(":STAT:EESR?")) & OVERRANGE_BIT


def test_a_cut_off_peak_shows_a_number_and_its_bit():
    bench = bench_of(power_w=100.0, supply=Supply(current_crest_factor=4.0))
    bench.ask(":STAT:FILT9 RISE")
    bench.advance(3)
    assert bench.ask(":MEAS:VAL?").endswith("100.00E+00")
    assert int(bench.ask(":STAT:EESR?")) == PEAK_CURRENT_BIT | 1


def test_a_stream_that_stops_gives_no_data_and_no_invented_value():
    bench = bench_of()
    bench.advance(3)
    bench.now_s += 0.25
    bench.instrument.step(bench.now_s)
    assert bench.ask(":MEAS:VAL?") == "9.91E+37,9.91E+37,9.91E+37"


def test_hold_keeps_the_display():
    bench = bench_of()
    bench.advance(3)
    bench.ask(":SAMP:HOLD ON")
    bench.power_w = 50.0
    bench.advance(3)
    assert bench.ask(":MEAS:VAL?").endswith("22.95E+00")
    bench.ask(":SAMP:HOLD OFF")
    bench.advance(2)
    assert bench.ask(":MEAS:VAL?").endswith("50.00E+00")


def test_items_come_in_fixed_order_and_time_as_three_fields():
    bench = bench_of()
    bench.ask(":MEAS:ITEM:PRES CLEAR;W ON;TIME ON;WH ON;VHZ ON;AHZ ON;DEGR ON")
    bench.ask(":INTEG:STAR")
    bench.advance(14)
    # DisplayedValues one period late: 13 updates of 0.1 s are integrated.
    assert bench.ask(":MEAS:VAL?") == "22.95E+00, 0.0E+00,50.000E+00,9.91E+37,8.28750E-03,0,0,1"


def test_integration_timer_stops_by_itself():
    bench = bench_of(power_w=36.0)
    bench.ask(":INTEG:TIM 0,0,1;STAR;:MEAS:ITEM:PRES CLE;WH ON;TIME ON")
    bench.advance(20)
    assert bench.ask(":MEAS:VAL?") == "10.0000E-03,0,0,1"


def test_autorange_takes_the_least_range_that_holds_the_value():
    bench = bench_of()
    bench.ask(":CONF:CURR:AUTO ON;:CONF:VOLT:AUTO ON")
    bench.advance(3)
    assert bench.ask(":CONF:VOLT:RANG?;:CONF:CURR:RANG?") == "300.0E+00;100.0E-03"


def test_rate_can_be_changed_and_keeps_the_energy():
    bench = bench_of()
    bench.advance(4)
    bench.ask(":SAMP:RATE 0.5;:STAT:EESR?")
    bench.advance(20)
    assert bench.ask(":SAMP:RATE?") == "500.0E-03"
    assert bench.ask(":MEAS:VAL?").endswith("22.95E+00")


@pytest.mark.parametrize("seed", range(30))
def test_each_seed_is_another_instrument_within_its_specification(seed):
    shown = measure(22.95, Supply(), RANGES, Errors.drawn(seed))
    limit_w = READING_RATIO * 22.95 + RANGE_RATIO * RANGES.power_w + 0.005
    assert shown.power_w is not None
    assert abs(shown.power_w - 22.95) <= limit_w
    assert Errors.drawn(seed) == Errors.drawn(seed)
    assert Errors.drawn(seed) != Errors.drawn(seed + 1)


def test_without_a_seed_only_the_display_rounds():
    assert measure(22.9549, Supply(), RANGES, Errors.drawn(None)).power_w == pytest.approx(22.95)


def test_power_factor_below_one_needs_more_current_and_lags():
    shown = measure(22.95, Supply(power_factor=0.5), RANGES, Errors())
    assert shown.texts["A"] == "199.57E-03"
    assert shown.texts["PF"] == "0.5000E+00" or shown.texts["PF"].startswith("0.5")
    assert shown.texts["DEGR"] == "-60.0E+00"
    assert shown.texts["VAR"] == "39.75E+00"


def test_too_small_a_current_has_no_power_factor():
    shown = measure(0.2, Supply(), RANGES, Errors())
    assert (shown.texts["VA"], shown.texts["PF"], shown.texts["DEGR"]) == ("0.00E+00", "9.9E+37", "9.9E+37")
    assert shown.power_w == pytest.approx(0.2)


@given(st.floats(0, 500, allow_nan=False), st.integers(0, 5))
def test_any_power_is_shown_as_numbers_or_overrange(power_w, seed):
    shown = measure(power_w, Supply(), RANGES, Errors.drawn(seed))
    over = power_w / 230 > 1.4 * 0.5
    assert (shown.power_w is None) == over == bool(shown.conditions & OVERRANGE_BIT)
    if shown.power_w is not None:
        assert math.isfinite(shown.power_w)
