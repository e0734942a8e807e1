# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.adapters.energy_monitors.cc128_messages import History, Live, is_classic, parse_message
from netjoule_meters.errors import GarbageReply

# The example of the vendor's document.
LIVE = (
    "<msg><src>CC128-v0.11</src><dsb>00089</dsb><time>13:02:39</time><tmpr>18.7</tmpr><sensor>1</sensor>"
    "<id>01234</id><type>1</type><ch1><watts>00345</watts></ch1><ch2><watts>02151</watts></ch2>"
    "<ch3><watts>00000</watts></ch3></msg>"
)
HISTORY = (
    "<msg><src>CC128-v0.11</src><dsb>00089</dsb><time>13:10:50</time><hist><dsw>00032</dsw><type>1</type>"
    "<units>kwhr</units><data><sensor>0</sensor><h024>001.1</h024><h022>000.9</h022></data></hist></msg>"
)


def test_a_live_message():
    assert parse_message(LIVE) == Live("CC128-v0.11", 1, "01234", 1, {1: 345, 2: 2151, 3: 0})


def test_history_is_known_and_empty():
    assert parse_message(HISTORY) == History()


def test_a_negative_power_and_a_display_in_fahrenheit():
    text = LIVE.replace("00345", "-0345").replace("<tmpr>18.7</tmpr>", "<tmprF>65.6</tmprF>")
    message = parse_message(text)
    assert isinstance(message, Live) and message.watts[1] == -345


def test_a_sensor_that_counts_impulses_has_no_watts():
    start = LIVE.index("<type>")
    text = LIVE[:start] + "<type>2</type><imp>0000012345</imp><ipu>1000</ipu></msg>"
    message = parse_message(text)
    assert isinstance(message, Live) and (message.kind, message.watts) == (2, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        LIVE[40:],  # the port was opened in the middle of a message
        LIVE[:-30],  # the end was lost
        LIVE[:60] + LIVE,  # the end of one and the whole next one
        LIVE.replace("<watts>00345", "<watts>"),
        LIVE.replace("00345", "003x5"),
        LIVE.replace("00345", "0345"),
        LIVE.replace("<sensor>1</sensor>", ""),
        LIVE.replace("<sensor>1<", "<sensor>one<"),
        LIVE.replace("<ch2>", "<ch1>").replace("</ch2>", "</ch1>"),
        LIVE.replace("<dsb>", "<id>").replace("</dsb>", "</id>"),
        "230.12E+00,0.2064E+00,22.95E+00",
    ],
)
def test_what_is_not_one_whole_message(text):
    with pytest.raises(GarbageReply):
        parse_message(text)


@given(st.integers(0, len(LIVE) - 1), st.integers(1, len(LIVE)))
def test_a_lost_piece_never_makes_another_power(start, length):
    """A whole clamp may be missing, which the adapter notices; no clamp shows another number."""
    try:
        message = parse_message(LIVE[:start] + LIVE[start + length :])
    except GarbageReply:
        return
    assert isinstance(message, Live)
    assert message.watts.items() <= {1: 345, 2: 2151, 3: 0}.items()


@given(st.text(), st.integers(0, len(LIVE)))
def test_any_text_is_a_message_or_refused(text, place):
    for line in (text, LIVE[:place] + text + LIVE[place:]):
        try:
            parse_message(line)
        except GarbageReply as error:
            assert str(error)


def test_the_older_classic_is_known():
    assert is_classic("<msg><date><dsb>00030</dsb></date><src><name>CC02</name><id>00077</id></src></msg>")
    assert not is_classic(LIVE)
