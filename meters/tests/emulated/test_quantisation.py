# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from netjoule_meters.emulated.quantisation import nr3, nr3_significant, prefix_exponent, quantised, resolution


@pytest.mark.parametrize(
    ("range_value", "step"),
    [
        (300, 0.01),
        (600, 0.01),
        (15, 0.001),
        (0.5, 1e-5),
        (0.005, 1e-7),
        (150, 0.01),
        (30, 0.001),
        (1500, 0.1),
    ],
)
def test_five_digits_with_the_rated_value_in_them(range_value, step):
    assert resolution(range_value) == pytest.approx(step)


@pytest.mark.parametrize(("range_value", "exponent"), [(0.5, -3), (0.075, -3), (1, 0), (300, 0), (1500, 3)])
def test_unit_prefix_follows_the_range(range_value, exponent):
    assert prefix_exponent(range_value) == exponent


def test_text_of_the_display():
    assert nr3(230.123, 300) == "230.12E+00"
    assert nr3(0.2064, 0.5) == "206.40E-03"
    assert nr3(22.9512, 150) == "22.95E+00"
    assert nr3(1234.56, 1500) == "1.2346E+03"
    assert nr3(-0.004, 150) == "0.00E+00"
    assert nr3(-12.5, 30) == "-12.500E+00"


def test_rounding_is_at_most_half_a_digit():
    assert quantised(12.3456789, 30) == pytest.approx(12.346)


def test_settings_and_integrals_are_sent_with_significant_digits():
    assert nr3_significant(300.0) == "300.0E+00"
    assert nr3_significant(0.1) == "100.0E-03"
    assert nr3_significant(0.0) == "0.0E+00"
    assert nr3_significant(0.00123456789, 6) == "1.23457E-03"
