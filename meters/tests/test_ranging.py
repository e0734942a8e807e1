# SPDX-License-Identifier: Apache-2.0
"""The ranging pass: which readings count, which range follows, and that autorange never stays on."""

from __future__ import annotations

import threading

import pytest
from golden_sentences import raises
from meter_dialogue import Dialogue

from netjoule_meters.adapters import adapter
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import MeterUnavailable, ReplyTimeout, UsageError
from netjoule_meters.meter_factory import build_meter
from netjoule_meters.ranging import chosen, range_settings, ranging_pass, require_fixed, wants_ranging, widest
from netjoule_meters.reading import Flag, Reading

AUTO = {"voltage_range_v": "auto", "current_range_a": "auto"}
FIXED = {"voltage_range_v": 300, "current_range_a": 20}


def config(**settings: object) -> MeterConfig:
    return MeterConfig("m", "client", "wt210", "/dev/ttyS0", dict(settings))


def wt210(clock):
    return adapter("wt210")(Dialogue([]), FIXED, clock=clock)


def reading(power_w: float, current_a: float, flag: Flag = Flag.GOOD) -> Reading:
    return Reading(0, power_w, 230.0, current_a, flag=flag)


def test_ranges_are_settings_with_choices():
    assert {s.name for s in range_settings(adapter("wt210"))} == {"voltage_range_v", "current_range_a"}
    assert range_settings(adapter("cc128")) == ()


def test_auto_asks_for_a_pass_and_the_widest_range_stands_in_meanwhile():
    assert wants_ranging(config(**AUTO))
    assert wants_ranging(config(voltage_range_v=300, current_range_a="auto"))
    assert not wants_ranging(config(**FIXED))
    assert widest(config(voltage_range_v=60, current_range_a="auto")).settings == {
        "voltage_range_v": 60,
        "current_range_a": 20.0,
    }
    assert widest(config()).settings == {"voltage_range_v": 600.0, "current_range_a": 20.0}


def test_the_least_range_with_head_room_is_chosen(clock):
    found = chosen(wt210(clock), [reading(10, 0.04), reading(11, 0.0454), reading(10, 0.041)])
    assert found.settings == {"voltage_range_v": 300.0, "current_range_a": 0.05}
    assert (found.most_v, found.most_a, found.most_w, found.readings) == (230.0, 0.0454, 11, 3)
    tight = chosen(wt210(clock), [reading(10, 0.0456)] * 3)
    assert tight.settings["current_range_a"] == 0.1, "0.0456 A leaves less than 10 % of 0.05 A"


def test_readings_of_a_range_change_count_for_nothing_but_are_told(clock):
    seen = [reading(10, 0.04)] * 3 + [reading(900, 4.0, Flag.OVERRANGE), Reading(0, flag=Flag.NO_DATA)]
    found = chosen(wt210(clock), seen)
    assert found.most_a == 0.04 and found.over == 1 and found.readings == 3


def test_a_pass_without_readings_is_no_pass(clock):
    with raises(MeterUnavailable):
        chosen(wt210(clock), [reading(1, 0.1), reading(1, 0.1), Reading(0, flag=Flag.TIMEOUT)])


def test_a_pass_without_load_chooses_nothing(clock):
    with raises(UsageError):
        chosen(wt210(clock), [reading(0.0, 0.0)] * 3)


def test_a_load_beyond_every_range_is_refused(clock):
    with raises(UsageError):
        chosen(wt210(clock), [reading(4000, 19.0)] * 3)


class Watched:
    """A meter that notes autorange and gives a reading each half second of a fake clock."""

    model = "WT210"

    def __init__(self, clock, fails: bool = False) -> None:
        self.switched: list[bool] = []
        self._clock, self._fails = clock, fails

    def autorange(self, on: bool) -> None:
        self.switched.append(on)

    def readings(self, stop: threading.Event):
        while not stop.is_set():
            if self._fails:
                raise MeterUnavailable("gone")
            self._clock.advance(0.5)
            yield reading(10, 0.04)

    def choose_range(self, most_v: float, most_a: float, most_w: float) -> dict[str, object]:
        return {"current_range_a": most_a}


def test_a_pass_lasts_its_time_and_ends_in_fixed_ranges(clock):
    meter = Watched(clock)
    found = ranging_pass(meter, 3.0, clock, threading.Event())
    assert found.readings == 6 and meter.switched == [True, False]


def test_autorange_is_off_after_a_pass_that_failed(clock):
    meter = Watched(clock, fails=True)
    with pytest.raises(MeterUnavailable):
        ranging_pass(meter, 3.0, clock, threading.Event())
    assert meter.switched == [True, False]


@pytest.mark.parametrize("lost_on", [True, False])
def test_a_meter_that_stops_answering_while_it_is_switched_is_one_sentence(clock, lost_on):
    class Lost(Watched):
        def autorange(self, on: bool) -> None:
            super().autorange(on)
            if on is lost_on:
                raise ReplyTimeout("no answer within 2 s")

    with raises(MeterUnavailable):
        ranging_pass(Lost(clock), 3.0, clock, threading.Event())


def test_auto_is_refused_where_readings_are_to_be_used(clock):
    require_fixed("wt210", FIXED)
    with raises(UsageError):
        build_meter(config(**AUTO), clock=clock)
