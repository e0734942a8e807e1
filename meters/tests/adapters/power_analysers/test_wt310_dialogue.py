# SPDX-License-Identifier: Apache-2.0
"""The WT310 adapter's every byte, pinned; over a bus there is no remote command."""

from __future__ import annotations

import contextlib

import pytest
from golden_sentences import raises
from meter_dialogue import SILENCE, expected_dialogue

from netjoule_meters.adapters.power_analysers.wt310 import WT310
from netjoule_meters.errors import (
    NoAnswer,
    ReplyTimeout,
    SettingRefused,
    UsageError,
    WrongInstrument,
    WrongMode,
)
from netjoule_meters.reading import Flag

SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.5}
BEGIN_BUS = [(b"", None), (b"*CLS", None), (b":STAT:QMES ON", None), (b":COMM:HEAD OFF", None)]
BEGIN_SERIAL = [*BEGIN_BUS[:3], (b":COMM:REM ON", None), BEGIN_BUS[3]]
IDENTIFY = [(b"*IDN?", b"YOKOGAWA,WT310,C2PH13047V,F1.03")]
NO_ERROR = (b":STAT:ERR?", b'0,"No error"')
SET = (
    b":SYST:COMM:COMM WT300",
    b":HOLD OFF",
    b":RATE 0.1",
    b":INP:CFAC 3",
    b":INP:MODE RMS",
    b":INP:VOLT:AUTO OFF",
    b":INP:VOLT:RANG 300",
    b":INP:CURR:AUTO OFF",
    b":INP:CURR:RANG 0.5",
    b":INP:FILT:LINE 0",
    b":INP:FILT:FREQ 1",
    b":INP:SCAL:STAT OFF",
    b":MEAS:AVER:STAT OFF",
    b":NUM:FORM ASCII",
    b":NUM:NORM:ITEM1 U,1",
    b":NUM:NORM:ITEM2 I,1",
    b":NUM:NORM:ITEM3 P,1",
    b":NUM:NORM:ITEM4 URANGE,1",
    b":NUM:NORM:ITEM5 IRANGE,1",
    b":NUM:NORM:ITEM6 WH,1",
    b":NUM:NORM:ITEM7 TIME,1",
    b":NUM:NORM:NUM 5",
    b":STAT:FILT1 FALL",
    b":STAT:FILT7 RISE",
    b":STAT:FILT8 RISE",
    b":STAT:FILT9 RISE",
)


def accepted(*commands):
    return [entry for command in commands for entry in ((command, None), NO_ERROR)]


READ_BACK = [
    (b":RATE?", b"100.0E-03"),
    (b":INP:CFAC?", b"3"),
    (b":INP:VOLT:RANG?", b"300.0E+00"),
    (b":INP:CURR:RANG?", b"500.0E-03"),
    (b":INP:FILT:LINE?", b"0"),
]
OPEN = [*BEGIN_SERIAL, *IDENTIFY, *accepted(*SET), *READ_BACK]
VALUES = b":NUM:NORM:VAL?;:STAT:EESR?"
FIRST = [(b":STAT:COND?", b"0")]
GOOD = b"230.12E+00,0.2064E+00,22.95E+00"
RANGES = b",300.0E+00,500.0E-03"


def update(values, events=b"1", later=b"0"):
    return [(b":COMM:WAIT 1", None), (b":STAT:EESR?", events), (VALUES, values + b";" + later)]


@contextlib.contextmanager
def opened(clock, entries, settings=SETTINGS, told=None):
    with expected_dialogue([*OPEN, *entries]) as dialogue:
        meter = WT310(dialogue, settings, clock=clock, notify=None if told is None else told.append)
        meter.open()
        yield meter


def test_open_identifies_sets_up_and_reads_back(clock):
    with opened(clock, []) as meter:
        assert meter.identification.model == "WT310"
        assert (meter.identification.serial, meter.identification.firmware) == ("C2PH13047V", "F1.03")


@pytest.mark.parametrize(
    "resource", ["usbtmc:/dev/usbtmc0", "vxi11:wt", "visa:GPIB0::1::INSTR", "prologix:x:1:5"]
)
def test_a_bus_has_a_line_for_remote_control(clock, resource):
    entries = [*BEGIN_BUS, *IDENTIFY, *accepted(*SET), *READ_BACK]
    with expected_dialogue(entries) as dialogue:
        dialogue.resource = resource
        WT310(dialogue, SETTINGS, clock=clock).open()


