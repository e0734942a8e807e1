# SPDX-License-Identifier: Apache-2.0
"""The HM8115-2 adapter's every byte, pinned."""

from __future__ import annotations

import contextlib
import threading
from datetime import date

import pytest
from golden_sentences import raises
from meter_dialogue import SILENCE, UNPLUGGED, Dialogue, expected_dialogue

from netjoule_meters.adapters.power_analysers.hm8115 import HM8115
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import NoAnswer, ReplyTimeout, SettingRefused, UsageError, WrongInstrument
from netjoule_meters.reading import Flag

SETTINGS = {"voltage_range_v": 500, "current_range_a": 1.6}
BEGIN = [(b"", None), (b"MA0", None)]
IDENTIFY = [(b"*IDN?", b"HAMEG HM8115-2"), (b"VERSION?", b"version 1.01")]
SET = [(b"SET:U3", None), (b"SET:I2", None)]
AS_SET = (b"STATUS?", b"WATT U3 I2")
OPEN = [*BEGIN, *IDENTIFY, AS_SET, *SET, AS_SET]
LINE = b"U3=230.1E+0 I2=0.105E+0 W=22.9E+0"
# The first two lines may come from a range that the instrument has just left.
START = [(b"MA1", None), (None, LINE), (None, LINE)]
ASK = (b"VAL?", LINE)


@contextlib.contextmanager
def opened(clock, entries, settings=SETTINGS, before=OPEN, **options):
    with expected_dialogue([*before, *entries], stamp=clock.monotonic_ns, **options) as dialogue:
        meter = HM8115(dialogue, settings, clock=clock)
        meter.open()
        yield meter


def opening_fails(clock, entries, error):
    meter = HM8115(Dialogue(entries), SETTINGS, clock=clock)
    with raises(error) as raised:
        meter.open()
    meter._transport.finish()
    return raised.value


# -- opening -----------------------------------------------------------------------------------------------


def test_open_identifies_and_finds_the_ranges_as_wanted(clock):
    with opened(clock, []) as meter:
        identity = meter.identification
    assert (identity.text, identity.firmware, identity.serial) == ("HAMEG HM8115-2", "1.01", None)


def test_another_function_and_range_are_changed_and_two_lines_after_it_not_used(clock):
    spike = b"U3=230.1E+0 I2=180.000E+0 W=41418.0E+0"
    before = [*BEGIN, *IDENTIFY, (b"STATUS?", b"VAR U3 I3"), (b"WATT", None), *SET]
    before += [(b"STATUS?", b"WATT U3 I3"), AS_SET]  # switching takes a moment
    lines = [START[0], (None, spike), (None, b"U3=2\xff"), (None, LINE.replace(b"22.9", b"23.1"))]
    with opened(clock, lines, before=before) as meter:
        reading = meter.read()
    assert (reading.power_w, reading.flag) == (23.1, Flag.GOOD)


def test_a_range_that_does_not_stay_is_refused(clock):
    stubborn = [(b"STATUS?", b"WATT U3 I3")] * 3
    entries = [*BEGIN, *IDENTIFY, (b"STATUS?", b"WATT U3 I3"), *SET, *stubborn]
    opening_fails(clock, entries, SettingRefused)


def test_a_slow_answer_is_asked_for_again(clock):
    asked = [(b"*IDN?", SILENCE), IDENTIFY[0], (b"VERSION?", SILENCE), IDENTIFY[1]]
    status = [(b"STATUS?", SILENCE), AS_SET]
    with opened(clock, [], before=[*BEGIN, *asked, *status, *SET, *status]) as meter:
        assert meter.identification.firmware == "1.01"


@pytest.mark.parametrize("answer", [b"IeS type ISW8001A", b"YOKOGAWA,760401,0,F2.01"])
def test_another_instrument(clock, answer):
    opening_fails(clock, [*BEGIN, (b"*IDN?", answer)], WrongInstrument)


