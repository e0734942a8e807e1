# SPDX-License-Identifier: Apache-2.0
"""The emulated WT310, and what it shares with the WT210: holes when a range changes, the integrator."""

from __future__ import annotations

import pytest
from golden_sentences import raises
from yokogawa_bench import Bench

from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_analysers.wt210 import EmulatedWT210
from netjoule_meters.emulated.power_analysers.wt210_measurement import INTEGRATOR_RATIO
from netjoule_meters.emulated.power_analysers.wt310 import EmulatedWT310
from netjoule_meters.emulated.power_analysers.yokogawa import Extra
from netjoule_meters.emulated.registry import EmulationOptions, client_resource, make_instrument
from netjoule_meters.emulated.scpi import DEVICE_CLEAR
from netjoule_meters.errors import UsageError


def bench_of(power_w: float = 22.95, kind=EmulatedWT310, **options) -> Bench:
    return Bench(kind, power_w, **options)


def test_values_are_words_before_the_first_update_and_numbers_after():
    bench = bench_of()
    assert bench.ask(":NUM:NORM:VAL?") == "NAN,NAN,NAN,300.0E+00,500.0E-03"
    bench.advance(3)
    assert bench.ask(":NUM:NORM:VAL?") == "230.00E+00,99.78E-03,22.95E+00,300.0E+00,500.0E-03"


def test_one_item_by_its_number_and_a_wrong_number():
    bench = bench_of()
    bench.advance(3)
    assert bench.ask(":NUM:NORM:VAL? 3") == "22.95E+00"
    assert bench.ask(":NUMERIC:NORMAL:VALUE? 6") == ""
    assert bench.ask(":STAT:ERR?") == '222,"Data out of range"'


def test_over_range_is_inf_and_has_its_bit():
    bench = bench_of(power_w=230 * 0.5 * 1.5)
    bench.advance(3)
    assert bench.ask(":NUM:NORM:VAL?").startswith("230.00E+00,INF,INF,")
    assert int(bench.ask(":STAT:COND?")) & 1 << 6


def test_wait_holds_the_dialogue_until_the_update():
    bench = bench_of()
    bench.advance(2)
    bench.ask(":STAT:EESR?")
    assert bench.ask(":COMM:WAIT 1") == bench.ask(":STAT:EESR?") == ""
    assert bench.advance() == "1"


def test_a_device_clear_ends_a_wait_and_forgets_the_question():
    bench = bench_of()
    bench.advance(3)
    bench.ask(":STAT:EESR?")
    assert bench.ask(":COMM:WAIT 1;:STAT:EESR?") == ""
    bench.instrument.receive(DEVICE_CLEAR + b"*IDN?\n")
    assert bench.instrument.step(bench.now_s) == b"YOKOGAWA,WT310,EMULATED,F1.03\r\n"
    assert bench.advance(2) == ""


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (":RATE 10", "222"),
        (":NUM:FORM FLOAT", "221"),
        (":SYST:COMM:COMM WT200", "221"),
        (":SYST:COMM:COMM WT9", "141"),
        (":INP:SCAL:STAT ON", "221"),
        (":MEAS:AVER:STAT ON", "221"),
        (":NUM:NORM:ITEM1 U,2", "222"),
        (":NUM:NORM:ITEM0 U,1", "114"),
        (":NUM:NORM:NUM 0", "222"),
        (":CONF:MODE RMS", "113"),
    ],
)
def test_what_it_does_not_have_is_refused(command, error):
    bench = bench_of()
    bench.ask(command)
    assert bench.ask(":STAT:ERR?").startswith(error)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("*IDN?", "YOKOGAWA,WT310,EMULATED,F1.03"),
        (":SYST:COMM:COMM?", "WT300"),
        (":RATE?;:SAMP:RATE?", "100.0E-03;100.0E-03"),
        (":INP:MODE?;CFAC?;VOLT:AUTO?", "RMS;3;0"),
        (":NUM:FORM?", "ASCII"),
        (":NUM:NORM:NUM?;ITEM3?", "5;P,1"),
        (":NUM:NORM:ITEM9?", "NONE,1"),
        (":INTEG:STAT?", "RESET"),
    ],
)
def test_queries(query, answer):
    assert bench_of().ask(query) == answer


