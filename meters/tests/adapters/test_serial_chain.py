# SPDX-License-Identifier: Apache-2.0
"""Adapters and emulated instruments of the serial meters against each other, on a clock turned by hand."""

from __future__ import annotations

import itertools
import threading
from datetime import date

import pytest

from netjoule_meters.adapters import adapter
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions, make_instrument
from netjoule_meters.errors import ReplyTimeout
from netjoule_meters.reading import Flag
from netjoule_meters.transports.line_framing import LINE_ENDS, LineAssembler

HM_SETTINGS = {"voltage_range_v": 500, "current_range_a": 0.16}


class Wire:
    """A transport in front of an emulated instrument; whoever waits moves the clock.

    ``power_w`` is a function of the time in s; a test may set ``spoil`` to change what arrives.
    """

    def __init__(self, instrument, clock, power_w, line_end, step_s):
        self.resource = "wire"
        self.first_byte_ns = 0
        self.instrument = instrument
        self.fed_until_s = 0.0
        self._clock = clock
        self._start_ns = clock.now_ns
        self._power_w = power_w
        self._line_end = LINE_ENDS[line_end]
        self._lines = LineAssembler(self._line_end)
        self._step_s = step_s
        self.spoil = lambda data: data

    def open(self):
        self._lines.clear()

    def close(self):
        pass

    def cancel(self):
        pass

    def write_line(self, line):
        self.instrument.receive(line + self._line_end.sent)
        self._receive()

    def read_line(self, timeout_s):
        deadline_ns = self._clock.now_ns + round(timeout_s * 1e9)
        while (line := self._lines.take()) is None:
            if self._clock.now_ns >= deadline_ns:
                raise ReplyTimeout(f"no answer within {timeout_s:g} s")
            self._advance()
        self.first_byte_ns = line.first_ns
        return line.text

    def drain(self, quiet_s):
        quiet_until_ns = self._clock.now_ns + round(quiet_s * 1e9)
        while self._clock.now_ns < quiet_until_ns:
            if self._advance():
                quiet_until_ns = self._clock.now_ns + round(quiet_s * 1e9)
        self._lines.clear()

    def _advance(self) -> bool:
        start_s = self.fed_until_s
        self.fed_until_s = round(start_s + self._step_s, 6)
        self.instrument.feed(PowerInterval(start_s, self.fed_until_s, self._power_w(start_s)))
        self._clock.advance(self._step_s)
        return self._receive()

    def _receive(self) -> bool:
        data = self.spoil(self.instrument.step((self._clock.now_ns - self._start_ns) / 1e9))
        self._lines.add(data, self._clock.now_ns)
        return bool(data)


def chain(name, clock, power_w, settings=None, step_s=0.01, **options):
    instrument = make_instrument(name, EmulationOptions(**options))
    kind = adapter(name)
    wire = Wire(instrument, clock, power_w, kind.interface_defaults.get("line_end", "lf"), step_s)
    meter = kind(wire, settings or {}, clock=clock)
    meter.open()
    return meter


def take(meter, count):
    return list(itertools.islice(meter.readings(threading.Event()), count))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("current_range_a", [0.16, 1.6])
def test_a_reading_lies_within_the_limits_of_the_passport(clock, seed, current_range_a):
    settings = {"voltage_range_v": 500, "current_range_a": current_range_a}
    power_w = 3.0 + 0.5 * seed
    meter = chain("hm8115", clock, lambda _t: power_w, settings, seed=seed)
    config = MeterConfig("m1", "client", "hm8115", "wire", settings, power_source="modelled")
    passport = meter.passport(config, date(2026, 11, 21)).document()
    limit_w = passport["accuracy"]["reading_ratio"] * power_w
    limit_w += passport["accuracy"]["range_ratio"] * passport["range"]["power_w"]
    readings = take(meter, 5)
    assert {reading.flag for reading in readings} == {Flag.GOOD}
    half_a_digit_w = limit_w * 0.05
    assert all(abs(reading.power_w - power_w) <= limit_w + half_a_digit_w for reading in readings)


@pytest.mark.parametrize("readout", ["continuous", "query"])
@pytest.mark.parametrize("variant", ["values", "ranges"])
def test_each_value_is_read_once(clock, readout, variant):
    """A saw-tooth whose every cycle differs: no value is lost, doubled or made up."""
    meter = chain(
        "hm8115",
        clock,
        lambda t_s: 10.0 + 0.05 * (int(t_s / 0.47 + 1e-6) % 200),
        {**HM_SETTINGS, "readout": readout},
        variant=variant,
    )
    readings = take(meter, 1200)
    assert {reading.flag for reading in readings} == {Flag.GOOD}
    cycles = [round((reading.power_w - 10.0) / 0.05) for reading in readings]
    steps = [(later - earlier) % 200 for earlier, later in itertools.pairwise(cycles)]
    # Only the two values that the instrument itself shows too low stand out, on both their sides.
    assert len(steps) - steps.count(1) <= 4
    assert sum(step if step < 100 else step - 200 for step in steps) == 1199
    spacings_s = [(later.t_ns - earlier.t_ns) / 1e9 for earlier, later in itertools.pairwise(readings)]
    assert sum(spacings_s) == pytest.approx(0.47 * 1199, abs=0.3)
    assert max(spacings_s) < 0.47 + 0.25 and min(spacings_s) > 0.47 - 0.25


