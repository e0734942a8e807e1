# SPDX-License-Identifier: Apache-2.0
"""The adapter's every byte, pinned."""

from __future__ import annotations

import contextlib
import threading
from datetime import date

import pytest
from golden_sentences import raises
from meter_dialogue import SILENCE, UNPLUGGED, expected_dialogue

from netjoule_meters.adapters.power_analysers.wt210 import WT210
from netjoule_meters.config import MeterConfig
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
BEGIN = [
    (b"", None),
    (b"*CLS", None),
    (b":STAT:QMES ON", None),
    (b":COMM:REM ON", None),
    (b":COMM:HEAD OFF", None),
]
IDENTIFY = [(b"*IDN?", b"YOKOGAWA,760401,0,F2.01")]
NO_ERROR = (b":STAT:ERR?", b'0,"No error"')
SET = (
    b":SAMP:HOLD OFF",
    b":SAMP:RATE 0.1",
    b":CONF:CFAC 3",
    b":CONF:MODE RMS",
    b":CONF:VOLT:AUTO OFF",
    b":CONF:VOLT:RANG 300",
    b":CONF:CURR:AUTO OFF",
    b":CONF:CURR:RANG 0.5",
    b":CONF:LFILT 0",
    b":CONF:FILT 1",
    b":CONF:AVER:STAT OFF",
    b":SCAL:STAT OFF",
    b":MEAS:ITEM:PRES NORM",
    b":STAT:FILT1 FALL",
    b":STAT:FILT7 RISE",
    b":STAT:FILT8 RISE",
    b":STAT:FILT9 RISE",
)
SET_UP = [entry for command in SET for entry in ((command, None), NO_ERROR)]
READ_BACK = [
    (b":SAMP:RATE?", b"100.0E-03"),
    (b":CONF:CFAC?", b"3"),
    (b":CONF:VOLT:RANG?", b"300.0E+00"),
    (b":CONF:CURR:RANG?", b"500.0E-03"),
    (b":CONF:LFILT?", b"0"),
]
OPEN = [*BEGIN, *IDENTIFY, *SET_UP, *READ_BACK]
FIRST = [(b":STAT:COND?", b"0")]


VALUES = b":MEAS:VAL?;:STAT:EESR?"


def update(values, events=b"1", later=b"0"):
    return [(b":COMM:WAIT 1", None), (b":STAT:EESR?", events), (VALUES, values + b";" + later)]


@contextlib.contextmanager
def opened(clock, entries):
    with expected_dialogue([*OPEN, *entries]) as dialogue:
        meter = WT210(dialogue, SETTINGS, clock=clock)
        meter.open()
        yield meter


def test_open_identifies_sets_up_and_reads_back(clock):
    with opened(clock, []) as meter:
        assert meter.identification.text == "YOKOGAWA,760401,0,F2.01"
        assert meter.identification.firmware == "F2.01"
        assert meter.identification.serial is None


def test_one_update_is_one_reading(clock):
    values = b"230.12E+00,0.2064E+00,22.95E+00"
    with opened(clock, [*update(values), *FIRST, *update(values)]) as meter:
        for _ in range(2):
            reading = meter.read()
            assert (reading.power_w, reading.voltage_v, reading.current_a) == (22.95, 230.12, 0.2064)
            assert reading.flag is Flag.GOOD
            clock.advance(0.1)


def test_time_stamp_is_the_midpoint_of_the_query(clock):
    with opened(clock, [*update(b"1,2,3"), *FIRST]) as meter:
        clock.step_ns = 1000
        before_ns = clock.now_ns
        reading = meter.read()
    assert reading.t_ns == before_ns + (1000 + 2000) // 2


@pytest.mark.parametrize(
    ("values", "flag", "power_w"),
    [
        (b"230.12E+00,9.9E+37,9.9E+37", Flag.OVERRANGE, None),
        (b"9.9E+37,0.2E+00,22.95E+00", Flag.OVERRANGE, 22.95),
        (b"9.91E+37,9.91E+37,9.91E+37", Flag.NO_DATA, None),
        (b"230.12E+00,0.2064E+00,9.91E+37", Flag.NO_DATA, None),
        (b"230.12E+00,0.2064E+00", Flag.GARBAGE, None),
        (b"230.12E+00,0.2064E+00,22.9\xff", Flag.GARBAGE, None),
        (b"230.12E+00,0.2064E+00,22.95E+09", Flag.GARBAGE, None),
    ],
)
def test_values_that_are_no_readings(clock, values, flag, power_w):
    unreadable = flag is Flag.GARBAGE and b"E+09" not in values
    # Bytes that are no text end the exchange before the conditions are asked for.
    entries = [*update(values), *([] if b"\xff" in values else FIRST)]
    with opened(clock, entries) as meter:
        reading = meter.read()
        assert (reading.flag, reading.power_w) == (flag, power_w)
        assert meter._resynchronise is unreadable


