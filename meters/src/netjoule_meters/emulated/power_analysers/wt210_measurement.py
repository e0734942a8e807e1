# SPDX-License-Identifier: Apache-2.0
"""What an emulated WT210 measures: from true power to the values it shows. Pure, seeded.

A supply of constant voltage and power factor stands around the power it is fed. Each seed is another
instrument: gain and offset of V, A and W are drawn evenly within the specification; no seed is an
instrument without error. Rounding to the display is not an error of the instrument and always there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from netjoule_meters.emulated.instrument_errors import Quantity, drawn
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.quantisation import gap_text, nr3, quantised

# IM 760401-01E p. 16-4, 45 to 66 Hz, 12 months after calibration (also V and A: 0.1 % + 0.1 %, x1.5).
READING_RATIO: Final = 0.0015
RANGE_RATIO: Final = 0.001
INTEGRATOR_RATIO: Final = 0.001
"""The integrator adds this part of the reading; of no manual page at hand, thus provisional."""
# The manual pages at hand do not state the limit; WT310 (IM WT310-02EN p. 1-12) raises the range at 130 %
# and reports over-range at 140 % of rated voltage or current.
OVERRANGE_RATIO: Final = 1.4
_LEAST_RATIO = 0.005
"""Below this part of the range (twice that at crest factor 6) VA, var, PF and phase are not computed."""


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of one instrument."""

    voltage: Quantity = field(default_factory=Quantity)
    current: Quantity = field(default_factory=Quantity)
    power: Quantity = field(default_factory=Quantity)
    integrator_gain: float = 0.0

    @classmethod
    def drawn(
        cls, seed: int | None, reading_ratio: float = READING_RATIO, range_ratio: float = RANGE_RATIO
    ) -> Errors:
        """A new instrument for each seed within the ratios; without errors for None."""
        limits = [(reading_ratio, range_ratio)] * 3
        voltage, current, power, integrator = drawn(seed, [*limits, (INTEGRATOR_RATIO, 0.0)])
        return cls(voltage, current, power, integrator.gain)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Active ranges (V, A) and crest factor setting."""

    voltage_v: float
    current_a: float
    crest_factor: int

    @property
    def power_w(self) -> float:
        """Power range."""
        return self.voltage_v * self.current_a


@dataclass(frozen=True, slots=True)
class DisplayedValues:
    """One update: texts by item, the power behind them (W; None: no number) and condition bits."""

    texts: dict[str, str]
    power_w: float | None
    conditions: int


OVERRANGE_BIT, PEAK_VOLTAGE_BIT, PEAK_CURRENT_BIT = 1 << 6, 1 << 7, 1 << 8


def measure(power_w: float, supply: Supply, ranges: Ranges, errors: Errors) -> DisplayedValues:
    """Everything the instrument shows for a true mean power, W."""
    true_a = supply.current_a(power_w)
    voltage_v = errors.voltage.shown(supply.voltage_v, ranges.voltage_v)
    current_a = errors.current.shown(true_a, ranges.current_a)
    shown_w = errors.power.shown(power_w, ranges.power_w)
    conditions = _conditions(supply, true_a, ranges)
    if conditions & OVERRANGE_BIT:
        over = gap_text(overrange=True)
        texts = dict.fromkeys(("W", "VA", "VAR", "PF", "DEGR"), over)
        over_v, over_a = _overranges(supply, true_a, ranges)
        texts["V"] = over if over_v else nr3(voltage_v, ranges.voltage_v)
        texts["A"] = over if over_a else nr3(current_a, ranges.current_a)
        return DisplayedValues({**texts, **_further(supply, true_a, ranges)}, None, conditions)
    texts = {
        "V": nr3(voltage_v, ranges.voltage_v),
        "A": nr3(current_a, ranges.current_a),
        "W": nr3(shown_w, ranges.power_w),
        **_computed(voltage_v, current_a, shown_w, ranges),
        **_further(supply, true_a, ranges),
    }
    return DisplayedValues(texts, quantised(shown_w, ranges.power_w), conditions)


def nothing_to_show(items: tuple[str, ...]) -> DisplayedValues:
    """An update for which the instrument has no data."""
    return DisplayedValues(dict.fromkeys(items, gap_text(overrange=False)), None, 0)


def _overranges(supply: Supply, true_a: float, ranges: Ranges) -> tuple[bool, bool]:
    """Whether voltage and current are over their ranges."""
    return (
        supply.voltage_v > OVERRANGE_RATIO * ranges.voltage_v,
        true_a > OVERRANGE_RATIO * ranges.current_a,
    )


def _conditions(supply: Supply, true_a: float, ranges: Ranges) -> int:
    """Over-range and peak bits; a peak is cut off beyond crest factor times the range."""
    over = any(_overranges(supply, true_a, ranges))
    peak_v = supply.voltage_v * math.sqrt(2) > ranges.crest_factor * ranges.voltage_v
    peak_a = true_a * supply.current_crest_factor > ranges.crest_factor * ranges.current_a
    return OVERRANGE_BIT * over | PEAK_VOLTAGE_BIT * peak_v | PEAK_CURRENT_BIT * peak_a


def _computed(voltage_v: float, current_a: float, power_w: float, ranges: Ranges) -> dict[str, str]:
    """VA, var, PF and phase; zeros and errors where voltage or current is too small."""
    least = _LEAST_RATIO * (2 if ranges.crest_factor == 6 else 1)
    if voltage_v < least * ranges.voltage_v or current_a < least * ranges.current_a:
        zero, error = nr3(0.0, ranges.power_w), gap_text(overrange=True)
        return {"VA": zero, "VAR": zero, "PF": error, "DEGR": error}
    apparent_va = voltage_v * current_a
    power_factor = max(-1.0, min(1.0, power_w / apparent_va))
    reactive_var = math.sqrt(max(0.0, apparent_va**2 - power_w**2))
    angle = math.degrees(math.acos(power_factor))
    # Lead is sent with a plus sign, lag with a minus, in phase with a blank; this load lags.
    phase = " 0.0E+00" if angle < 0.05 else f"{-angle:+.1f}E+00"
    return {
        "VA": nr3(apparent_va, ranges.power_w),
        "VAR": nr3(reactive_var, ranges.power_w),
        "PF": nr3(power_factor, 1.0),
        "DEGR": phase,
    }


def _further(supply: Supply, true_a: float, ranges: Ranges) -> dict[str, str]:
    """Frequency and peaks. Only one of the two frequencies can be measured at a time."""
    none = gap_text(overrange=False)
    return {
        "VHZ": nr3(supply.frequency_hz, supply.frequency_hz) if supply.frequency_hz else none,
        "AHZ": none,
        "VPK": nr3(supply.voltage_v * math.sqrt(2), ranges.voltage_v),
        "APK": nr3(true_a * supply.current_crest_factor, ranges.current_a),
        "MATH": none,
    }