def test_a_step_of_power_is_seen_one_cycle_late(clock):
    meter = chain("hm8115", clock, lambda t_s: 10.0 if t_s < 20.0 else 30.0, HM_SETTINGS)
    readings = take(meter, 60)
    first = next(reading for reading in readings if reading.power_w == pytest.approx(30.0, abs=0.01))
    late_s = (first.t_ns - 1_000_000_000) / 1e9 - 20.0
    assert 0.47 <= late_s <= 3 * 0.47


def test_a_front_panel_that_is_touched_is_seen_and_put_right(clock):
    meter = chain("hm8115", clock, lambda _t: 10.0, HM_SETTINGS)
    assert [reading.flag for reading in take(meter, 3)] == [Flag.GOOD] * 3
    meter._transport.instrument.receive(b"SET:I3\r")
    rows = take(meter, 40)
    flags = [reading.flag for reading in rows]
    reconnected = flags.index(Flag.RECONNECT)
    assert set(flags[reconnected + 1 :]) == {Flag.GOOD}
    assert flags.count(Flag.GARBAGE) == 10
    assert {reading.power_w for reading in rows} == {None, 10.0}


def test_over_range_is_a_flag_and_no_number(clock):
    meter = chain("hm8115", clock, lambda _t: 60.0, HM_SETTINGS)
    assert {(reading.flag, reading.power_w) for reading in take(meter, 4)} == {(Flag.OVERRANGE, None)}


def test_ranging_finds_ranges_and_holds_them(clock):
    meter = chain("hm8115", clock, lambda _t: 22.93, {"voltage_range_v": 500, "current_range_a": 16})
    meter.autorange(True)
    seen = [reading for reading in take(meter, 12) if reading.flag is Flag.GOOD]
    assert seen and max(reading.current_a for reading in seen) == pytest.approx(0.0997, abs=0.002)
    most_v, most_a = max(r.voltage_v for r in seen), max(r.current_a for r in seen)
    assert meter.choose_range(most_v, most_a, 23.0) == {"voltage_range_v": 500.0, "current_range_a": 0.16}
    meter.autorange(False)
    assert {reading.flag for reading in take(meter, 4)} == {Flag.GOOD}


def test_lost_bytes_never_make_a_number_that_cannot_be(clock):
    """Every 97th byte is lost: lines that can be told from whole ones are flagged."""
    place = itertools.count(1)
    meter = chain("hm8115", clock, lambda _t: 22.93, HM_SETTINGS)
    meter._transport.spoil = lambda data: bytes(byte for byte in data if next(place) % 97)
    readings = take(meter, 300)
    assert sum(reading.flag is Flag.GARBAGE for reading in readings) > 20
    good = [reading.power_w for reading in readings if reading.flag is Flag.GOOD]
    assert len(good) > 150
    # A digit lost inside a number cannot be told; it never makes more than voltage times current.
    assert max(good) <= 1.1 * 230 * 0.0997 + 0.2


def test_probing_the_emulated_instruments_confirms_their_pace(clock):
    meter = chain("hm8115", clock, lambda _t: 10.0, HM_SETTINGS)
    cycle, form, flow, *_ = meter.confirm(6)
    assert (cycle.holds, form.holds, flow.holds) == (True, True, True)
    radio = chain("cc128", clock, lambda _t: 100.0)
    assert radio.confirm(4)[0].holds


# -- CC128 -------------------------------------------------------------------------------------------------


def test_two_hours_of_radio_with_history_and_neighbours(clock):
    options = {"others": 3, "miss_ratio": 0.05, "clock_s": 14 * 3600}
    meter = chain("cc128", clock, lambda _t: 100.0, step_s=0.1, seed=5, extra=options)
    readings = take(meter, 1200)
    good = [reading for reading in readings if reading.flag is Flag.GOOD]
    gaps = [reading for reading in readings if reading.flag is Flag.TIMEOUT]
    assert len(good) + len(gaps) == 1200 and 20 < len(gaps) < 120
    assert len({reading.power_w for reading in good}) == 1
    spacings = [round((later.t_ns - earlier.t_ns) / 6e9) for earlier, later in itertools.pairwise(good)]
    # Every hole between two messages has its gap row, and there is no gap row without a hole.
    assert sum(spacing > 1 for spacing in spacings) == len(gaps)
    duration_s = (good[-1].t_ns - good[0].t_ns) / 1e9
    assert sum(spacings) == pytest.approx(duration_s / 6, rel=0.01)


def test_the_fed_sensor_is_found_among_others(clock):
    meter = chain("cc128", clock, lambda _t: 40.0, {"sensor": 7}, extra={"sensor": 7, "others": 4},
                  supply=Supply(voltage_v=240.0))  # fmt: skip
    assert {reading.power_w for reading in take(meter, 5)} == {40.0}
