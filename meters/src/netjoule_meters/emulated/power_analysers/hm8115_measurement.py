# SPDX-License-Identifier: Apache-2.0
"""What an emulated HM8115-2 measures and how it writes that: from true power to a line. Pure, seeded.

Each seed is another instrument within 0.4 % and 5 digits of voltage and current and 0.8 % and 10 digits of
power (the adapter says how sure that is); no seed is an instrument that only rounds. Over-range is taken to
begin at 110 % of a range, which no document at hand states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from netjoule_meters.adapters.power_analysers.hm8115 import DIGITS, READING_RATIO
from netjoule_meters.adapters.power_analysers.hm8115_messages import (
    CURRENT_RANGES_A,
    VOLTAGE_RANGES_V,
    digit_a,
    digit_v,
    digit_w,
)
from netjoule_meters.emulated.instrument_errors import Quantity, drawn
from netjoule_meters.emulated.mains import Supply

OVERRANGE_RATIO = 1.1
OVERRANGE_TEXT = "OF"
SPIKE_A = 180.0
"""What the first line after a range change shows, about."""
_KEYS = {"WATT": "W", "VAR": "VAR", "VA": "VA", "PF": "PF"}


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of one instrument; offsets count digits."""

    voltage: Quantity = field(default_factory=Quantity)
    current: Quantity = field(default_factory=Quantity)
    power: Quantity = field(default_factory=Quantity)

    @classmethod
    def drawn(cls, seed: int | None) -> Errors:
        """A new instrument for each seed; without errors for None."""
        return cls(*drawn(seed, [(0.004, 5.0), (0.004, 5.0), (READING_RATIO, float(DIGITS))]))


@dataclass(frozen=True, slots=True)
class MeasurementSetup:
    """How it is set: numbers of its ranges and its function by the word of its status."""

    voltage_range: int
    current_range: int
    function: str = "WATT"

    @property
    def power_w(self) -> float:
        """Power range."""
        return VOLTAGE_RANGES_V[self.voltage_range] * CURRENT_RANGES_A[self.current_range]


@dataclass(frozen=True, slots=True)
class DisplayedValues:
    """One value of each quantity; None where it is over-range."""

    voltage_v: float | None
    current_a: float | None
    power_w: float | None


def measure(power_w: float, supply: Supply, how: MeasurementSetup, errors: Errors) -> DisplayedValues:
    """What it makes of a true mean power."""
    current_a = supply.current_a(power_w)
    over_v = supply.voltage_v > OVERRANGE_RATIO * VOLTAGE_RANGES_V[how.voltage_range]
    over_a = current_a > OVERRANGE_RATIO * CURRENT_RANGES_A[how.current_range]
    weight_v, weight_a = digit_v(how.voltage_range), digit_a(how.current_range)
    weight_w = digit_w(how.voltage_range, how.current_range)
    return DisplayedValues(
        None if over_v else _rounded(errors.voltage.shown(supply.voltage_v, weight_v), weight_v),
        None if over_a else _rounded(errors.current.shown(current_a, weight_a), weight_a),
        None if over_v or over_a else _rounded(errors.power.shown(power_w, weight_w), weight_w),
    )


def spike(shown: DisplayedValues) -> DisplayedValues:
    """What stands in the first line after a range change."""
    voltage_v = shown.voltage_v or 0.0
    return DisplayedValues(shown.voltage_v, SPIKE_A, SPIKE_A * voltage_v)


def line(shown: DisplayedValues, how: MeasurementSetup, *, with_values: bool) -> str:
    """A line of values, in one of the two forms."""
    value = f"{_KEYS[how.function]}={_function_text(shown, how)}"
    if not with_values:
        return f"U{how.voltage_range} I{how.current_range} {value}"
    voltage = _voltage_text(shown.voltage_v, how)
    current = _current_text(shown.current_a, how)
    return f"U{how.voltage_range}={voltage} I{how.current_range}={current} {value}"


def _function_text(shown: DisplayedValues, how: MeasurementSetup) -> str:
    if shown.power_w is None or shown.voltage_v is None or shown.current_a is None:
        return OVERRANGE_TEXT
    weight_w = digit_w(how.voltage_range, how.current_range)
    apparent_va = shown.voltage_v * shown.current_a
    if how.function == "WATT":
        return _text(shown.power_w, weight_w)
    if how.function == "VA":
        return _text(apparent_va, weight_w)
    if how.function == "VAR":
        return _text(math.sqrt(max(0.0, apparent_va**2 - shown.power_w**2)), weight_w)
    if apparent_va < 10 * weight_w:  # too little to divide by
        return OVERRANGE_TEXT
    return _text(min(1.0, abs(shown.power_w) / apparent_va), 0.01)


def _voltage_text(voltage_v: float | None, how: MeasurementSetup) -> str:
    return OVERRANGE_TEXT if voltage_v is None else _text(voltage_v, digit_v(how.voltage_range))


def _current_text(current_a: float | None, how: MeasurementSetup) -> str:
    """The least range is written in mA."""
    if current_a is None:
        return OVERRANGE_TEXT
    if how.current_range == 1:
        return f"{current_a * 1e3:.1f}E-3"
    return _text(current_a, digit_a(how.current_range))


def _text(value: float, weight: float) -> str:
    """As many decimals as the weight of the last digit; a small negative value keeps its sign."""
    return f"{value:.{max(0, -round(math.log10(weight)))}f}E+0"


def _rounded(value: float, weight: float) -> float:
    """``value`` in whole digits; a small negative one becomes negative zero, as on the instrument."""
    return math.copysign(round(abs(value) / weight) * weight, value)
