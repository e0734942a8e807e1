# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.emulated.power_analysers.wt210 import EmulatedWT210
from netjoule_meters.emulated.scpi import (
    Entry,
    Interpreter,
    ScpiError,
    match_header,
    parse_boolean,
    parse_number,
    pattern_nodes,
)

VALUE = pattern_nodes("MEASure[:NORMal]:VALue")


@pytest.mark.parametrize("header", ["MEAS:VAL", "MEASURE:NORMAL:VALUE", "MEASU:NORM:VALU", "MEASURE:VAL"])
def test_short_long_and_optional_levels(header):
    assert match_header(VALUE, header.split(":")) == []


@pytest.mark.parametrize("header", ["MEA:VAL", "MEAS", "VAL", "MEAS:VALUES", "MEAS:NORM", "MEAS1:VAL"])
def test_what_is_not_the_header(header):
    assert match_header(VALUE, header.split(":")) is None


def test_numbered_levels_give_their_suffix():
    nodes = pattern_nodes("STATus:FILTer<n>")
    assert match_header(nodes, ["STAT", "FILT7"]) == [7]
    assert match_header(nodes, ["STATUS", "FILTER"]) == [1]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("300", "V", 300),
        ("7.5V", "V", 7.5),
        ("5MV", "V", 5e-3),
        ("5E-3V", "V", 5e-3),
        ("500MA", "A", 0.5),
        ("2MAA", "A", 2e6),
        ("0.1S", "S", 0.1),
        ("250ms", "S", 0.25),
        ("+.5", "", 0.5),
    ],
)
def test_numbers_with_multiplier_and_unit(text, unit, value):
    assert parse_number(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "code"), [("5A", 131), ("5QV", 131), ("volt", 120), ("", 120), ("1E999", 120)]
)
def test_wrong_numbers(text, code):
    with pytest.raises(ScpiError) as error:
        parse_number(text, "V")
    assert error.value.code == code


def test_booleans():
    assert [parse_boolean(text) for text in ("on", "OFF", "1", "0", "2", "0.4")] == [
        True,
        False,
        True,
        False,
        True,
        False,
    ]


def ask(instrument: EmulatedWT210, *lines: str) -> str:
    instrument.receive("".join(line + "\n" for line in lines).encode())
    return instrument.step(0.0).decode().replace("\r\n", "|").rstrip("|")


@pytest.fixture
def bare() -> EmulatedWT210:
    instrument = EmulatedWT210()
    ask(instrument, "*CLS", ":COMM:HEAD OFF", ":STAT:QMES ON")
    return instrument


def test_identification_does_not_name_the_wt210(bare):
    assert ask(bare, "*IDN?") == "YOKOGAWA,760401,0,F2.01"


def test_case_does_not_matter(bare):
    assert ask(bare, ":conf:volt:rang 150v", ":CONFIGURE:Voltage:RANGE?") == "150.0E+00"


def test_group_shares_its_header_until_a_colon(bare):
    assert (
        ask(bare, "CONF:VOLT:AUTO OFF;RANG 60;RANG?;:SAMP:RATE 0.5S;HOLD ON;RATE?;HOLD?")
        == "60.00E+00;500.0E-03;1"
    )
    assert ask(bare, ":STAT:ERR?") == '0,"No error"'


def test_another_group_needs_a_leading_colon(bare):
    assert ask(bare, "SAMP:HOLD ON;COMM:VERB ON") == ""
    assert ask(bare, ":STAT:ERR?") == '113,"Undefined header"'


def test_common_commands_do_not_change_the_level(bare):
    assert ask(bare, "SAMP:HOLD ON;*OPC?;HOLD?") == "1;1"


def test_configure_may_be_left_out(bare):
    assert ask(bare, "MODE DC", "VOLTAGE:RANGE 7.5V") == ""
    assert ask(bare, ":STAT:ERR?") == '222,"Data out of range"'
    assert ask(bare, "SCALING OFF;AVERAGING OFF;FILTER OFF;MODE?") == "DC"
    assert ask(bare, ":STAT:ERR?") == '0,"No error"'


def test_crest_factor_6_offers_the_halved_ranges(bare):
    ask(bare, ":CONF:CFAC 6", ":CONF:VOLT:RANG 7.5")
    assert ask(bare, ":CONF:VOLT:RANG?;:CONF:CFAC?;:STAT:ERR?") == '7.500E+00;6;0,"No error"'


def test_query_of_an_upper_level_answers_the_group():
    instrument = EmulatedWT210()
    assert ask(instrument, "INTEGRATE?") == "INTEGRATE:MODE NORMAL;TIMER 0,0,0"
    assert ask(instrument, "SAMP?") == "SAMPLE:RATE 250.0E-03;HOLD 0"