def test_the_e_model_is_slower_too_and_names_itself():
    bench = bench_of(model="WT310E")
    bench.ask(":RATE 20")
    assert bench.ask("*IDN?;:RATE?") == "YOKOGAWA,WT310E,EMULATED,F1.03;20.00E+00"


def test_integrator_counts_watt_hours_and_seconds_and_has_a_state():
    bench = bench_of(power_w=36.0)
    bench.ask(":NUM:NORM:NUM 7;:INTEG:TIM 0,0,2;STAR")
    bench.advance(12)
    assert bench.ask(":INTEG:STAT?") == "START"
    # DisplayedValues one period late: 11 updates of 0.1 s at 36 W are 11 mWh.
    assert bench.ask(":NUM:NORM:VAL?").split(",")[5:] == ["11.0000E-03", "1"]
    bench.ask(":INP:VOLT:RANG 150")
    assert bench.ask(":STAT:ERR?").startswith("813")
    bench.advance(20)
    assert bench.ask(":INTEG:STAT?") == "TIMEUP"
    bench.ask(":INTEG:RES")
    assert bench.ask(":INTEG:STAT?;:NUM:NORM:VAL? 7") == "RESET;NAN"


def test_the_integrator_has_an_error_of_its_own():
    ratios = []
    for seed in range(20):
        bench = bench_of(power_w=36.0, seed=seed)
        bench.ask(":NUM:NORM:NUM 7;:INTEG:STAR")
        bench.advance(101)
        shown_w, energy_wh = (float(bench.ask(f":NUM:NORM:VAL? {number}")) for number in (3, 6))
        ratios.append(energy_wh * 3600 / (shown_w * 10.0) - 1)
    assert all(abs(ratio) <= INTEGRATOR_RATIO + 1e-5 for ratio in ratios)
    assert max(ratios) > 1e-4 and min(ratios) < -1e-4


def test_answers_leave_at_the_rate_of_a_serial_line():
    bench = bench_of(extra=Extra(baud_rate=9600))
    bench.now_s = 1.0
    bench.instrument.receive(b"*IDN?\n")
    assert bench.instrument.step(1.0) == b""
    assert bench.instrument.wake_s(1.0) == pytest.approx(1.0 + 10 / 9600)
    assert bench.instrument.step(1.0 + 5 * 10 / 9600) == b"YOKOG"
    assert bench.instrument.step(2.0) == b"AWA,WT310,EMULATED,F1.03\r\n"
    assert bench.instrument.wake_s(2.0) is None


# -- ranges that change ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EmulatedWT210, EmulatedWT310])
@pytest.mark.parametrize("updates", [0, 1, 3])
def test_autorange_shows_nothing_for_so_many_updates(kind, updates):
    bench = bench_of(46.0, kind, extra=Extra(range_change_updates=updates))
    prefix, value = (":INP", ":NUM:NORM:VAL? 3") if kind is EmulatedWT310 else (":CONF", ":MEAS:VAL?")
    bench.advance(3)
    bench.ask(f"{prefix}:CURR:AUTO ON")
    bench.power_w = 230.0  # 1 A on the 0.5 A range
    shown = []
    for _ in range(8):
        bench.advance()
        shown.append(bench.ask(value).split(",")[-1])
    empty = [text in ("NAN", "9.91E+37") for text in shown]
    assert sum(empty) == updates
    assert shown[-1] == "230.00E+00"
    assert bench.ask(f"{prefix}:CURR:RANG?") == "1.000E+00"


def test_the_update_with_the_old_range_is_not_shown_as_a_number_of_the_new_one():
    bench = bench_of(46.0)
    bench.advance(3)
    bench.ask(":INP:CURR:AUTO ON")
    bench.power_w = 2.3
    seen = set()
    for _ in range(6):
        bench.advance()
        seen.add(bench.ask(":NUM:NORM:VAL? 3"))
    assert seen == {"46.00E+00", "NAN", "2.3000E+00"}


