# SPDX-License-Identifier: Apache-2.0
"""Limits of error of active power of the WT310 (IM WT310-02EN p. 7-7) and WT310E (IM WT310E-02EN p. 7-7).

They hold for 12 months after calibration. Unlike the WT210's, the range part shrinks with the power factor:
for 0 < lambda < 1 the limit is P x (reading + range x (power range / S) + tan(phi) x influence), and P / S
is lambda. What is not in the pages at hand stays unknown: DC (its temperature terms), and with the WT310 the
line filter and power factors below 1 outside 45 to 66 Hz. All of it is pure; ratios are 1, not percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from netjoule_meters.adapters.power_analysers.wt210_accuracy import (
    Band,
    Conditions,
    band_reading_ratio,
    line_filter_ratio,
    power_factor_ratio,
)
from netjoule_meters.passport import Accuracy, AccuracyTerm

_TWELVE_MONTHS_DAYS = 366.0
_BELOW_45_HZ = math.nextafter(45.0, 0.0)
_HEAT_PER_V2 = 1e-9
"""Self-generated heat of the voltage input: 0.0000001 x U^2 % of reading, taken at the full range."""
_HEAT_PER_A2 = 1.3e-6
"""Self-generated heat of the current input: 0.00013 x I^2 % of reading, taken at the full range."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model's table.

    Attributes:
        range_ratio: range part at 45 to 66 Hz.
        least_hz: where the table begins, Hz.
        influence: of power factor 0, as part of VA, at 45 to 66 Hz.
        influence_per_khz: what is added to it elsewhere; None when not at hand.
        line_filter: whether its influence is at hand.
    """

    range_ratio: float
    least_hz: float
    influence: float
    influence_per_khz: float | None
    line_filter: bool
    source: str

    def bands(self) -> tuple[Band, ...]:
        """Limits at power factor 1 and crest factor 3, by frequency."""
        return (
            Band(_BELOW_45_HZ, 0.003, 0.002),
            Band(66.0, 0.001, self.range_ratio),
            Band(1e3, 0.002, 0.002),
            Band(1e4, 0.001, 0.003, 0.00067, 1.0),
            Band(1e5, 0.005, 0.005, 0.0009, 10.0),
        )


MODELS = {
    "WT310": Model(0.001, 0.5, 0.002, None, False, "Yokogawa IM WT310-02EN p. 7-7"),
    "WT310E": Model(0.0005, 0.1, 0.001, 0.0015, True, "Yokogawa IM WT310E-02EN p. 7-7"),
}


def power_accuracy(model_name: str, conditions: Conditions, calibration_age_days: float) -> Accuracy:
    """Limits of error of active power so long after calibration; unknown outside the table, saying why.

    Crest factor 6 doubles the range part; self-generated heat is taken at the full ranges.
    """
    model = MODELS[model_name]
    why = _why_unknown(model, conditions, calibration_age_days)
    if why is not None:
        return Accuracy(None, None, f"unknown: {why} ({model.source})")
    frequency_hz, power_factor = conditions.frequency_hz, conditions.power_factor
    band = next(band for band in model.bands() if frequency_hz <= band.upto_hz)
    range_ratio = band.range_ratio * power_factor
    heat_ratio = _HEAT_PER_V2 * conditions.voltage_range_v**2 + _HEAT_PER_A2 * conditions.current_range_a**2
    influences = (model.influence, model.influence_per_khz or 0.0)
    terms = (
        AccuracyTerm("reading", band_reading_ratio(band, frequency_hz), 0.0),
        AccuracyTerm("range", 0.0, range_ratio),
        AccuracyTerm("crest_factor", 0.0, range_ratio if conditions.crest_factor == 6 else 0.0),
        AccuracyTerm("power_factor", power_factor_ratio(power_factor, frequency_hz, *influences), 0.0),
        AccuracyTerm("line_filter", line_filter_ratio(conditions), 0.0),
        AccuracyTerm("self_heating", heat_ratio, 0.0),
    )
    source = (
        f"{model.source}: 12 months after calibration, {frequency_hz:g} Hz, power factor {power_factor:g}, "
        f"crest factor {conditions.crest_factor}, line filter {'on' if conditions.line_filter else 'off'}"
    )
    return Accuracy.of_terms(terms, source)


def _why_unknown(model: Model, conditions: Conditions, calibration_age_days: float) -> str | None:
    frequency_hz, power_factor = conditions.frequency_hz, conditions.power_factor
    mains = 45 <= frequency_hz <= 66
    reasons = (
        (calibration_age_days < 0, "the calibration date lies in the future"),
        (calibration_age_days > _TWELVE_MONTHS_DAYS, "calibrated over 12 months ago"),
        (frequency_hz == 0, "no limits at hand for DC"),
        (not model.least_hz <= frequency_hz <= 1e5, f"no limits for {frequency_hz:g} Hz"),
        (not 0 < power_factor <= 1, f"no limits for power factor {power_factor:g}"),
        (
            power_factor < 1 and not mains and model.influence_per_khz is None,
            f"no limits at hand for power factor {power_factor:g} at {frequency_hz:g} Hz",
        ),
        (
            conditions.line_filter and (frequency_hz > 66 or not model.line_filter),
            "no limits at hand with the line filter",
        ),
    )
    return next((why for applies, why in reasons if applies), None)