def test_one_update_is_one_reading(clock):
    with opened(clock, [*update(GOOD + RANGES), *FIRST, *update(GOOD + RANGES)]) as meter:
        for _ in range(2):
            reading = meter.read()
            assert (reading.power_w, reading.voltage_v, reading.current_a) == (22.95, 230.12, 0.2064)
            assert (reading.flag, reading.energy_j) == (Flag.GOOD, None)


@pytest.mark.parametrize(
    ("values", "flag", "power_w"),
    [
        (b"NAN,NAN,NAN" + RANGES, Flag.NO_DATA, None),
        (b"nan,nan,nan" + RANGES, Flag.NO_DATA, None),
        (b"230.12E+00,INF,INF" + RANGES, Flag.OVERRANGE, None),
        (b"230.12E+00,-INF,INF" + RANGES, Flag.OVERRANGE, None),
        (b"230.12E+00,9.9E+37,9.9E+37" + RANGES, Flag.OVERRANGE, None),
        (b"9.91E+37,9.91E+37,9.91E+37" + RANGES, Flag.NO_DATA, None),
        (b"230.12E+00,NAN,INF" + RANGES, Flag.OVERRANGE, None),
        (GOOD, Flag.GARBAGE, None),
        (GOOD + b",300.0E+00,0.5A", Flag.GARBAGE, None),
        (b"230.12E+00,0.2E+00,22.9S" + RANGES, Flag.GARBAGE, None),
    ],
)
def test_words_and_numbers_that_are_no_values(clock, values, flag, power_w):
    with opened(clock, [*update(values), *FIRST]) as meter:
        reading = meter.read()
    assert (reading.flag, reading.power_w) == (flag, power_w)


def test_a_range_that_the_instrument_left_makes_over_range_and_is_told_once(clock):
    told = []
    left = GOOD + b",300.0E+00,1.000E+00"
    entries = [*update(left), *FIRST, *update(left), *update(GOOD + RANGES)]
    with opened(clock, entries, told=told) as meter:
        flags = [meter.read().flag for _ in range(3)]
    assert flags == [Flag.OVERRANGE, Flag.OVERRANGE, Flag.GOOD]
    assert len(told) == 1 and "left its range" in told[0]


def test_a_hyphen_behind_a_range_marks_a_count_that_was_filled_in(clock):
    marked = GOOD + b",300.0E+00-,500.0E-03-"
    entries = [*START, *update(marked + b",6.37500E-03,1"), *FIRST, *update(ENERGY)]
    with opened(clock, entries) as meter:
        meter.integrate_start()
        reading = meter.read()
        assert (reading.flag, reading.power_w, reading.energy_j) == (Flag.GOOD, 22.95, None)
        assert meter.read().energy_j == pytest.approx(22.95)


def test_a_ranging_pass_takes_every_range_and_returns_to_that_of_the_settings(clock):
    entries = [
        *accepted(b":INP:VOLT:AUTO ON", b":INP:CURR:AUTO ON"),
        *update(GOOD + b",300.0E+00,200.0E-03"),
        *FIRST,
        *accepted(b":INP:VOLT:AUTO OFF", b":INP:VOLT:RANG 300", b":INP:CURR:AUTO OFF", b":INP:CURR:RANG 0.5"),
        *update(GOOD + RANGES),
    ]
    with opened(clock, entries) as meter:
        meter.autorange(True)
        assert meter.read().flag is Flag.GOOD
        meter.autorange(False)
        assert meter.read().flag is Flag.GOOD


def test_a_pending_wait_is_ended_before_a_question_out_of_turn(clock):
    entries = [
        (b":COMM:WAIT 1", None),
        (b":STAT:EESR?", SILENCE),
        *BEGIN_SERIAL,
        (b"*IDN?", b"1"),  # the answer to the wait
        (None, IDENTIFY[0][1]),
        *accepted(b":INP:VOLT:AUTO ON", b":INP:CURR:AUTO ON"),
    ]
    with opened(clock, entries) as meter:
        with pytest.raises(ReplyTimeout):
            meter.read()
        meter.autorange(True)


