# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest
from golden_sentences import raises
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.emulated.power_history import (
    BadPowerStream,
    PowerHistory,
    PowerInterval,
    parse_interval,
)
from netjoule_meters.emulated.update_grid import UpdateGrid


def history(*intervals: tuple[float, float, float]) -> PowerHistory:
    filled = PowerHistory()
    for interval in intervals:
        filled.append(PowerInterval(*interval))
    return filled


def test_mean_weighs_by_overlap():
    assert history((0, 1, 10), (1, 2, 20)).mean_w(0.5, 2) == pytest.approx((0.5 * 10 + 20) / 1.5)


def test_a_hole_or_an_end_gives_no_mean():
    assert history((0, 1, 10), (1.1, 2, 10)).mean_w(0.5, 1.5) is None
    assert history((0, 1, 10)).mean_w(0.5, 1.5) is None


def test_rounding_to_microseconds_is_not_a_hole():
    assert history((0, 0.333333, 10), (0.333334, 1, 10)).mean_w(0, 1) == pytest.approx(10)


def test_time_never_goes_back():
    with raises(BadPowerStream):
        history((0, 1, 10), (0.5, 1.5, 10))


def test_line_of_a_device_stream():
    line = json.dumps({"t_start_s": 1, "t_end_s": 1.1, "power_w": 5.5, "extrapolated": False, "terms": {}})
    assert parse_interval(line) == PowerInterval(1, 1.1, 5.5)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "7",
        "[]",
        "{",
        '{"t_start_s": 1, "t_end_s": 2}',
        '{"t_start_s": 1, "t_end_s": 1, "power_w": 3}',
        '{"t_start_s": 1, "t_end_s": 2, "power_w": NaN}',
        '{"t_start_s": 1, "t_end_s": 2, "power_w": null}',
    ],
)
def test_other_lines_are_refused_with_the_reason(line):
    with pytest.raises(BadPowerStream):
        parse_interval(line)


@given(st.text(max_size=40))
def test_any_text_is_an_interval_or_refused(text):
    try:
        parse_interval(text)
    except BadPowerStream as error:
        assert str(error)


@given(
    st.lists(st.floats(0.1, 100), min_size=3, max_size=30),
    st.floats(0, 0.1),
    st.sampled_from([0.1, 0.25]),
)
def test_grid_shows_the_mean_of_each_whole_window_once_and_energy_adds_up(powers, phase, tau):
    filled = PowerHistory()
    grid = UpdateGrid(tau, filled)
    shown = []
    for index, power_w in enumerate(powers):
        filled.append(PowerInterval(phase + 0.1 * index, phase + 0.1 * (index + 1), power_w))
    end_s = phase + 0.1 * len(powers)
    now_s = phase
    while now_s < end_s + 2 * tau:
        while (update := grid.take(now_s)) is not None:
            shown.append(update.mean_w)
        now_s += 0.01
    known = [mean for mean in shown if mean is not None]
    windows = int((end_s - phase) / tau + 1e-6)
    assert len(known) == windows
    edge = windows * tau / 0.1
    whole = (
        sum(powers[: int(edge + 1e-6)])
        + (edge % 1 > 1e-6) * (edge % 1) * powers[min(int(edge), len(powers) - 1)]
    )
    if abs(edge - round(edge)) < 1e-6:
        assert sum(known) * tau == pytest.approx(0.1 * whole, rel=1e-6)


def test_values_are_shown_one_period_late():
    grid = UpdateGrid(0.1, history((0.0, 0.1, 5.0), (0.1, 0.2, 7.0), (0.2, 0.3, 9.0)))
    assert grid.due_s() == pytest.approx(0.2)
    assert grid.take(0.19) is None
    update = grid.take(0.2)
    assert update is not None and update.mean_w == pytest.approx(5.0)
    assert grid.take(0.29) is None
    update = grid.take(0.3)
    assert update is not None and update.mean_w == pytest.approx(7.0)


def test_a_late_stream_is_waited_for_half_a_period_and_then_there_is_no_data():
    filled = history((0.0, 0.1, 5.0))
    grid = UpdateGrid(0.1, filled)
    assert grid.take(0.2) is not None
    assert grid.take(0.30) is None
    assert grid.wake_s(0.30) == pytest.approx(0.35)
    filled.append(PowerInterval(0.1, 0.2, 7.0))
    late = grid.take(0.34)
    assert late is not None and late.mean_w == pytest.approx(7.0)
    lost = grid.take(0.45)
    assert lost is not None and lost.mean_w is None


def test_a_hole_is_no_data_at_once():
    grid = UpdateGrid(0.1, history((0.0, 0.05, 5.0), (0.3, 0.4, 5.0)))
    update = grid.take(0.2)
    assert update is not None and update.mean_w is None


def test_an_instrument_that_was_held_up_loses_updates_instead_of_showing_old_ones():
    filled = history(*((0.1 * n, 0.1 * (n + 1), float(n)) for n in range(30)))
    grid = UpdateGrid(0.1, filled)
    first = grid.take(0.2)
    assert first is not None and first.mean_w == pytest.approx(0.0)
    after_a_second = grid.take(1.25)
    assert after_a_second is not None and after_a_second.mean_w == pytest.approx(10.0)
    assert grid.take(1.25) is None


def test_nothing_is_shown_before_the_stream_begins():
    grid = UpdateGrid(0.1, PowerHistory())
    assert grid.due_s() is None
    assert grid.take(100.0) is None


def test_another_rate_starts_with_a_whole_window_after_the_change():
    filled = history((0.0, 3.0, 5.0))
    grid = UpdateGrid(0.1, filled)
    grid.restart(0.5, now_s=0.7)
    assert grid.due_s() == pytest.approx(1.0 + 0.5 + 0.5)
