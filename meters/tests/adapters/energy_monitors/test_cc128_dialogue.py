# SPDX-License-Identifier: Apache-2.0
"""The CC128 adapter, message by message."""

from __future__ import annotations

import contextlib
import threading
from datetime import date

import pytest
from golden_sentences import raises
from meter_dialogue import SILENCE, UNPLUGGED, Dialogue, expected_dialogue

from netjoule_meters.adapters.energy_monitors.cc128 import CC128
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import NoAnswer, ReplyTimeout, UsageError, WrongInstrument
from netjoule_meters.reading import Flag


def live(watts=345, sensor=0, radio_id="01234", more="") -> bytes:
    return (
        f"<msg><src>CC128-v0.11</src><dsb>00089</dsb><time>13:02:39</time><tmpr>18.7</tmpr>"
        f"<sensor>{sensor}</sensor><id>{radio_id}</id><type>1</type>"
        f"<ch1><watts>{watts:05d}</watts></ch1>{more}</msg>"
    ).encode()


HISTORY = b"<msg><src>CC128-v0.11</src><dsb>00089</dsb><hist><dsw>00032</dsw><data></data></hist></msg>"
CLASSIC = b"<msg><src><name>CC02</name><id>00077</id></src><ch1><watts>00168</watts></ch1></msg>"
CLAMP_2 = "<ch2><watts>02000</watts></ch2>"


def unasked(*lines):
    return [(None, line) for line in lines]


@contextlib.contextmanager
def opened(clock, lines, first=None, **settings):
    entries = unasked(live() if first is None else first, *lines)
    with expected_dialogue(entries, wait=clock.advance, stamp=clock.monotonic_ns) as dialogue:
        meter = CC128(dialogue, settings, clock=clock)
        meter.open()
        yield meter


def opening_fails(clock, lines, error, **settings):
    meter = CC128(Dialogue(unasked(*lines), clock.advance), settings, clock=clock)
    with raises(error):
        meter.open()
    meter._transport.finish()


# -- opening -----------------------------------------------------------------------------------------------


def test_open_listens_for_display_firmware_and_transmitter(clock):
    with opened(clock, []) as meter:
        identity = meter.identification
    assert (identity.text, identity.firmware, identity.serial) == ("CC128-v0.11", "0.11", "01234")


def test_open_passes_over_half_a_message_history_and_other_sensors(clock):
    lines = [live()[70:], HISTORY, live(sensor=3), live(watts=12, sensor=4, radio_id="00042")]
    with opened(clock, lines[1:], first=lines[0], sensor=4) as meter:
        assert meter.identification.serial == "00042"


def test_silence(clock):
    opening_fails(clock, [SILENCE], NoAnswer)


def test_unreadable_bytes_name_the_baud_rate(clock):
    opening_fails(clock, [b"\xf8\x00\x80"] * 3, NoAnswer)


def test_another_instrument_that_talks_unasked(clock):
    lines = [b"230.12E+00,0.2064E+00,22.95E+00"] * 3
    opening_fails(clock, lines, NoAnswer)


def test_the_older_classic(clock):
    opening_fails(clock, [CLASSIC], WrongInstrument)


def test_a_sensor_that_is_not_heard_names_those_that_are(clock):
    lines = [live(sensor=0), HISTORY, live(sensor=2), SILENCE]
    opening_fails(clock, lines, NoAnswer, sensor=1)


def test_other_sensors_do_not_keep_it_listening_for_ever(clock):
    def lines():
        for _ in range(100):
            clock.advance(6)
            yield live(sensor=0)

    with expected_dialogue([]) as dialogue:
        feed = lines()
        dialogue.read_line = lambda _timeout_s: next(feed)
        with raises(NoAnswer):
            CC128(dialogue, {"sensor": 1}, clock=clock).open()
    assert clock.now_ns < 60e9


def test_history_alone(clock):
    opening_fails(clock, [HISTORY, SILENCE], NoAnswer)


def test_a_clamp_that_is_not_there(clock):
    opening_fails(clock, [live(more=CLAMP_2)], UsageError, channels="1+3")


def test_a_sensor_that_counts_impulses(clock):
    counting = live().replace(b"<type>1</type>", b"<type>2</type>")
    opening_fails(clock, [counting], UsageError)


@pytest.mark.parametrize("channels", ["", "0", "1+1", "1,2", "x", -1])
def test_channels_are_strict(clock, channels):
    with expected_dialogue([]) as dialogue, raises(UsageError):
        CC128(dialogue, {"channels": channels}, clock=clock)


# -- readings ----------------------------------------------------------------------------------------------