# -- integrator ------------------------------------------------------------------------------------------

START = [
    *((command, None) for command in (b":INTEG:STOP", b":INTEG:RES", b"*CLS")),
    *accepted(b":NUM:NORM:NUM 7", b":INTEG:MODE NORM", b":INTEG:TIM 0,0,0", b":INTEG:STAR"),
]
ENERGY = GOOD + RANGES + b",6.37500E-03,1"


def test_a_reading_carries_what_the_integrator_shows(clock):
    with opened(clock, [*START, *update(ENERGY), *FIRST]) as meter:
        meter.integrate_start()
        reading = meter.read()
        assert (reading.power_w, reading.flag) == (22.95, Flag.GOOD)
        assert reading.energy_j == pytest.approx(22.95)


def test_with_the_setting_the_integrator_is_reset_first_and_started_last(clock):
    entries = [
        *BEGIN_SERIAL,
        *IDENTIFY,
        *START[:3],
        *accepted(*SET),
        *READ_BACK,
        *START,
        *update(ENERGY),
        *FIRST,
    ]
    with expected_dialogue(entries) as dialogue:
        meter = WT310(dialogue, {**SETTINGS, "integrate": True}, clock=clock)
        meter.open()
        assert meter.read().energy_j == pytest.approx(22.95)


# -- who answers -------------------------------------------------------------------------------------------


def open_with(clock, line, **settings):
    with expected_dialogue([*BEGIN_SERIAL, (b"*IDN?", line)]) as dialogue:
        WT310(dialogue, {**SETTINGS, **settings}, clock=clock).open()


@pytest.mark.parametrize(
    "line", [b"YOKOGAWA,760401,0,F2.01", b"YOKOGAWA,WT333E,C2,F1.03", b"HAMEG Instruments,HM8115-2,1,2.0"]
)
def test_another_instrument_answers(clock, line):
    with raises(WrongInstrument):
        open_with(clock, line)


def test_the_sibling_with_another_accuracy_is_refused_until_it_is_named(clock):
    with raises(WrongInstrument):
        open_with(clock, b"YOKOGAWA,WT310E,C2PH13047V,F1.03")
    with raises(WrongInstrument):
        open_with(clock, b"YOKOGAWA,WT310,C2PH13047V,F1.03", model="WT310E")


@pytest.mark.parametrize("line", [b"V1  230.12E+0", b"E1"])
def test_not_in_488_2_mode(clock, line):
    with raises(WrongMode):
        open_with(clock, line)


def test_unreadable_bytes_point_at_the_baud_rate(clock):
    with raises(WrongMode):
        open_with(clock, b"\x80\xff\x00")


def test_a_refused_setting_names_command_and_next_step(clock):
    entries = [*BEGIN_SERIAL, *IDENTIFY, *accepted(*SET[:2]), (SET[2], None)]
    with (
        raises(SettingRefused),
        expected_dialogue([*entries, (b":STAT:ERR?", b'813,"Cannot be set during integration"')]) as dialogue,
    ):
        WT310(dialogue, SETTINGS, clock=clock).open()


def test_what_a_real_instrument_confirms(clock):
    question = b":NUM:NORM:VAL?"
    with opened(clock, [(question, GOOD + RANGES), (question, b"230.12E+00,INF,NAN" + RANGES)]) as meter:
        findings = meter.confirm(2)
    assert tuple(finding.statement for finding in findings) == WT310.provisional
    assert [finding.holds for finding in findings] == [True, True, None]
    with opened(clock, [(question, GOOD + b",300V,500mA")]) as meter:
        assert [finding.holds for finding in meter.confirm(1)] == [None, False, None]
    with opened(clock, [(question, SILENCE)]) as meter, raises(NoAnswer):
        meter.confirm(1)


# -- settings, ranges and limits of error ------------------------------------------------------------------


def meter_with(clock, **settings):
    with expected_dialogue([]) as dialogue:
        return WT310(dialogue, {**SETTINGS, **settings}, clock=clock)


def test_slow_updates_are_for_the_e_model(clock):
    assert meter_with(clock, update_interval_s=20, model="WT310E").update_interval_s == 20
    with raises(UsageError):
        meter_with(clock, update_interval_s=20)


