# SPDX-License-Identifier: Apache-2.0
"""The emulated HM8115-2."""

from __future__ import annotations

import itertools
import re

import pytest
from golden_sentences import raises
from hypothesis import given, settings
from hypothesis import strategies as st

from netjoule_meters.adapters.power_analysers.hm8115 import CYCLE_S, DIGITS, READING_RATIO
from netjoule_meters.adapters.power_analysers.hm8115_messages import digit_w, parse_measurement
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_analysers.hm8115 import DIP_EVERY, DIP_LATE_S, make
from netjoule_meters.emulated.power_analysers.hm8115_measurement import Errors, MeasurementSetup, measure
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions, make_instrument
from netjoule_meters.errors import UsageError

STEP_S = 0.01


class Bench:
    """An instrument under constant power, and a clock that is turned by hand."""

    def __init__(self, power_w: float = 22.93, *, set_up: bool = True, **options: object) -> None:
        self.instrument = make(EmulationOptions(**options))  # type: ignore[arg-type]
        self.power_w = power_w
        self.now_s = 0.0
        self.raw = b""
        if set_up:
            self.tell("SET:U3", "SET:I2")
            self.run(3 * CYCLE_S)
            self.tell("MA1")
            self.run(1.5 * CYCLE_S)  # the spike of the relay; then no line is under way
            self.raw = b""

    def tell(self, *commands: str) -> None:
        self.instrument.receive("".join(command + "\r" for command in commands).encode())

    def run(self, seconds: float, step_s: float = STEP_S) -> list[bytes]:
        """The pieces in which bytes came."""
        pieces = []
        for _ in range(round(seconds / step_s)):
            self.instrument.feed(PowerInterval(self.now_s, self.now_s + step_s, self.power_w))
            self.now_s = round(self.now_s + step_s, 6)
            piece = self.instrument.step(self.now_s)
            pieces.append(piece)
            self.raw += piece
        return pieces

    def lines(self) -> list[str]:
        text = self.raw.translate(None, b"\x11\x13").decode()
        return [line for line in text.split("\r") if line]

    def ask(self, command: str, seconds: float = 0.1) -> list[str]:
        self.raw = b""
        self.tell(command)
        self.run(seconds)
        return self.lines()

    def powers(self) -> list[float | None]:
        return [parse_measurement(line).value.number for line in self.lines()]


def test_commands_and_their_answers():
    bench = Bench(set_up=False)
    assert bench.ask("*idn?") == ["HAMEG HM8115-2"]
    assert bench.ask("VERSION?") == ["version 2.01"]
    assert bench.ask("STATUS?") == ["WATT U3 I3"]
    for command in ("FAV0", "FAV1", "BEEP", "BEEP0", "what?", "SET:U4", "SET:I0"):
        assert bench.ask(command) == []
    for command, function in (("VAR", "VAR"), ("VAMP", "VA"), ("PFAC", "PF"), ("WATT", "WATT")):
        assert bench.ask(command) == []
        assert bench.ask("STATUS?")[0].startswith(function + " U3")


def test_bytes_may_come_in_pieces_and_too_many_are_lost():
    bench = Bench(set_up=False)
    for piece in (b"*I", b"DN?"):
        bench.instrument.receive(piece)
        bench.run(0.1)
        assert bench.lines() == []
    assert bench.ask("") == ["HAMEG HM8115-2"]
    bench.instrument.receive(b"x" * 1000)
    bench.run(0.1)
    assert bench.ask("") == [] and len(bench.instrument._unfinished) == 0
    assert bench.ask("*IDN?") == ["HAMEG HM8115-2"]


def test_continuous_output_is_one_line_per_cycle_until_it_is_ended():
    bench = Bench()
    bench.run(10 * CYCLE_S)
    assert len(bench.lines()) == 10
    assert set(bench.lines()) == {"U3=230.0E+0 I2=0.100E+0 W=22.9E+0"}
    bench.tell("MA0")
    bench.run(2 * CYCLE_S)
    bench.raw = b""
    bench.run(3 * CYCLE_S)
    assert bench.lines() == []


def test_a_question_is_answered_at_the_end_of_the_measuring_cycle():
    bench = Bench()
    bench.tell("MA0")
    bench.run(2 * CYCLE_S)
    assert bench.ask("VAL?", 0.1) == []
    bench.run(CYCLE_S)
    assert bench.lines() == ["U3=230.0E+0 I2=0.100E+0 W=22.9E+0"]
    bench.ask("VAS?", 1.2 * CYCLE_S)
    assert bench.lines() == ["U3 I2 W=22.9E+0"]


def test_the_variant_with_ranges_alone():
    bench = Bench(variant="ranges")
    bench.run(2 * CYCLE_S)
    assert set(bench.lines()) == {"U3 I2 W=22.9E+0"}


def test_bytes_leave_one_at_a_time():
    bench = Bench()
    pieces = bench.run(CYCLE_S, step_s=0.001)
    sent = [piece for piece in pieces if piece]
    assert len(sent) > 30 and max(len(piece) for piece in sent) == 1
    slow = Bench(extra={"baud_rate": 1200})
    assert max(len(piece) for piece in slow.run(2 * CYCLE_S, step_s=0.005)) == 1


def test_flow_control_stands_inside_the_lines_and_around_answers():
    bench = Bench()
    bench.run(5 * CYCLE_S)
    for line in bench.raw.split(b"\r")[:-1]:
        assert re.search(rb"[^\r]\x13...\x11[^\r]", line), line
    bench.tell("MA0")
    bench.run(CYCLE_S)
    bench.raw = b""
    bench.tell("STATUS?")
    bench.run(0.1)
    assert bench.raw == b"\x13WATT U3 I2\r\x11"


