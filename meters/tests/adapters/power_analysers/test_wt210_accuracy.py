# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from netjoule_meters.adapters.power_analysers.wt210_accuracy import Conditions, power_accuracy

MAINS = Conditions(
    frequency_hz=50,
    power_factor=1,
    crest_factor=3,
    line_filter=False,
    voltage_range_v=300,
    current_range_a=0.5,
)


def limits(conditions, days=30.0):
    accuracy = power_accuracy(conditions, days)
    return accuracy.reading_ratio, accuracy.range_ratio


@pytest.mark.parametrize(
    ("frequency_hz", "expected"),
    [
        (0.5, (0.003, 0.002)),
        (44, (0.003, 0.002)),
        (45.1, (0.001, 0.001)),
        (50, (0.001, 0.001)),
        (66, (0.001, 0.001)),
        (400, (0.002, 0.002)),
        (5e3, (0.001 + 0.00067 * 4, 0.003)),
        (50e3, (0.005 + 0.0009 * 40, 0.005)),
    ],
)
def test_bands_three_months_after_calibration(frequency_hz, expected):
    assert limits(replace(MAINS, frequency_hz=frequency_hz)) == pytest.approx(expected)


def test_twelve_months_add_half_of_the_reading_error():
    assert limits(MAINS, days=92) == pytest.approx((0.001, 0.001))
    assert limits(MAINS, days=93) == pytest.approx((0.0015, 0.001))
    assert limits(MAINS, days=366) == pytest.approx((0.0015, 0.001))


def test_crest_factor_6_doubles_the_range_error_only():
    assert limits(replace(MAINS, crest_factor=6)) == pytest.approx((0.001, 0.002))


def test_line_filter_adds_to_the_reading():
    assert limits(replace(MAINS, line_filter=True)) == pytest.approx((0.004, 0.001))
    assert limits(replace(MAINS, line_filter=True, frequency_hz=20)) == pytest.approx((0.013, 0.002))


def test_power_factor_influence_is_tan_phi_times_that_at_zero():
    # The example of an idle computer: 22.95 W, power factor 0.486, 300 V x 0.5 A, 12 months: 0.267 W.
    reading_ratio, range_ratio = limits(replace(MAINS, power_factor=0.4864), days=300)
    assert reading_ratio * 22.95 + range_ratio * 150 == pytest.approx(0.267, abs=0.001)


def test_dc_has_its_own_line_and_a_current_offset():
    assert limits(replace(MAINS, frequency_hz=0)) == pytest.approx((0.003, 0.002 + 10e-6 / 0.5))


@pytest.mark.parametrize(
    ("conditions", "days", "why"),
    [(MAINS, 367, "12 months"), (MAINS, -1, "future"), (replace(MAINS, frequency_hz=2e5), 1, "no limits at")],
)
def test_unknown_stays_unknown_and_says_why(conditions, days, why):
    accuracy = power_accuracy(conditions, days)
    assert accuracy.status == "unknown"
    assert (accuracy.reading_ratio, accuracy.range_ratio) == (None, None)
    assert why in accuracy.source


def test_the_source_names_page_and_conditions():
    source = power_accuracy(MAINS, 30).source
    assert "IM 760401-01E p. 16-4" in source
    assert "3 months" in source
    assert "50 Hz" in source


@pytest.mark.parametrize(
    "changes",
    [{}, {"crest_factor": 6}, {"line_filter": True}, {"power_factor": 0.5}, {"frequency_hz": 0}],
)
@pytest.mark.parametrize("days", [30, 300])
def test_the_terms_add_up_and_name_what_counts(changes, days):
    accuracy = power_accuracy(replace(MAINS, **changes), days)
    assert sum(term.reading_ratio for term in accuracy.terms) == pytest.approx(accuracy.reading_ratio)
    assert sum(term.range_ratio for term in accuracy.terms) == pytest.approx(accuracy.range_ratio)
    wanted = {"reading", "range"} | {"dc_offset" if name == "frequency_hz" else name for name in changes}
    assert {term.term for term in accuracy.terms} == wanted | ({"calibration_age"} if days == 300 else set())
