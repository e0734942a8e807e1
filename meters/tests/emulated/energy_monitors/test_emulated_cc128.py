# SPDX-License-Identifier: Apache-2.0
"""The emulated CC128: pace of the radio, lost messages, history."""

from __future__ import annotations

import itertools

import pytest
from golden_sentences import raises

from netjoule_meters.adapters.energy_monitors.cc128_messages import History, Live, parse_message
from netjoule_meters.emulated.energy_monitors.cc128 import GAIN_LIMIT, NOMINAL_V, OFFSET_LIMIT_W, make
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions, make_instrument
from netjoule_meters.errors import UsageError

STEP_S = 0.1
EXACT = Supply(voltage_v=NOMINAL_V)


class Bench:
    def __init__(self, power_w: float = 100.0, **options: object) -> None:
        options.setdefault("supply", EXACT)
        self.instrument = make(EmulationOptions(**options))  # type: ignore[arg-type]
        self.power_w = power_w
        self.now_s = 0.0
        self.messages: list[tuple[float, Live | History]] = []
        self._rest = b""

    def run(self, seconds: float, *, feed: bool = True) -> None:
        for _ in range(round(seconds / STEP_S)):
            if feed:
                self.instrument.feed(PowerInterval(self.now_s, self.now_s + STEP_S, self.power_w))
            self.now_s = round(self.now_s + STEP_S, 6)
            *lines, self._rest = (self._rest + self.instrument.step(self.now_s)).split(b"\r\n")
            self.messages += [(self.now_s, parse_message(line.decode())) for line in lines]

    def live(self, sensor: int = 0) -> list[tuple[float, int]]:
        return [
            (t_s, message.watts[1])
            for t_s, message in self.messages
            if isinstance(message, Live) and message.sensor == sensor
        ]


def test_a_message_about_every_six_seconds():
    bench = Bench()
    bench.run(120)
    times = [t_s for t_s, _ in bench.live()]
    spacings = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) == 20
    assert all(5.7 < spacing < 6.3 for spacing in spacings) and len({round(s, 3) for s in spacings}) > 1
    assert {watts for _, watts in bench.live()} == {100}


def test_it_takes_voltage_and_power_factor_for_granted():
    bench = Bench(supply=Supply(voltage_v=230.0, power_factor=0.5))
    bench.run(10)
    assert bench.live()[0][1] == round(100 / 0.5 * 240 / 230)


def test_a_value_is_that_of_a_second_before_the_message():
    bench = Bench()
    bench.run(10)
    bench.power_w = 300.0
    bench.run(6)
    before, after = bench.live()[-2:]
    assert (before[1], after[1]) == (100, 300)


@pytest.mark.parametrize("seed", range(20))
def test_each_seed_is_another_clamp_and_loses_other_messages(seed):
    bench = Bench(seed=seed, extra={"history": False})
    bench.run(30)
    assert all(abs(watts - 100) <= GAIN_LIMIT * 100 + OFFSET_LIMIT_W + 0.5 for _, watts in bench.live())
    assert len({watts for _, watts in bench.live()}) == 1


def test_the_radio_loses_messages():
    bench = Bench(seed=1, extra={"miss_ratio": 0.3, "history": False})
    bench.run(600)
    assert 50 < len(bench.live()) < 90
    lost_all = Bench(seed=1, extra={"miss_ratio": 1.0})
    lost_all.run(60)
    assert lost_all.live() == []


def test_other_sensors_have_identities_and_times_of_their_own():
    bench = Bench(extra={"sensor": 1, "others": 2})
    bench.run(30)
    ids = {m.sensor: m.radio_id for _, m in bench.messages if isinstance(m, Live)}
    assert set(ids) == {0, 1, 2} and len(set(ids.values())) == 3
    assert len({t_s for t_s, _ in bench.messages}) == len(bench.messages)


def test_history_comes_in_bursts_from_one_minute_past_odd_hours():
    # The display's clock says 14:59:40, so 80 s later it is 15:01.
    bench = Bench(power_w=60_000.0, extra={"clock_s": 14 * 3600 + 59 * 60 + 40})
    bench.run(110)
    bursts = [t_s for t_s, message in bench.messages if isinstance(message, History)]
    assert bursts == pytest.approx([80, 90, 100], abs=0.4)
    assert len(bench.live()) == 18
    bench.run(7200 - 110)
    assert len([1 for _, message in bench.messages if isinstance(message, History)]) == 3
    bench.run(120)
    assert len([1 for _, message in bench.messages if isinstance(message, History)]) == 6


def test_without_power_it_says_nothing_and_makes_nothing_up():
    bench = Bench()
    bench.run(20, feed=False)
    assert bench.messages == []
    bench.run(20)
    count = len(bench.live())
    bench.run(30, feed=False)
    assert len(bench.live()) <= count + 1


def test_it_listens_to_nothing():
    bench = Bench()
    bench.instrument.receive(b"*IDN?\r\n" * 100)
    bench.run(20)
    assert len(bench.live()) == len(bench.messages) == 3


def test_faults_on_request():
    bench = Bench(extra={"history": False})
    bench.run(10)
    assert bench.instrument.take_fault("miss", {"count": 2}, bench.now_s)
    bench.run(18)
    assert len(bench.live()) == 3
    assert bench.instrument.take_fault("history", {}, bench.now_s)
    bench.run(30)
    assert len([1 for _, message in bench.messages if isinstance(message, History)]) == 3
    assert not bench.instrument.take_fault("overflow", {}, bench.now_s)


@pytest.mark.parametrize(
    "options",
    [
        {"update_interval_s": 1.0},
        {"variant": "classic"},
        {"extra": {"miss_ratio": 7}},
        {"extra": {"miss_ratio": "abc"}},
        {"extra": {"colour": 1}},
    ],
)
def test_options_the_real_one_does_not_have(options):
    with raises(UsageError):
        make_instrument("cc128", EmulationOptions(**options))