def test_a_client_that_sends_xoff_is_heeded():
    bench = Bench()
    bench.instrument.receive(b"\x13")
    bench.raw = b""
    bench.run(3 * CYCLE_S)
    assert bench.raw == b""
    bench.instrument.receive(b"\x11")
    bench.run(CYCLE_S)
    assert len(bench.lines()) == 4


def test_a_range_change_costs_a_cycle_and_leaves_a_spike():
    bench = Bench()
    bench.tell("SET:I1")
    bench.run(4 * CYCLE_S)
    first, *rest = bench.lines()
    assert len(rest) == 2
    assert parse_measurement(first).current.number == 180.0
    assert set(rest) == {"U3=230.0E+0 I1=99.7E-3 W=22.93E+0"}
    bench.raw = b""
    bench.tell("SET:I1")  # no relay moves
    bench.run(4 * CYCLE_S)
    assert set(bench.lines()) == set(rest)


def test_every_500th_value_dips_and_is_late():
    bench = Bench()
    arrivals, lines = [], 0
    for _ in range(round((DIP_EVERY + 2) * CYCLE_S / STEP_S)):
        bench.run(STEP_S)
        if bench.raw.count(b"\r") > lines:
            lines += 1
            arrivals.append(bench.now_s)
    powers = bench.powers()
    assert powers.count(22.7) == 1 and set(powers) == {22.9, 22.7}
    dip = powers.index(22.7)
    spacings = [later - earlier for earlier, later in itertools.pairwise(arrivals)]
    assert spacings[dip - 1] == pytest.approx(CYCLE_S + DIP_LATE_S, abs=0.03)
    assert all(spacing == pytest.approx(CYCLE_S, abs=0.03) for spacing in spacings[: dip - 1])


def test_over_range_is_said_in_words():
    bench = Bench(power_w=450.0)
    bench.run(2 * CYCLE_S)
    assert set(bench.lines()) == {"U3=230.0E+0 I2=OF W=OF"}


def test_automatic_ranges_end_on_the_least_that_holds_the_value():
    bench = Bench(set_up=False)
    bench.run(8 * CYCLE_S)
    assert bench.ask("STATUS?") == ["WATT U3 I1"]
    bench.power_w = 400.0
    bench.run(8 * CYCLE_S)
    assert bench.ask("STATUS?") == ["WATT U3 I3"]
    bench.power_w = 22.93
    bench.tell("SET:I2")
    bench.run(8 * CYCLE_S)
    assert bench.ask("STATUS?") == ["WATT U3 I2"]
    bench.tell("AUTO:I")
    bench.run(8 * CYCLE_S)
    assert bench.ask("STATUS?") == ["WATT U3 I1"]


def test_a_stream_that_is_late_leaves_values_out_and_makes_none_up():
    bench = Bench()
    for _ in range(200):
        bench.now_s = round(bench.now_s + STEP_S, 6)
        bench.raw += bench.instrument.step(bench.now_s)
    assert len(bench.lines()) <= 2
    assert set(bench.powers()) <= {22.9}


def test_faults_on_request():
    bench = Bench()
    assert bench.instrument.take_fault("range_change", {}, bench.now_s)
    bench.run(3 * CYCLE_S)
    assert bench.powers() == [41400.0, 22.9]
    assert bench.instrument.take_fault("overflow", {"cycles": 2}, bench.now_s)
    bench.raw = b""
    bench.run(3 * CYCLE_S)
    assert bench.powers() == [None, None, 22.9]
    assert not bench.instrument.take_fault("http_500", {}, bench.now_s)


def test_other_functions():
    bench = Bench(supply=Supply(power_factor=0.5))
    for command, last in (("VAMP", "VA=45.8E+0"), ("VAR", "VAR=39.6E+0"), ("PFAC", "PF=0.50E+0")):
        bench.tell(command)
        bench.run(2 * CYCLE_S)
        assert bench.lines()[-1].split()[-1] == last
    bench.power_w = 0.0
    bench.run(3 * CYCLE_S)
    assert bench.lines()[-1].endswith("PF=OF")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.binary(max_size=20) | st.sampled_from([b"SET:U1\r", b"MA1\r", b"VAL?\r", b"\x13", b"\x11"]))
)
def test_no_bytes_from_a_client_upset_it(pieces):
    bench = Bench()
    for piece in pieces:
        bench.instrument.receive(piece)
        bench.run(0.05)
    bench.instrument.receive(b"\x11\r")
    bench.run(1.0)
    assert bench.ask("*IDN?")[-1:] == ["HAMEG HM8115-2"] or bench.instrument._values["continuous"]


@pytest.mark.parametrize("seed", range(30))
def test_each_seed_is_another_instrument_within_its_limits(seed):
    how = MeasurementSetup(3, 2)
    shown = measure(22.93, Supply(), how, Errors.drawn(seed))
    weight_w = digit_w(3, 2)
    assert shown.power_w is not None and shown.current_a is not None
    assert abs(shown.power_w - 22.93) <= READING_RATIO * 22.93 + (DIGITS + 0.5) * weight_w
    assert abs(shown.current_a - 22.93 / 230) <= 0.004 * 0.1 + 5.5 * 0.001
    assert Errors.drawn(seed) == Errors.drawn(seed) != Errors.drawn(seed + 1)


@pytest.mark.parametrize(
    "options",
    [
        {"update_interval_s": 0.1},
        {"variant": "quick"},
        {"extra": {"colour": 1}},
        {"extra": {"baud_rate": 57600}},
    ],
)
def test_options_the_real_one_does_not_have(options):
    with raises(UsageError):
        make_instrument("hm8115", EmulationOptions(**options))
