# SPDX-License-Identifier: Apache-2.0
"""Each pure part against numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netjoule_energy.power.extrapolation import DeviceSamples, extrapolated_ratio
from netjoule_energy.power.idle import drift_half_width_w, has_drifted, interpolate
from netjoule_energy.power.readings import Readings, mean_power
from netjoule_energy.power.windows import Intervals, Window, measured_span, span_is_short
from netjoule_energy.uncertainty.grade import grade_of
from netjoule_energy.uncertainty.noise import estimate


def readings(powers: list[float], *, flags: list[str] | None = None, lag_s: float = 0.0) -> Readings:
    t_s = np.arange(1, len(powers) + 1, dtype=float) + lag_s
    marks = np.array(flags or [""] * len(powers), dtype=np.str_)
    return Readings(t_s, np.array(powers, dtype=float), marks, 1.0, lag_s)


def intervals(rows: list[tuple[float, float, float]]) -> Intervals:
    table = np.array(rows, dtype=float).reshape(-1, 3)
    return Intervals(table[:, 0], table[:, 1], table[:, 2])


def test_window_refuses_to_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="must end after"):
        Window(2.0, 2.0)


def test_mean_power_weights_by_overlap() -> None:
    mean = mean_power(readings([1.0, 2.0, 4.0]), Window(0.5, 2.25))
    assert mean.mean_w == pytest.approx((0.5 * 1 + 1 * 2 + 0.25 * 4) / 1.75)
    assert (mean.coverage, mean.readings, mean.covered) == (1.0, 3, True)


def test_mean_power_uses_the_lag() -> None:
    assert mean_power(readings([1.0, 2.0, 4.0], lag_s=0.5), Window(1.0, 2.0)).mean_w == 2.0


def test_reading_that_only_touches_the_window_counts_for_nothing() -> None:
    mean = mean_power(readings([1.0, 2.0, 4.0], flags=["overrange", "", "overrange"]), Window(1.0, 2.0))
    assert (mean.mean_w, mean.readings, mean.overrange) == (2.0, 1, False)


def test_overrange_inside_is_seen_and_its_number_not_used() -> None:
    mean = mean_power(readings([1.0, 99.0, 3.0], flags=["", "peak_over", ""]), Window(0.0, 3.0))
    assert (mean.mean_w, mean.overrange, mean.covered) == (2.0, True, False)


def test_not_a_number_is_not_used_even_without_a_flag() -> None:
    assert mean_power(readings([1.0, math.nan, 3.0]), Window(0.0, 3.0)).mean_w == 2.0


def test_no_reading_gives_no_mean() -> None:
    mean = mean_power(readings([1.0]), Window(5.0, 6.0))
    assert (mean.mean_w, mean.coverage, mean.readings) == (None, 0.0, 0)


def test_span_is_the_longest_contiguous_one() -> None:
    rows = [(0.0, 1.0, 10.0), (1.0, 2.0, 20.0), (2.5, 3.5, 1.0), (3.5, 4.5, 2.0), (4.5, 5.5, 3.0)]
    span = measured_span(Window(0.5, 5.5), intervals(rows))
    assert (span.window, span.work) == (Window(2.5, 5.5), 6.0)


def test_span_tolerates_rounded_edges() -> None:
    span = measured_span(Window(1.0, 3.0), intervals([(0.999999, 2.0, 5.0), (2.000001, 3.000001, 6.0)]))
    assert span.work == 11.0


def test_span_without_whole_interval_has_no_bytes() -> None:
    span = measured_span(Window(0.2, 0.8), intervals([(0.0, 1.0, 10.0)]))
    assert (span.window, span.work) == (Window(0.2, 0.8), None)


def test_short_span_is_told_from_cut_edges() -> None:
    rows = [(k * 0.5, (k + 1) * 0.5, 1.0) for k in range(4)]
    assert not span_is_short(Window(0.1, 1.9), Window(0.5, 1.5), intervals(rows))
    assert span_is_short(Window(0.1, 2.9), Window(0.5, 1.5), intervals(rows))


def test_idle_line_at_the_middle_of_the_measure_window() -> None:
    idle = interpolate(8.0, Window(0, 2), 9.0, Window(8, 12), Window(2, 4))
    assert (idle.at_middle_w, idle.after_share) == (pytest.approx(8 + 2 / 9), pytest.approx(2 / 9))


@pytest.mark.parametrize(
    ("after_w", "u_w", "drifted"),
    [(8.039, 0.0, False), (8.041, 0.0, True), (8.1, 0.034, False), (8.1, 0.033, True), (7.95, 0.0, True)],
)
def test_drift_rule_is_the_greater_of_three_u_and_half_a_percent(
    after_w: float, u_w: float, drifted: bool
) -> None:
    idle = interpolate(8.0, Window(0, 1), after_w, Window(4, 5), Window(2, 3))
    assert has_drifted(idle, u_w) is drifted


def test_drift_that_noise_explains_adds_no_uncertainty() -> None:
    idle = interpolate(8.0, Window(0, 1), 8.03, Window(4, 5), Window(2, 3))
    assert drift_half_width_w(idle, 0.05) == 0.0
    assert drift_half_width_w(idle, 0.0) == pytest.approx(0.015)


def test_equal_readings_have_no_scatter() -> None:
    scatter = estimate([np.full(9, 8.1), np.full(9, 8.1)])
    assert scatter.known and not scatter.sigmas_w.any()
    assert scatter.mean_noise(np.full(9, 0.1)).u_w == 0.0


def test_single_readings_have_unknown_scatter() -> None:
    assert not estimate([np.array([8.0]), np.array([])]).known


def test_scatter_of_independent_readings() -> None:
    values = np.random.default_rng(7).normal(5.0, 0.2, 4000)
    scatter = estimate([values])
    # What is drawn from: one deviation for each correlation that is considered.
    likely = scatter.sigmas_w[scatter.probabilities.argmax()]
    assert likely == pytest.approx(0.2, rel=0.05)
    assert scatter.effective_readings(np.full(4000, 0.1)) == pytest.approx(4000, rel=0.1)


def test_scatter_of_autocorrelated_readings() -> None:
    rng, rho = np.random.default_rng(3), 0.6
    values = np.empty(8000)
    values[0] = 0.0
    for k in range(1, values.size):
        values[k] = rho * values[k - 1] + rng.normal(0, 1)
    scatter = estimate([values])
    assert scatter.correlation == pytest.approx(rho, abs=0.03)
    assert scatter.effective_readings(np.ones(8000)) == pytest.approx(8000 * (1 - rho) / (1 + rho), rel=0.1)


def test_unequal_weights_are_worth_fewer_readings() -> None:
    scatter = estimate([np.array([1.0, -1.0, 1.0, -1.0])])
    even, uneven = np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0])
    assert scatter.effective_readings(uneven) < scatter.effective_readings(even)
    assert 1.2 < scatter.effective_readings(uneven) <= 2.0


def test_extrapolated_ratio_is_weighted_by_time() -> None:
    samples = DeviceSamples(
        np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0, 4.0]), np.array([True, False, True])
    )
    assert extrapolated_ratio(samples, Window(0.5, 3.5)) == pytest.approx(1 / 3)
    assert extrapolated_ratio(samples, Window(9.0, 10.0)) is None


@pytest.mark.parametrize(
    ("ea", "u95", "known", "below", "count", "grade"),
    [
        (1.0, 0.05, True, False, 10, "A"),
        (1.0, 0.2, True, False, 10, "B"),
        (1.0, 0.21, True, False, 10, "C"),
        (1.0, 0.01, False, False, 10, "C"),
        (1.0, 0.01, True, False, 9, "C"),
        (1.0, 0.5, True, True, 10, "below_resolution"),
        (None, 0.5, True, True, 10, "below_resolution"),
        (None, None, True, True, 10, None),
    ],
)
def test_grade(ea: float | None, u95: float | None, known: bool, below: bool, count: int, grade: str) -> None:
    found = grade_of(ea, u95, accuracy_known=known, below_resolution=below, readings=count)
    assert found.letter == grade
