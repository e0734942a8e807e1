# SPDX-License-Identifier: Apache-2.0
"""What readings stand for, against numbers worked by hand: instants, counts, steps, integrator, grades."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netjoule_energy.power.idle import interpolate
from netjoule_energy.power.integrator import check_integrator
from netjoule_energy.power.readings import (
    ENERGY_COUNTER,
    INSTANTANEOUS,
    INTERVAL_MEAN,
    Readings,
    joined,
    mean_power,
)
from netjoule_energy.power.resolution import counter_step_j, half_widths_w
from netjoule_energy.power.windows import Window
from netjoule_energy.run.node_power import tail_energy_j
from netjoule_energy.uncertainty.grade import grade_of


def instants(powers: list[float], *, flags: list[str] | None = None, lag_s: float = 0.0) -> Readings:
    t_s = np.arange(len(powers), dtype=float) + lag_s
    marks = np.array(flags or [""] * len(powers), dtype=np.str_)
    return Readings(t_s, np.array(powers, dtype=float), marks, 1.0, lag_s, INSTANTANEOUS)


def counts(
    energies: list[float],
    *,
    modulus: float | None = None,
    times: list[float] | None = None,
    lag_s: float = 0.0,
) -> Readings:
    t_s = np.array(times if times is not None else range(len(energies)), dtype=float) + lag_s
    empty, marks = np.full(t_s.size, math.nan), np.array([""] * t_s.size, dtype=np.str_)
    return Readings(t_s, empty, marks, 1.0, lag_s, ENERGY_COUNTER, np.array(energies, dtype=float), modulus)


def test_trapezoids_are_cut_at_the_edges() -> None:
    # 2 W rising to 4 W in the first second, then falling to 1 W: from 0.5 s (3 W) to 1.5 s (2.5 W).
    mean = mean_power(instants([2.0, 4.0, 1.0]), Window(0.5, 1.5))
    assert mean.mean_w == pytest.approx((3.5 * 0.5 + 3.25 * 0.5) / 1.0)
    assert (mean.coverage, mean.readings) == (pytest.approx(1.0), 3)


def test_instants_use_the_lag() -> None:
    assert mean_power(instants([2.0, 4.0, 1.0], lag_s=0.7), Window(0.5, 1.5)).mean_w == pytest.approx(3.375)


def test_no_trapezoid_is_laid_over_a_lost_reading() -> None:
    mean = mean_power(
        instants([2.0, 2.0, 9.0, 2.0, 2.0], flags=["", "", "garbage", "", ""]), Window(0.0, 4.0)
    )
    assert (mean.mean_w, mean.coverage, mean.covered) == (2.0, 0.5, False)


def test_an_overrange_instant_beside_the_window_counts() -> None:
    flags = ["", "overrange", "", ""]
    assert mean_power(instants([1.0] * 4, flags=flags), Window(1.5, 2.5)).overrange
    assert not mean_power(instants([1.0] * 4, flags=flags), Window(2.0, 3.0)).overrange


def test_counts_are_subtracted_and_edges_prorated() -> None:
    # 5 J, then 2 J, then 8 J in one second each.
    mean = mean_power(counts([100.0, 105.0, 107.0, 115.0]), Window(0.5, 2.25))
    assert mean.mean_w == pytest.approx((2.5 + 2.0 + 2.0) / 1.75)
    assert (mean.coverage, mean.readings) == (pytest.approx(1.0), 3)


def test_a_counter_that_wraps_goes_on() -> None:
    mean = mean_power(counts([998.0, 3.0, 8.0], modulus=1000.0), Window(0.0, 2.0))
    assert mean.mean_w == pytest.approx(5.0)


@pytest.mark.parametrize("modulus", [None, 1000.0])
def test_a_counter_that_begins_anew_says_nothing_of_that_time(modulus: float | None) -> None:
    # 400 to 0 would be 600 J round the modulus in a second, over half of it: a restart, not a wrap.
    mean = mean_power(counts([395.0, 400.0, 0.0, 5.0], modulus=modulus), Window(0.0, 3.0))
    assert (mean.mean_w, mean.coverage) == (pytest.approx(5.0), pytest.approx(2 / 3))


def test_a_counter_counts_on_through_a_short_gap_only() -> None:
    short = counts([0.0, 5.0, 20.0], times=[0.0, 1.0, 4.0])
    assert mean_power(short, Window(0.0, 4.0)).mean_w == pytest.approx(5.0)
    long = counts([0.0, 5.0, 20.5], times=[0.0, 1.0, 4.1])
    assert mean_power(long, Window(0.0, 4.1)).coverage == pytest.approx(1 / 4.1)


def test_tail_energy_of_every_kind_of_meter() -> None:
    idle = interpolate(2.0, Window(0, 1), 2.0, Window(8, 9), Window(2, 4))
    tail = Window(1.0, 3.0)
    assert tail_energy_j(instants([2.0, 4.0, 4.0, 2.0]), tail, idle) == pytest.approx(3.0)
    assert tail_energy_j(counts([0.0, 2.0, 6.0, 9.0]), tail, idle) == pytest.approx(3.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 50.0), min_size=4, max_size=30), st.floats(0.1, 0.9), st.booleans())
def test_parts_of_a_window_add_up_to_the_whole(values: list[float], share: float, counter: bool) -> None:
    readings = counts(list(np.cumsum(values))) if counter else instants(values)
    whole = Window(0.25, len(values) - 1.25)
    cut_s = whole.start_s + share * whole.length_s
    parts = [mean_power(readings, w) for w in (Window(whole.start_s, cut_s), Window(cut_s, whole.end_s))]
    energies = [part.mean_w * part.window.length_s for part in parts if part.mean_w is not None]
    found = mean_power(readings, whole).mean_w
    assert found is not None
    assert sum(energies) == pytest.approx(found * whole.length_s, rel=1e-9, abs=1e-9)


def test_joined_readings_hold_each_row_once() -> None:
    first, second = counts([0.0, 1.0, 2.0]), counts([2.0, 3.0], times=[2.0, 3.0])
    whole = joined([first, second])
    assert whole.t_s.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert whole.energy_j is not None
    assert whole.energy_j.tolist() == [0.0, 1.0, 2.0, 3.0]


# -- steps -------------------------------------------------------------------------------------------------


def test_counter_step_is_the_common_divisor_of_its_differences() -> None:
    assert counter_step_j(np.array([3600.0, 7200.0, 7200.0, 18000.0])) == pytest.approx(3600.0)
    assert counter_step_j(np.array([0.000015, 0.000107, 0.000214])) == pytest.approx(1e-6)
    assert counter_step_j(np.array([5.0])) == 0.0


def test_a_step_hides_half_of_it_until_readings_move() -> None:
    still = mean_power(instants([8.0] * 9), Window(0.0, 8.0))
    assert half_widths_w(instants([8.0]), still, 1.0) == (0.5,)
    moving = mean_power(instants([7.0, 9.0] * 5), Window(0.0, 8.0))
    assert half_widths_w(instants([8.0]), moving, 1.0)[0] < 1e-6
    assert half_widths_w(instants([8.0]), still, 0.0) == (0.0,)


def test_a_counter_step_matters_at_both_ends() -> None:
    mean = mean_power(counts([0.0, 3600.0, 3600.0, 7200.0]), Window(0.0, 3.0))
    assert half_widths_w(counts([0.0]), mean, 3600.0) == pytest.approx((600.0, 600.0))


# -- grades ------------------------------------------------------------------------------------------------


def test_a_provisional_accuracy_is_at_most_grade_b() -> None:
    found = grade_of(
        1.0, 0.01, accuracy_known=True, below_resolution=False, readings=20, accuracy_provisional=True
    )
    assert (found.letter, found.limits) == ("B", ("accuracy_provisional",))


@pytest.mark.parametrize(
    ("known", "apparent", "count", "u95", "letter", "limits"),
    [
        (True, False, 20, 0.01, "A", ()),
        (True, False, 20, 0.1, "B", ("wide",)),
        (True, False, 20, 0.3, "C", ("wide",)),
        (True, True, 20, 0.01, "C", ("apparent_power",)),
        (False, True, 5, 0.3, "C", ("accuracy_unknown", "apparent_power", "few_readings", "wide")),
    ],
)
def test_grade_says_what_stands_against_a_better_one(
    known: bool, apparent: bool, count: int, u95: float, letter: str, limits: tuple[str, ...]
) -> None:
    found = grade_of(
        1.0, u95, accuracy_known=known, below_resolution=False, readings=count, apparent_power=apparent
    )
    assert (found.letter, found.limits) == (letter, limits)


# -- integrator --------------------------------------------------------------------------------------------


def logged(powers: list[float], counted: list[float], *, lost: int | None = None) -> Readings:
    """A meter of one-second means with its own integrator; row `lost` is missing."""
    rows = [k for k in range(len(powers)) if k != lost]
    t_s = np.array([k + 1.0 for k in rows])
    marks = np.array([""] * len(rows), dtype=np.str_)
    return Readings(
        t_s,
        np.array([powers[k] for k in rows]),
        marks,
        1.0,
        0.0,
        INTERVAL_MEAN,
        np.array([counted[k] for k in rows]),
    )


def test_integrator_agrees_with_a_whole_log() -> None:
    powers = [5.0, 6.0, 7.0, 8.0, 5.5, 6.5] * 3
    check = check_integrator(logged(powers, list(np.cumsum(powers))), Window(0.5, 17.5))
    assert check is not None
    assert check.logged_j == pytest.approx(sum(powers[1:17]))
    assert (check.counted_j, check.agrees) == (pytest.approx(check.logged_j), True)


def test_integrator_shows_a_reading_that_was_lost() -> None:
    powers = [5.0] * 10 + [45.0] + [5.0] * 9
    check = check_integrator(logged(powers, list(np.cumsum(powers)), lost=10), Window(0.5, 19.5))
    assert check is not None
    assert not check.agrees
    assert check.counted_j - check.logged_j == pytest.approx(40.0)


def test_integrator_that_began_anew_or_is_not_there_says_nothing() -> None:
    powers = [5.0] * 8
    anew = [5.0, 10.0, 15.0, 0.0, 5.0, 10.0, 15.0, 20.0]
    assert check_integrator(logged(powers, anew), Window(0.5, 7.5)) is None
    assert check_integrator(instants(powers), Window(0.5, 7.5)) is None