@pytest.mark.parametrize("answer", [SILENCE, b"\x98\x86\x00\xf8\x80"])
def test_silence_and_a_wrong_baud_rate_name_the_baud_rate(clock, answer):
    asked = [(b"*IDN?", answer)] * (3 if answer is SILENCE else 1)
    error = opening_fails(clock, [*BEGIN, *asked], NoAnswer)
    assert error.exit_code == 3


@pytest.mark.parametrize(
    "settings",
    [
        {**SETTINGS, "voltage_range_v": 300},
        {"voltage_range_v": 500},
        {**SETTINGS, "readout": "fast"},
    ],
)
def test_settings_are_strict(clock, settings):
    with expected_dialogue([]) as dialogue, raises(UsageError):
        HM8115(dialogue, settings, clock=clock)


# -- readings ----------------------------------------------------------------------------------------------


def test_one_line_is_one_reading_stamped_at_its_first_byte(clock):
    with opened(clock, [*START, (None, LINE), (None, LINE)]) as meter:
        clock.now_ns = 5_000
        first = meter.read()
        clock.now_ns = 9_000
        second = meter.read()
    assert (first.power_w, first.voltage_v, first.current_a, first.flag) == (22.9, 230.1, 0.105, Flag.GOOD)
    assert (first.t_ns, second.t_ns) == (5_000, 9_000)


def test_flow_control_inside_a_line_is_taken_out(clock):
    with opened(clock, [*START, (None, b"U3=23\x130.1E\x11+0 I2=0.105E+0 W=22\x13.9E\x11+0")]) as meter:
        assert meter.read().power_w == 22.9


def test_the_form_without_values(clock):
    with opened(clock, [*START, (None, b"U3 I2 W=200.0E+0")]) as meter:
        reading = meter.read()
    assert (reading.power_w, reading.voltage_v, reading.current_a) == (200.0, None, None)


@pytest.mark.parametrize(
    ("line", "flag", "power_w"),
    [
        (b"U3=230.1E+0 I2=OF W=OF", Flag.OVERRANGE, None),
        (b"U3 I2 W=overflow", Flag.OVERRANGE, None),
        (b"U3=OF I2=0.105E+0 W=22.9E+0", Flag.OVERRANGE, 22.9),
        (b"U3=230.1E+0 I2=180.000E+0 W=41418.0E+0", Flag.GARBAGE, None),  # spike of a relay
        (b"U3=230.1E+0 I2=0.105E+0 W=229.0E+0", Flag.GARBAGE, None),  # more than voltage times current
        (b"U3=230.1E+0 I3=0.10E+0 W=22E+0", Flag.GARBAGE, None),  # another range than was set
        (b"U3=230.1E+0 I2=0.105E+0 VAR=22.9E+0", Flag.GARBAGE, None),  # somebody pressed a key
        (b"U3 I2 W=9000.0E+0", Flag.GARBAGE, None),  # far over the power range
        (b"I2=0.105E+0 W=22.9E+0", Flag.GARBAGE, None),  # beginning lost
        (b"U3=230.1E+0 I2=0.105E+0 W=2\xff.9E+0", Flag.GARBAGE, None),
    ],
)
def test_lines_that_are_no_readings(clock, line, flag, power_w):
    with opened(clock, [*START, (None, line), (None, LINE)]) as meter:
        reading = meter.read()
        assert (reading.flag, reading.power_w) == (flag, power_w)
        # The next line is read without asking anew.
        assert meter.read().power_w == 22.9


def test_asking_for_each_value(clock):
    entries = [ASK] * 4
    with opened(clock, entries, settings={**SETTINGS, "readout": "query"}) as meter:
        first = meter.read()
        clock.advance(0.47)
        second = meter.read()
    assert (first.flag, second.flag, second.power_w) == (Flag.GOOD, Flag.GOOD, 22.9)


def test_a_value_that_comes_before_the_end_of_a_cycle_is_an_old_one(clock):
    with opened(clock, [ASK] * 5, settings={**SETTINGS, "readout": "query"}) as meter:
        flags = [meter.read().flag]
        clock.advance(0.1)
        flags.append(meter.read().flag)
        clock.advance(0.3)
        flags.append(meter.read().flag)
    assert flags == [Flag.GOOD, Flag.DUPLICATE, Flag.GOOD]