def test_when_a_range_changes_the_e_model_fills_its_count_in_and_marks_the_range():
    bench = bench_of(46.0, model="WT310E")
    bench.advance(3)
    bench.ask(":INP:CURR:AUTO ON;:NUM:NORM:NUM 7;:INTEG:STAR")
    bench.advance(10)
    bench.power_w = 230.0
    rows = []
    for _ in range(10):
        bench.advance()
        rows.append(bench.ask(":NUM:NORM:VAL?").split(","))
    powers = [row[2] for row in rows]
    assert powers == ["46.00E+00"] + ["NAN"] * 3 + ["230.00E+00"] * 6
    assert [row[4] for row in rows] == ["500.0E-03"] + ["1.000E+00-"] * 9
    # 11 updates at 46 W, then 9 at 230 W of which three were filled in
    assert float(rows[-1][5]) * 3600 == pytest.approx(0.1 * (11 * 46 + 9 * 230), rel=1e-4)
    bench.ask(":INTEG:STOP;RES")
    bench.advance()
    assert not bench.ask(":NUM:NORM:VAL? 5").endswith("-")


@pytest.mark.parametrize(("power_w", "updates"), [(230.0, 3), (2.3, 2)])
def test_a_range_change_takes_longer_on_the_way_up(power_w, updates):
    bench = bench_of(46.0)
    bench.advance(3)
    bench.ask(":INP:CURR:AUTO ON")
    bench.power_w = power_w
    shown = []
    for _ in range(8):
        bench.advance()
        shown.append(bench.ask(":NUM:NORM:VAL? 3"))
    assert shown.count("NAN") == updates


def test_a_cut_off_peak_raises_the_range_too():
    bench = bench_of(69.0, supply=Supply(current_crest_factor=8.0))
    bench.advance(3)
    assert bench.ask(":INP:CURR:RANG?") == "500.0E-03"
    bench.ask(":INP:CURR:AUTO ON")
    bench.advance(6)
    assert bench.ask(":INP:CURR:RANG?") == "1.000E+00"


@pytest.mark.parametrize("kind", [EmulatedWT210, EmulatedWT310])
def test_a_range_change_on_request(kind):
    bench = bench_of(kind=kind)
    bench.advance(3)
    assert bench.instrument.take_fault("range_change", {"updates": 2}, bench.now_s)
    assert not bench.instrument.take_fault("overflow", {}, bench.now_s)
    value = ":NUM:NORM:VAL? 3" if kind is EmulatedWT310 else ":MEAS:VAL?"
    shown = []
    for _ in range(4):
        bench.advance()
        shown.append(bench.ask(value).split(",")[-1] in ("NAN", "9.91E+37"))
    assert shown == [True, True, False, False]
    with raises(UsageError):
        bench.instrument.take_fault("range_change", {"updates": 0}, bench.now_s)


# -- instruments and options ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("model", "range_ratio"), [("WT310", 0.001), ("WT310E", 0.0005)])
def test_each_seed_is_another_instrument_within_its_specification(model, range_ratio, seed):
    bench = bench_of(model=model, seed=seed)
    bench.advance(3)
    shown_w = float(bench.ask(":NUM:NORM:VAL? 3"))
    assert abs(shown_w - 22.95) <= 0.001 * 22.95 + range_ratio * 150 + 0.005


def test_a_low_power_factor_shrinks_the_range_part_of_the_error():
    supply = Supply(power_factor=0.5)
    shown = []
    for seed in range(40):
        bench = bench_of(seed=seed, supply=supply)
        bench.advance(3)
        shown.append(abs(float(bench.ask(":NUM:NORM:VAL? 3")) - 22.95))
    assert max(shown) <= (0.001 + 0.002 * 3**0.5) * 22.95 + 0.0005 * 150 + 0.005


@pytest.mark.parametrize(
    "options",
    [
        EmulationOptions(update_interval_s=0.3),
        EmulationOptions(update_interval_s=10.0),
        EmulationOptions(variant="wt333"),
        EmulationOptions(extra={"colour": 1}),
        EmulationOptions(extra={"range_change_updates": 1.5}),
        EmulationOptions(extra={"baud_rate": 300}),
    ],
)
def test_options_that_the_instrument_does_not_have(options):
    with raises(UsageError):
        make_instrument("wt310", options)
    assert make_instrument("wt310", EmulationOptions(update_interval_s=10.0, variant="wt310e"))


def test_what_a_client_configures():
    assert client_resource("{port}", "pty", "/tmp/wt") == "/tmp/wt"
    assert client_resource("{port}", "tcp", "127.0.0.1:5") == "tcp:127.0.0.1:5"
    assert client_resource("{port}", "vxi11", "127.0.0.1:5") == "vxi11:127.0.0.1:5"
    assert client_resource("prologix:{port}:5", "tcp", "127.0.0.1:5") == "prologix:127.0.0.1:5:5"
