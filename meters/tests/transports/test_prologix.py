# SPDX-License-Identifier: Apache-2.0
"""The Prologix transport and the emulated controller, each against a script and both against each other."""

from __future__ import annotations

import pytest
from golden_sentences import raises
from instrument_threads import assert_each_update_once, running, spacing_s, until_good
from meter_dialogue import SILENCE, expected_dialogue

from netjoule_meters.adapters.power_analysers.wt210 import WT210
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.ports.network import TcpPort
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.emulated.power_analysers.prologix import EmulatedPrologix
from netjoule_meters.emulated.power_analysers.wt210 import EmulatedWT210
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.errors import NoAnswer, ReplyTimeout, UsageError
from netjoule_meters.meter_factory import open_meter
from netjoule_meters.transports.prologix import PrologixPort, prologix

VERSION = (b"++ver", b"Prologix GPIB-USB Controller version 6.107")
OPEN = [
    VERSION,
    *(
        (command, None)
        for command in (
            b"++savecfg 0",
            b"++mode 1",
            b"++auto 0",
            b"++addr 5",
            b"++eoi 1",
            b"++eos 2",
            b"++eot_enable 0",
            b"++read_tmo_ms 1000",
            b"++ifc",
            b"++clr",
        )
    ),
]
SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}


def opened(dialogue, clock):
    port = PrologixPort("prologix:x:5", dialogue, 5, clock=clock)
    port.open()
    return port


def test_an_answer_is_asked_for_with_read_eoi(clock):
    with expected_dialogue([*OPEN, (b"*IDN?", None), (b"++read eoi", b"YOKOGAWA")]) as dialogue:
        port = opened(dialogue, clock)
        port.write_line(b"*IDN?")
        port.write_line(b"")  # says nothing on a bus
        assert port.read_line(1) == b"YOKOGAWA"


def test_what_the_controller_would_take_for_itself_is_escaped(clock):
    with expected_dialogue([*OPEN, (b"A\x1b+1\x1b\r\x1b\x1b", None)]) as dialogue:
        opened(dialogue, clock).write_line(b"A+1\r\x1b")


def test_a_read_that_the_controller_gave_up_is_asked_for_again(clock):
    entries = [*OPEN, (b"++read eoi", SILENCE), (b"++read eoi", b"late")]
    with expected_dialogue(entries, clock.advance) as dialogue:
        assert opened(dialogue, clock).read_line(3) == b"late"


def test_a_wait_that_was_given_up_goes_on_without_asking_twice(clock):
    entries = [*OPEN, (b"++read eoi", SILENCE), (None, b"late")]
    with expected_dialogue(entries, clock.advance) as dialogue:
        port = opened(dialogue, clock)
        with pytest.raises(ReplyTimeout):
            port.read_line(0.3)
        assert port.read_line(0.3) == b"late"


def test_drain_clears_the_instrument(clock):
    with expected_dialogue([*OPEN, (b"++clr", None)]) as dialogue:
        opened(dialogue, clock).drain(0.05)


@pytest.mark.parametrize("answer", [SILENCE, b"YOKOGAWA,760401,0,F2.01"])
def test_something_else_than_a_controller(clock, answer):
    with (
        raises(NoAnswer),
        expected_dialogue([(b"++ver", answer)]) as dialogue,
    ):
        opened(dialogue, clock)


@pytest.mark.parametrize("resource", ["prologix:/dev/ttyUSB0", "prologix:/dev/ttyUSB0:31", "prologix::5"])
def test_a_resource_without_an_address(clock, resource):
    with raises(UsageError):
        prologix(resource, clock=clock)


# -- the emulated controller ---------------------------------------------------------------------------


class Bench:
    def __init__(self) -> None:
        self.controller = EmulatedPrologix(EmulatedWT210(update_interval_s=0.1))
        self.now_s = 0.0

    def ask(self, *lines: str, wait_s: float = 0.0) -> str:
        self.controller.receive("".join(line + "\n" for line in lines).encode())
        output = self.controller.step(self.now_s)
        self.now_s = round(self.now_s + wait_s, 6)
        return (output + self.controller.step(self.now_s)).decode().replace("\r\n", "|")


def test_controller_settings_can_be_asked_for():
    bench = Bench()
    assert bench.ask("++ver").startswith("Prologix")
    assert bench.ask("++addr 5", "++addr", "++auto") == "5|1|"
    assert bench.ask("++colour 1") == "Unrecognized command|"


def test_answers_wait_in_the_instrument_until_they_are_read():
    bench = Bench()
    bench.ask("++addr 5", "++auto 0")
    assert bench.ask("*IDN?", "*OPC?", wait_s=0.1) == ""
    assert bench.ask("++read eoi") == "YOKOGAWA,760401,0,F2.01|"
    assert bench.ask("++read eoi") == "1|"


def test_with_auto_every_line_is_read():
    bench = Bench()
    assert bench.ask("++addr 5", "*IDN?") == "YOKOGAWA,760401,0,F2.01|"


def test_a_read_without_an_answer_ends_without_a_word():
    bench = Bench()
    bench.ask("++addr 5", "++auto 0", "++read_tmo_ms 100", "++read eoi", wait_s=0.2)
    assert bench.controller.wake_s(bench.now_s) is None
    assert bench.ask("*IDN?") == ""


def test_nobody_is_at_another_address():
    bench = Bench()
    assert bench.ask("++addr 6", "*IDN?", "++read eoi", wait_s=1) == ""


def test_a_clear_forgets_answers_and_waits():
    bench = Bench()
    bench.ask("++addr 5", "++auto 0", "*IDN?", "++clr", ":COMM:WAIT 1", "*OPC?", "++clr", "*OPC?")
    assert bench.ask("++read eoi") == "1|"


def test_an_answer_that_comes_during_the_read_is_given_at_once():
    bench = Bench()
    bench.ask("++addr 5", "++auto 0", ":COMM:HEAD OFF", ":STAT:FILT1 FALL", ":COMM:WAIT 1", ":STAT:EESR?")
    assert bench.ask("++read eoi") == ""
    bench.controller.feed(PowerInterval(0.0, 0.2, 12.5))
    assert bench.controller.step(0.3) == b"1\r\n"


def test_escapes_are_undone():
    bench = Bench()
    assert bench.ask("++addr 5", "\x1b*IDN?") == "YOKOGAWA,760401,0,F2.01|"


# -- both together, on real ports ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pty", "tcp"])
def test_a_wt210_on_gpib_is_read_once_per_update(kind):
    port = PtyPort(None) if kind == "pty" else TcpPort()
    with running(EmulatedPrologix(EmulatedWT210(update_interval_s=0.1)), port):
        meter = open_meter(MeterConfig("m1", "client", "wt210", f"prologix:{port.name}:5", SETTINGS))
        try:
            readings = until_good(meter, 5)
        finally:
            meter.close()
    assert isinstance(meter, WT210) and meter.identification.firmware == "F2.01"
    assert_each_update_once(readings, 12.5)
    assert 0.075 < spacing_s(readings) < 0.25


def test_a_wt210_without_a_controller_is_no_controller():
    with (
        running(EmulatedWT210(update_interval_s=0.1), PtyPort(None)) as port,
        raises(NoAnswer),
    ):
        open_meter(MeterConfig("m1", "client", "wt210", f"prologix:{port.name}:5", SETTINGS))