def test_a_question_without_answer_is_asked_after_a_new_beginning(clock):
    entries = [ASK, ASK, (b"VAL?", SILENCE), *BEGIN, ASK]
    with opened(clock, entries, settings={**SETTINGS, "readout": "query"}) as meter:
        with pytest.raises(ReplyTimeout):
            meter.read()
        assert meter.read().power_w == 22.9


def taken(meter, count):
    stop = threading.Event()
    rows = []
    for reading in meter.readings(stop):
        rows.append((reading.flag, reading.power_w))
        if len(rows) == count:
            return rows
    raise AssertionError("the readings ended")


def test_a_pulled_cable_is_a_reconnection_with_a_new_set_up(clock):
    entries = [*START, (None, LINE), (None, UNPLUGGED), *OPEN, *START, (None, LINE)]
    with opened(clock, entries) as meter:
        rows = taken(meter, 3)
    assert rows == [(Flag.GOOD, 22.9), (Flag.RECONNECT, None), (Flag.GOOD, 22.9)]


def test_silence_is_one_gap_then_a_reconnection(clock):
    entries = [*START, (None, LINE), *[(None, SILENCE)] * 4, *OPEN, *START, (None, LINE)]
    with opened(clock, entries, wait=clock.advance) as meter:
        rows = taken(meter, 4)
    assert [flag for flag, _ in rows] == [Flag.GOOD, Flag.TIMEOUT, Flag.RECONNECT, Flag.GOOD]


def test_a_wrong_range_for_long_is_set_again(clock):
    wrong = (None, b"U3=230.1E+0 I3=0.10E+0 W=22E+0")
    again = [*BEGIN, *IDENTIFY, (b"STATUS?", b"WATT U3 I3"), *SET, AS_SET]
    entries = [*START, *[wrong] * 10, *again, *START, (None, LINE)]
    with opened(clock, entries) as meter:
        rows = taken(meter, 12)
    assert [flag for flag, _ in rows] == [*[Flag.GARBAGE] * 10, Flag.RECONNECT, Flag.GOOD]


def test_close_ends_the_continuous_output(clock):
    with opened(clock, [*START, (None, LINE), (b"MA0", None)]) as meter:
        meter.read()
        meter.close()
        meter.close()


def test_close_after_a_pulled_cable_says_nothing(clock, monkeypatch):
    from netjoule_meters.errors import ConnectionLost

    with opened(clock, [*START, (None, LINE)]) as meter:
        meter.read()

        def gone(_line):
            raise ConnectionLost("gone")

        monkeypatch.setattr(meter._transport, "write_line", gone)
        meter.close()


# -- ranging, probing, passport ----------------------------------------------------------------------------


def test_a_ranging_pass_lets_the_instrument_choose_and_then_holds_again(clock):
    chosen = b"U3=230.1E+0 I1=99.8E-3 W=22.95E+0"
    on_auto = [*BEGIN, (b"AUTO:U", None), (b"AUTO:I", None), *START, (None, chosen)]
    back = [*BEGIN, (b"STATUS?", b"WATT U3 I1"), *SET, AS_SET, *START, (None, LINE)]
    with opened(clock, [*on_auto, *back]) as meter:
        meter.autorange(True)
        assert meter.read().power_w == 22.95
        meter.autorange(False)
        assert meter.read().power_w == 22.9


@pytest.mark.parametrize(
    ("most", "settings"),
    [
        ((230.0, 0.1, 23.0), {"voltage_range_v": 500.0, "current_range_a": 0.16}),
        ((230.0, 0.15, 34.0), {"voltage_range_v": 500.0, "current_range_a": 1.6}),
        ((19.5, 3.0, 58.0), {"voltage_range_v": 50.0, "current_range_a": 16.0}),
    ],
)
def test_the_least_ranges_with_head_room(clock, most, settings):
    with opened(clock, []) as meter:
        assert meter.choose_range(*most) == settings