@pytest.mark.parametrize("events", [b"129", b"257", b"385"])
def test_peak_over_flags_the_number_as_long_as_it_lasts(clock, events):
    entries = [
        *update(b"230.12E+00,0.2064E+00,22.95E+00", events),
        (b":STAT:COND?", b"256"),
        *update(b"230.12E+00,0.2064E+00,22.96E+00"),
        (b":STAT:COND?", b"256"),
        *update(b"230.12E+00,0.2064E+00,22.97E+00"),
        (b":STAT:COND?", b"0"),
        *update(b"230.12E+00,0.2064E+00,22.98E+00"),
    ]
    with opened(clock, entries) as meter:
        readings = []
        for _ in range(4):
            readings.append(meter.read())
            clock.advance(0.1)
    assert [reading.flag for reading in readings] == [Flag.PEAK_OVER, Flag.PEAK_OVER, Flag.GOOD, Flag.GOOD]
    assert readings[0].power_w == 22.95


def test_time_out_goes_on_waiting_for_the_same_update(clock):
    entries = [
        (b":COMM:WAIT 1", None),
        (b":STAT:EESR?", SILENCE),
        (None, b"1"),
        (VALUES, b"230E+00,0.1E+00,23E+00;0"),
        *FIRST,
    ]
    with opened(clock, entries) as meter:
        with pytest.raises(ReplyTimeout):
            meter.read()
        assert meter.read().power_w == 23.0


def test_a_lost_answer_is_followed_by_a_clean_start(clock):
    entries = [
        (b":COMM:WAIT 1", None),
        (b":STAT:EESR?", b"1"),
        (VALUES, SILENCE),
        *BEGIN,
        # The lost answer comes late; it is not mistaken for that to a later question.
        (b"*IDN?", b"230E+00,0.1E+00,24E+00;0"),
        (None, IDENTIFY[0][1]),
        *update(b"230E+00,0.1E+00,23E+00"),
        *FIRST,
    ]
    with opened(clock, entries) as meter:
        with pytest.raises(ReplyTimeout):
            meter.read()
        assert meter.read().power_w == 23.0


def test_an_answer_without_a_new_update_is_a_duplicate(clock):
    values = b"230.12E+00,0.2064E+00,22.95E+00"
    with opened(clock, [*update(values), *FIRST, *update(values, events=b"0")]) as meter:
        assert meter.read().flag is Flag.GOOD
        assert meter.read().flag is Flag.DUPLICATE


def test_an_update_between_the_two_questions_is_read_once(clock):
    # The host was late: the values are those of a newer update, and its event is taken with them.
    with opened(clock, [*update(b"230E+00,0.1E+00,23E+00", later=b"1"), *FIRST]) as meter:
        assert meter.read().flag is Flag.GOOD


def test_a_peak_that_begins_between_the_two_questions_counts(clock):
    entries = [*update(b"230E+00,0.1E+00,23E+00", later=b"256"), (b":STAT:COND?", b"0")]
    with opened(clock, entries) as meter:
        assert meter.read().flag is Flag.PEAK_OVER


def test_pulled_cable_is_a_gap_and_a_reconnection_without_a_made_up_sample(clock):
    good = b"230.12E+00,0.2064E+00,22.95E+00"
    entries = [
        *OPEN,
        *update(good),
        *FIRST,
        (b":COMM:WAIT 1", None),
        (b":STAT:EESR?", UNPLUGGED),
        *OPEN,
        *update(good),
        *FIRST,
    ]
    told = []
    with expected_dialogue(entries) as dialogue:
        meter = WT210(dialogue, SETTINGS, clock=clock, notify=told.append)
        meter.open()
        stop = threading.Event()
        readings = []
        for reading in meter.readings(stop):
            readings.append(reading)
            clock.advance(0.5)
            if len(readings) == 4:
                stop.set()
    assert [reading.flag for reading in readings] == [Flag.GOOD, Flag.TIMEOUT, Flag.RECONNECT, Flag.GOOD]
    assert [reading.power_w for reading in readings] == [22.95, None, None, 22.95]
    assert dialogue.opened == 2
    assert told[0].startswith("connection lost") and told[-1].startswith("connected again")


