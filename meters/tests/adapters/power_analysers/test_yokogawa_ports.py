# SPDX-License-Identifier: Apache-2.0
"""Both Yokogawas on real ports: what a person reads when something is wrong, ranging, the integrator."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest
from golden_sentences import raises
from instrument_threads import (
    assert_counts_whole_updates,
    assert_each_update_once,
    next_update,
    running,
    spacing_s,
    until_good,
)

from netjoule_meters.adapters.base import Meter
from netjoule_meters.clock import SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.ports.network import TcpPort
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.emulated.registry import EmulationOptions, client_resource, make_instrument
from netjoule_meters.errors import (
    MeterUnavailable,
    NoAnswer,
    PortUnavailable,
    UsageError,
    WrongInstrument,
    WrongMode,
)
from netjoule_meters.meter_factory import build_meter, open_meter
from netjoule_meters.reading import Flag

SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}
BOTH = pytest.mark.parametrize("name", ["wt210", "wt310"])


def config(name, resource, **settings) -> MeterConfig:
    return MeterConfig("m1", "client", name, str(resource), {**SETTINGS, **settings})


@contextlib.contextmanager
def emulated(name, kind="pty", power_w=12.5):
    instrument = make_instrument(name, EmulationOptions(update_interval_s=0.1))
    with running(instrument, TcpPort() if kind == "tcp" else PtyPort(None), power_w) as port:
        yield client_resource("{port}", kind, port.name)


@contextlib.contextmanager
def answering(answer: bytes | None):
    """A pseudo-terminal where something answers each question with ``answer``, or nothing does."""
    port = PtyPort(None)
    os.set_blocking(port.master, True)
    # Its own: the number of one that was closed is soon that of the next test's.
    master = os.dup(port.master)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(master, 4096):
                if answer is not None and b"?" in data:
                    os.write(master, answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield port.device
    finally:
        port.close()
        thread.join()  # the last to hold the other end has gone
        os.close(master)


@BOTH
@pytest.mark.parametrize("kind", ["pty", "tcp"])
def test_each_update_is_read_once(name, kind):
    with emulated(name, kind) as resource:
        meter = open_meter(config(name, resource))
        try:
            readings = until_good(meter, 5)
        finally:
            meter.close()
    assert_each_update_once(readings, 12.5)


@BOTH
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, NoAnswer),
        (b"\x80\xff\x00\xf8\r\n", WrongMode),
        (b"V1  230.12E+0\r\n", WrongMode),
        (b"HAMEG HM8115-2\r\n", WrongMode),
        (b"YOKOGAWA,WT500,C1,F1.0\r\n", WrongInstrument),
        (b"HAMEG Instruments,HM8115-2,1,2.0\r\n", WrongInstrument),
    ],
)
def test_wrong_baud_rate_mode_and_instrument(name, answer, error, monkeypatch):
    if answer is None:
        monkeypatch.setattr(Meter, "reply_timeout_s", 0.3)
    with answering(answer) as device, raises(error) as caught:
        open_meter(config(name, device))
    text = str(caught.value)
    assert device in text and "\n" not in text and caught.value.exit_code == 3


@BOTH
@pytest.mark.parametrize("resource", ["/dev/ttyNONE9", "tcp:127.0.0.1:9", "prologix:/dev/ttyNONE9:5"])
def test_wrong_port(name, resource):
    with pytest.raises(PortUnavailable) as caught:
        open_meter(config(name, resource))
    assert "\n" not in str(caught.value) and caught.value.exit_code == 3


@BOTH
def test_the_one_is_not_taken_for_the_other(name):
    other = {"wt210": "wt310", "wt310": "wt210"}[name]
    with emulated(other) as resource, raises(WrongInstrument):
        open_meter(config(name, resource))


def test_usb_that_is_not_there_and_a_way_that_a_meter_does_not_have():
    with raises(MeterUnavailable):
        open_meter(config("wt310", "usbtmc:/dev/usbtmc9"))
    with raises(UsageError):
        open_meter(config("wt210", "usbtmc:/dev/usbtmc0"))


@BOTH
def test_garbage_and_part_of_a_line_before_the_dialogue_do_no_harm(name):
    port = PtyPort(None)
    with running(make_instrument(name, EmulationOptions(update_interval_s=0.1)), port):
        port.write(b"\x00\xffE+00,9.9")
        meter = open_meter(config(name, port.device))
        try:
            assert_each_update_once(until_good(meter, 3), 12.5)
            port.write(b"\x91\x00garbage\r\n")
            flags = [next_update(meter).flag for _ in range(4)]
            flags += [reading.flag for reading in until_good(meter, 1)]
        finally:
            meter.close()
    assert flags.count(Flag.GARBAGE) == 1 and Flag.GOOD in flags


@BOTH
def test_a_ranging_pass_finds_the_range_and_the_campaign_holds_it(name):
    with emulated(name, power_w=60.0) as resource:
        meter = open_meter(config(name, resource, voltage_range_v=600, current_range_a=20))
        try:
            meter.autorange(True)
            seen = [next_update(meter) for _ in range(5)] + until_good(meter, 3)
            meter.autorange(False)
            held = until_good(meter, 3)
        finally:
            meter.close()
        good = [reading for reading in seen if reading.flag is Flag.GOOD]
        assert Flag.NO_DATA in {reading.flag for reading in seen}, "a range change leaves a hole"
        assert len(good) >= 3 and good[-1].power_w == pytest.approx(60.0, rel=1e-3)
        assert_each_update_once(held, held[-1].power_w)
        chosen = meter.choose_range(
            max(reading.voltage_v for reading in good),
            max(reading.current_a for reading in good),
            max(reading.power_w for reading in good),
        )
        assert chosen == {"voltage_range_v": 300.0, "current_range_a": 0.5}
        meter = open_meter(config(name, resource, **chosen))
        try:
            assert_each_update_once(until_good(meter, 3), 60.0)
        finally:
            meter.close()


@BOTH
def test_rows_carry_the_integrator_when_it_is_asked_for(name):
    with emulated(name) as resource:
        meter = open_meter(config(name, resource, integrate=True))
        try:
            readings = [next_update(meter) for _ in range(6)]
            meter.open()  # as after a pulled cable: locked settings are unlocked, it starts again
            again = next_update(meter)
        finally:
            meter.close()
    assert_counts_whole_updates(readings, 12.5, 0.1)
    assert 0 <= again.energy_j < readings[-1].energy_j


def test_an_overload_that_moves_the_range_is_over_range_until_it_is_set_again():
    instrument = make_instrument("wt310", EmulationOptions(update_interval_s=0.1, variant="wt310e"))
    told: list[str] = []
    with running(instrument, PtyPort(None), power_w=50.0) as port:
        overloaded = config("wt310", port.device, model="WT310E", current_range_a=0.2)
        meter = build_meter(overloaded, clock=SystemClock(), notify=told.append)
        meter.open()
        try:
            until_good(meter, 1)
            instrument.take_fault("overload", {}, 0.0)
            after = [next_update(meter).flag for _ in range(5)]
            meter.open()
            until_good(meter, 1)
        finally:
            meter.close()
    assert Flag.GOOD not in after[1:] and Flag.OVERRANGE in after
    assert len([text for text in told if "left its range" in text]) == 1


@BOTH
def test_at_9600_baud_every_quarter_of_a_second_is_read(name):
    options = EmulationOptions(update_interval_s=0.25, extra={"baud_rate": 9600})
    with running(make_instrument(name, options), PtyPort(None)) as port:
        meter = open_meter(config(name, port.device, update_interval_s=0.25))
        try:
            readings = until_good(meter, 5)
        finally:
            meter.close()
    assert_each_update_once(readings, 12.5)
    assert 0.2 < spacing_s(readings) < 0.4