def test_lines_without_voltage_and_current_choose_no_range(clock):
    with opened(clock, []) as meter, raises(UsageError):
        meter.choose_range(0.0, 0.0, 60.0)


def test_no_range_holds_everything(clock):
    with opened(clock, []) as meter, raises(UsageError):
        meter.choose_range(230.0, 15.0, 3450.0)


def test_probing_says_which_provisional_statements_hold(clock):
    line = LINE.replace(b"W", b"\x13W\x11")
    with opened(clock, [*START, *[(None, line)] * 3]) as meter:
        clock.step_ns = 470_000_000  # each look at the clock costs one cycle
        findings = meter.confirm(3)
    assert {finding.statement for finding in findings} == set(HM8115.provisional)
    cycle, form, flow = findings[:3]
    assert (cycle.holds, cycle.seen) == (True, "0.470 s between values, median of 2")
    assert form.holds and "with voltage and current" in form.seen
    assert flow.holds
    assert all(finding.holds is None for finding in findings[3:])


def test_probing_an_instrument_that_falls_silent_is_one_sentence(clock):
    entries = [*START, (None, LINE), *[(None, SILENCE)] * 5]
    with opened(clock, entries, wait=clock.advance) as meter, raises(NoAnswer):
        meter.confirm(3)


def test_probing_an_instrument_that_is_unplugged_is_one_sentence(clock):
    with opened(clock, [*START, (None, UNPLUGGED)]) as meter:
        with raises(NoAnswer):
            meter.confirm(3)
        with raises(UsageError):
            meter.confirm(1)


def test_probing_contradicts_another_pace(clock):
    with opened(clock, [*START, *[(None, LINE)] * 3]) as meter:
        clock.step_ns = 1_000_000_000
        cycle, _, flow, *_ = meter.confirm(3)
    assert (cycle.holds, flow.holds) == (False, None)


def passport(clock, settings=SETTINGS, **changes):
    status = b"WATT U3 I2" if settings is SETTINGS else b"WATT U3 I1"
    entries = [(sent.replace(b"I2", b"I1") if settings is not SETTINGS else sent, got) for sent, got in SET]
    before = [*BEGIN, *IDENTIFY, (b"STATUS?", status), *entries, (b"STATUS?", status)]
    config = MeterConfig("m1", "client", "hm8115", "dialogue", settings, **changes)
    with opened(clock, [], settings=settings, before=before) as meter:
        return meter.passport(config, date(2026, 11, 21)).document()


def test_ten_digits_are_a_watt_on_500_v_and_1_6_a(clock):
    document = passport(clock, calibration_date="2026-03-01")
    accuracy = document["accuracy"]
    assert accuracy["status"] == "known" and "provisional" in accuracy["source"]
    assert accuracy["reading_ratio"] == 0.008
    assert accuracy["range_ratio"] * document["range"]["power_w"] == pytest.approx(1.0)
    assert document["semantics"] == "instantaneous" and document["quantity"] == "active_power"
    assert document["update_interval_s"] == document["lag_s"] == 0.47
    assert document["resolution"] == 0.1 and len(document["provisional"]) == 7
    assert [term["term"] for term in accuracy["terms"]] == ["reading", "digits"]


def test_ten_digits_are_a_tenth_of_that_on_the_least_current_range(clock):
    settings = {"voltage_range_v": 500, "current_range_a": 0.16}
    document = passport(clock, settings, calibration_date="2026-03-01")
    assert document["accuracy"]["range_ratio"] * document["range"]["power_w"] == pytest.approx(0.1)


@pytest.mark.parametrize("calibration_date", [None, "2020-01-01", "2027-01-01"])
def test_accuracy_is_unknown_without_a_recent_calibration(clock, calibration_date):
    accuracy = passport(clock, calibration_date=calibration_date)["accuracy"]
    assert (accuracy["status"], accuracy["range_ratio"]) == ("unknown", None)


def test_passport_fits_the_contract(clock):
    from netjoule_contracts import document_defects

    assert document_defects("meter_passport", passport(clock, power_source="modelled")) == []