def test_silence_is_one_row_per_gap_and_then_a_new_connection(clock):
    entries = [*OPEN, (b":COMM:WAIT 1", None), (b":STAT:EESR?", SILENCE), *[(None, SILENCE)] * 4]
    entries += [*OPEN, *update(b"230E+00,0.1E+00,23E+00"), *FIRST]
    with expected_dialogue(entries, clock.advance) as dialogue:
        meter = WT210(dialogue, SETTINGS, clock=clock)
        meter.open()
        clock.step_ns = 1000
        flags = []
        for reading in meter.readings(threading.Event()):
            flags.append(reading.flag)
            if len(flags) == 3:
                break
    assert flags == [Flag.TIMEOUT, Flag.RECONNECT, Flag.GOOD]


# -- who answers ---------------------------------------------------------------------------------------


def open_with(clock, entries, settings=SETTINGS):
    with expected_dialogue(entries) as dialogue:
        WT210(dialogue, settings, clock=clock).open()


def test_nothing_answers(clock):
    with raises(NoAnswer):
        open_with(clock, [*BEGIN, *[(b"*IDN?", SILENCE)] * 3])


def test_a_late_answer_to_the_first_question_is_not_mistaken_for_another(clock):
    open_with(clock, [*BEGIN, (b"*IDN?", SILENCE), *IDENTIFY, *SET_UP, *READ_BACK])


def test_the_answer_to_a_wait_of_a_killed_program_is_skipped(clock):
    open_with(clock, [*BEGIN, (b"*IDN?", b"1"), (None, b"YOKOGAWA,760401,0,F2.01"), *SET_UP, *READ_BACK])


@pytest.mark.parametrize("line", [b"V1  230.12E+0", b"E1", b"\x80\xff\x00"])
def test_not_in_488_2_mode(clock, line):
    with raises(WrongMode):
        open_with(clock, [*BEGIN, (b"*IDN?", line)])


def test_unreadable_bytes_point_at_the_baud_rate(clock):
    with raises(WrongMode):
        open_with(clock, [*BEGIN, (b"*IDN?", b"\x80\xff\x00")])


@pytest.mark.parametrize(
    "line",
    [b"YOKOGAWA,WT310,C2PH13047V,F1.03", b"YOKOGAWA,760502,0,F2.01", b"HAMEG Instruments,HM8115-2,1,2.0"],
)
def test_another_instrument_answers(clock, line):
    with raises(WrongInstrument) as error:
        open_with(clock, [*BEGIN, (b"*IDN?", line)])
    assert line.decode() in str(error.value)
    assert error.value.exit_code == 3


def test_a_refused_setting_names_command_and_next_step(clock):
    entries = [*BEGIN, *IDENTIFY, (SET[0], None), NO_ERROR, (SET[1], None)]
    with raises(SettingRefused):
        open_with(clock, [*entries, (b":STAT:ERR?", b'813,"Cannot be set during integration"')])


def test_a_setting_that_was_not_kept(clock):
    with raises(SettingRefused):
        open_with(clock, [*BEGIN, *IDENTIFY, *SET_UP, (b":SAMP:RATE?", b"250.0E-03")])


# -- settings and passport -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {**SETTINGS, "update_interval_s": 0.2},
        {**SETTINGS, "voltage_range_v": 299},
        {**SETTINGS, "autorange": True},
        {"update_interval_s": 0.1, "voltage_range_v": 300},
        {**SETTINGS, "mode": "PEAK"},
        {**SETTINGS, "line_filter": 1},
    ],
)
def test_settings_are_strict(clock, settings):
    with expected_dialogue([]) as dialogue, raises(UsageError):
        WT210(dialogue, settings, clock=clock)


def passport(clock, **changes):
    config = MeterConfig("m1", "client", "wt210", "dialogue", SETTINGS, **changes)
    with opened(clock, []) as meter:
        return meter.passport(config, date(2026, 11, 21)).document()


def test_passport_of_a_measured_meter(clock):
    document = passport(clock, calibration_date="2026-03-01")
    assert document["emulated"] is False
    assert document["range"] == {"voltage_v": 300.0, "current_a": 0.5, "power_w": 150.0}
    assert document["lag_s"] == 0.1
    assert document["accuracy"]["reading_ratio"] == pytest.approx(0.0015)
    assert document["accuracy"]["range_ratio"] == pytest.approx(0.001)


def test_without_a_calibration_date_accuracy_is_unknown(clock):
    accuracy = passport(clock)["accuracy"]
    assert accuracy["status"] == "unknown" and accuracy["reading_ratio"] is None


def test_an_emulated_meter_does_not_age(clock):
    document = passport(clock, power_source="modelled", calibration_date="2001-01-01", device_model="laptop")
    assert document["emulated"] is True
    assert document["accuracy"]["status"] == "known"
    assert "emulated instrument" in document["accuracy"]["source"]
