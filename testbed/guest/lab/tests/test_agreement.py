# SPDX-License-Identifier: Apache-2.0
"""How ways of reading a radio are compared; needs no guest."""

from radio_watch import agreement


def test_readings_are_judged_between_equal_ones_only() -> None:
    trusted = [(10, ("a",)), (20, ("a",)), (30, ("b",)), (40, ("b",))]
    other = [(5, ("x",)), (15, ("a",)), (25, ("x",)), (35, ("a",)), (45, ("x",))]
    assert agreement(trusted, other) == (1, 2)
