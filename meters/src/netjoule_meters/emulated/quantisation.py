# SPDX-License-Identifier: Apache-2.0
"""How an instrument with five digits shows a value of a given range, and NR3 text of it."""

from __future__ import annotations

import math

from netjoule_meters.adapters.power_analysers.nr_values import NO_DATA_TEXT, OVERRANGE_TEXT

_DIGITS = 5
_MAX_COUNT = 99_999


def resolution(range_value: float) -> float:
    """Weight of the last digit on a range: five digits with the rated value in them (300 V: 0.01 V)."""
    return float(10.0 ** (math.floor(math.log10(range_value) + 1e-9) - _DIGITS + 1))


def prefix_exponent(range_value: float) -> int:
    """Power of ten of the unit that the range is shown in: -3 for mA and mW, 0, or 3 for kW."""
    return 3 * math.floor((math.log10(range_value) + 1e-9) / 3)


def quantised(value: float, range_value: float) -> float:
    """``value`` as the display rounds it."""
    step = _step(value, range_value)
    return round(value / step) * step


def nr3(value: float, range_value: float) -> str:
    """NR3 text of the display: a mantissa of at most five digits and a two-digit exponent."""
    step, exponent = _step(value, range_value), prefix_exponent(range_value)
    decimals = max(0, exponent - round(math.log10(step)))
    count = round(value / step)
    mantissa = count * step / 10.0**exponent
    return f"{mantissa if count else 0.0:.{decimals}f}E{exponent:+03d}"


def nr3_significant(value: float, digits: int = 4) -> str:
    """NR3 text with so many significant digits, as settings and integrated values are sent."""
    if value == 0:
        return "0.0E+00"
    exponent = 3 * math.floor((math.log10(abs(value)) + 1e-9) / 3)
    mantissa = value / 10.0**exponent
    decimals = max(1, digits - 1 - math.floor(math.log10(abs(mantissa)) + 1e-9))
    return f"{mantissa:.{decimals}f}E{exponent:+03d}"


def gap_text(overrange: bool) -> str:
    """What is sent where there is no number."""
    return OVERRANGE_TEXT if overrange else NO_DATA_TEXT


def _step(value: float, range_value: float) -> float:
    step = resolution(range_value)
    while round(abs(value) / step) > _MAX_COUNT:
        step *= 10
    return step