def test_header_and_verbose_shape_answers():
    instrument = EmulatedWT210()
    assert ask(instrument, ":COMM:HEAD ON;VERB ON", ":SAMP:HOLD?") == "SAMPLE:HOLD 0"
    assert ask(instrument, ":COMM:VERB OFF", ":SAMP:HOLD?", ":INTEG:MODE?") == "SAMP:HOLD 0|INTEG:MODE NORM"
    assert ask(instrument, ":COMM:HEAD OFF", ":INTEG:MODE?", ":STAT:FILT3?") == "NORM|NEV"


def test_numbers_in_group_answers_without_header(bare):
    assert ask(bare, "SAMPLE?") == "250.0E-03;0"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (":CONF:VOLT:RANG 299", '222,"Data out of range"'),
        (":CONF:VOLT:RANG", '109,"Missing parameter"'),
        (":CONF:VOLT:RANG 1,2", '108,"Parameter not allowed"'),
        (":CONF:VOLT:RANG big", '120,"Numeric data error"'),
        (":CONF:MODE PEAK", '141,"Invalid character data"'),
        (":STAT:FILT16 RISE", '114,"Header suffix out of range"'),
        (":CONF:SCAL ON", '221,"Setting conflict"'),
        (":CONF:AVER:STAT ON", '221,"Setting conflict"'),
        (":NONSENSE", '113,"Undefined header"'),
        (":MEAS:VAL 3", '113,"Undefined header"'),
        (":INTEG:STOP", '844,"Attempted to stop integration while not integrating"'),
    ],
)
def test_errors_go_into_the_queue(bare, command, error):
    assert ask(bare, command) == ""
    assert ask(bare, ":STAT:ERR?", ":STAT:ERR?") == error + '|0,"No error"'


def test_error_queue_is_first_in_first_out_and_overflows_with_350(bare):
    for _ in range(25):
        ask(bare, ":NONSENSE")
    codes = [ask(bare, ":STAT:ERR?") for _ in range(21)]
    assert codes[0].startswith("113") and codes[19] == '350,"Queue overflow"' and codes[20].startswith("0")


def test_error_texts_only_on_request():
    instrument = EmulatedWT210()
    assert ask(instrument, ":NONSENSE", ":STAT:ERR?") == "113"


def test_command_error_drops_the_rest_of_the_message(bare):
    assert ask(bare, ":NONSENSE;*IDN?") == ""
    assert ask(bare, ":CONF:VOLT:RANG 1;*IDN?") == "YOKOGAWA,760401,0,F2.01"


def test_settings_are_refused_during_integration(bare):
    ask(bare, ":INTEG:STAR", ":SAMP:RATE 1", ":CONF:MODE DC", ":INTEG:STAR", ":INTEG:RES")
    codes = [ask(bare, ":STAT:ERR?").split(",")[0] for _ in range(5)]
    assert codes == ["813", "813", "842", "845", "0"]
    ask(bare, ":INTEG:STOP", ":SAMP:RATE 1")
    assert ask(bare, ":STAT:ERR?").startswith("813")  # only reset ends it
    ask(bare, ":INTEG:RES", ":SAMP:RATE 1")
    assert ask(bare, ":SAMP:RATE?;:STAT:ERR?") == '1.000E+00;0,"No error"'


def test_bytes_may_come_one_by_one_and_with_cr_lf(bare):
    output = b""
    for byte in b"*IDN?\r\n":
        bare.receive(bytes([byte]))
        output += bare.step(0.0)
    assert output == b"YOKOGAWA,760401,0,F2.01\r\n"


def test_input_buffer_holds_256_bytes(bare):
    bare.receive(b"x" * 300 + b"\n*IDN?\n")
    assert bare.step(0.0) == b""


@given(st.lists(st.binary(max_size=80), max_size=5))
def test_no_input_ever_stops_the_instrument(chunks):
    instrument = EmulatedWT210()
    for chunk in chunks:
        instrument.receive(chunk)
        instrument.step(0.0)
    instrument.receive(b"\n")
    instrument.step(0.0)
    if b"WAIT" in b"".join(chunks).upper():
        return
    ask(instrument, "*CLS")
    assert ask(instrument, "*IDN?") == "YOKOGAWA,760401,0,F2.01"


@given(st.sampled_from(["MEASure", "VOLTage", "INTEGrate", "COMMunicate"]), st.data())
def test_every_abbreviation_between_short_and_long_matches(word, data):
    short = sum(1 for letter in word if letter.isupper())
    length = data.draw(st.integers(1, len(word)))
    matched = match_header(pattern_nodes(word), [word.upper()[:length]]) is not None
    assert matched == (length >= short)


def test_blocked_dialogue_keeps_what_follows():
    held = [True]
    interpreter = Interpreter([Entry("A", lambda _: "1", bare=True)], lambda: held[0])
    interpreter.receive(b"A?\n")
    assert interpreter.run() == b""
    held[0] = False
    assert interpreter.run() == b"1\r\n"