def test_a_message_is_a_reading_at_its_first_byte(clock):
    with opened(clock, [live(watts=351)]) as meter:
        clock.now_ns = 7_000_000_000
        reading = meter.read()
    assert (reading.t_ns, reading.power_w, reading.flag) == (7_000_000_000, 351.0, Flag.GOOD)
    assert (reading.voltage_v, reading.current_a) == (None, None)


def test_clamps_are_added(clock):
    with opened(clock, [live(more=CLAMP_2)], first=live(more=CLAMP_2), channels="1+2") as meter:
        assert meter.read().power_w == 2345.0


def test_one_clamp_of_two_and_a_number_from_a_command_line(clock):
    with opened(clock, [live(more=CLAMP_2)], first=live(more=CLAMP_2), channels=2) as meter:
        assert meter.read().power_w == 2000.0


def test_history_and_other_sensors_are_nobodys_reading(clock):
    with opened(clock, [HISTORY, live(sensor=5, watts=99), HISTORY, live(watts=350)]) as meter:
        assert meter.read().power_w == 350.0


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        (live()[:-40], Flag.GARBAGE),
        (live()[60:], Flag.GARBAGE),
        (live() + live(), Flag.GARBAGE),
        (b"<msg>\xff</msg>", Flag.GARBAGE),
        (live(radio_id="04000"), Flag.GARBAGE),  # another transmitter under the same number
        (live().replace(b"ch1", b"ch2"), Flag.NO_DATA),
    ],
)
def test_messages_that_are_no_readings(clock, line, flag):
    with opened(clock, [line, live(watts=350)]) as meter:
        reading = meter.read()
        assert (reading.flag, reading.power_w) == (flag, None)
        assert meter.read().power_w == 350.0


def test_a_missed_message_times_out_before_the_one_after_it(clock):
    with opened(clock, [SILENCE, live()]) as meter:
        began_ns = clock.now_ns
        with pytest.raises(ReplyTimeout):
            meter.read()
        assert 6.0 < (clock.now_ns - began_ns) / 1e9 < 12.0
        assert meter.read().power_w == 345.0


def test_other_sensors_do_not_hide_that_this_one_is_missed(clock):
    def lines():
        for sensor in (1, 2, 1, 2, 1, 2):
            clock.advance(3)
            yield live(sensor=sensor)

    with opened(clock, []) as meter:
        feed = lines()
        meter._transport.read_line = lambda _timeout_s: next(feed)
        with pytest.raises(ReplyTimeout):
            meter.read()


def flags(meter, count):
    rows = []
    for reading in meter.readings(threading.Event()):
        rows.append(reading.flag)
        if len(rows) == count:
            return rows
    raise AssertionError("the readings ended")


def test_one_missed_message_is_one_gap_row(clock):
    with opened(clock, [live(), SILENCE, live(), live()]) as meter:
        assert flags(meter, 4) == [Flag.GOOD, Flag.TIMEOUT, Flag.GOOD, Flag.GOOD]


def test_a_minute_of_silence_opens_the_port_anew(clock):
    with opened(clock, [live(), *[SILENCE] * 6, live(), live()]) as meter:
        assert flags(meter, 4) == [Flag.GOOD, Flag.TIMEOUT, Flag.RECONNECT, Flag.GOOD]
        assert meter._transport.opened == 2


def test_a_pulled_cable_is_a_reconnection(clock):
    with opened(clock, [live(), UNPLUGGED, live(), live(watts=7)]) as meter:
        assert flags(meter, 3) == [Flag.GOOD, Flag.RECONNECT, Flag.GOOD]


# -- probing, passport -------------------------------------------------------------------------------------


def test_probing_says_how_often_messages_come_also_when_one_is_missed(clock):
    with opened(clock, [live(), live(), SILENCE, live(), live()]) as meter:
        clock.step_ns = 2_000_000_000
        findings = meter.confirm(4)
    assert {finding.statement for finding in findings} == set(CC128.provisional)
    assert findings[0].holds and findings[0].seen == "6.00 s between messages, median of 3"


def test_passport_says_apparent_power_and_unknown_accuracy(clock):
    from netjoule_contracts import document_defects

    config = MeterConfig("m1", "client", "cc128", "dialogue", {}, calibration_date="2026-11-01")
    with opened(clock, []) as meter:
        document = meter.passport(config, date(2026, 11, 21)).document()
    assert document_defects("meter_passport", document) == []
    assert (document["quantity"], document["semantics"]) == ("apparent_power", "instantaneous")
    assert (
        document["accuracy"]["status"] == "unknown"
        and "warrants no accuracy" in document["accuracy"]["source"]
    )
    assert document["range"] == {"voltage_v": None, "current_a": None, "power_w": None}
    assert document["provisional"] and document["resolution"] == 1.0