@pytest.mark.parametrize(
    ("crest_factor", "most_v", "most_a", "expected"),
    [
        (3, 235.0, 0.35, (300.0, 0.5)),
        (3, 235.0, 0.46, (300.0, 1.0)),  # 0.5 A would leave less than 10 %
        (3, 275.0, 0.0001, (600.0, 0.005)),
        (6, 235.0, 0.35, (300.0, 0.5)),
        (6, 60.0, 0.2, (75.0, 0.25)),
    ],
)
def test_the_least_range_with_head_room(clock, crest_factor, most_v, most_a, expected):
    chosen = meter_with(clock, crest_factor=crest_factor).choose_range(most_v, most_a, 0.0)
    assert (chosen["voltage_range_v"], chosen["current_range_a"]) == pytest.approx(expected)
    meter_with(clock, crest_factor=crest_factor, **chosen)


def test_too_much_for_any_range_names_the_greatest(clock):
    with raises(UsageError):
        meter_with(clock).choose_range(230.0, 19.0, 0.0)


HEAT = 1e-9 * 300**2 + 1.3e-6 * 0.5**2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (0.001, 0.001)),
        ({"model": "WT310E"}, (0.001, 0.0005)),
        ({"crest_factor": 6}, (0.001, 0.002)),
        # tan(phi) = 4/3 at 0.6; the range part is that of P / S
        ({"power_factor": 0.6}, (0.001 + 0.002 * 4 / 3, 0.0006)),
        ({"power_factor": 0.6, "model": "WT310E"}, (0.001 + 0.001 * 4 / 3, 0.0003)),
        ({"line_frequency_hz": 400}, (0.002, 0.002)),
        ({"line_frequency_hz": 20}, (0.003, 0.002)),
        ({"line_frequency_hz": 45}, (0.001, 0.001)),
        ({"line_frequency_hz": 5e3}, (0.001 + 0.00067 * 4, 0.003)),
        (
            {"line_frequency_hz": 400, "power_factor": 0.6, "model": "WT310E"},
            (0.002 + 0.0016 * 4 / 3, 0.0012),
        ),
        ({"line_filter": True, "model": "WT310E"}, (0.004, 0.0005)),
        ({"line_filter": True, "line_frequency_hz": 20, "model": "WT310E"}, (0.013, 0.002)),
    ],
)
def test_limits_of_error(clock, settings, expected):
    accuracy = meter_with(clock, **settings).accuracy(200.0)
    wanted = (expected[0] + HEAT, expected[1])
    assert (accuracy.reading_ratio, accuracy.range_ratio) == pytest.approx(wanted)
    assert "12 months" in accuracy.source and "IM WT310" in accuracy.source
    assert sum(term.reading_ratio for term in accuracy.terms) == pytest.approx(wanted[0])
    assert sum(term.range_ratio for term in accuracy.terms) == pytest.approx(wanted[1])


@pytest.mark.parametrize(("current_range_a", "step_w"), [(0.1, 1e-3), (0.5, 1e-2), (5, 0.1)])
def test_the_last_digit_of_the_power_range(clock, current_range_a, step_w):
    assert meter_with(clock, current_range_a=current_range_a).resolution == pytest.approx(step_w)


@pytest.mark.parametrize(
    ("settings", "days", "why"),
    [
        ({}, 400.0, "12 months ago"),
        ({}, -1.0, "future"),
        ({"mode": "DC"}, 10.0, "DC"),
        ({"line_frequency_hz": 2e5}, 10.0, "200000 Hz"),
        ({"line_frequency_hz": 0.2}, 10.0, "0.2 Hz"),
        ({"line_frequency_hz": 400.0, "power_factor": 0.6}, 10.0, "at 400 Hz"),
        ({"line_filter": True}, 10.0, "line filter"),
        ({"line_filter": True, "line_frequency_hz": 400, "model": "WT310E"}, 10.0, "line filter"),
        ({"power_factor": 0}, 10.0, "power factor 0"),
    ],
)
def test_unknown_stays_unknown_and_says_why(clock, settings, days, why):
    accuracy = meter_with(clock, **settings).accuracy(days)
    assert accuracy.status == "unknown" and why in accuracy.source
