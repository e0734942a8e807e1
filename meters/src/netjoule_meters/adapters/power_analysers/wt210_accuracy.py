# SPDX-License-Identifier: Apache-2.0
"""Limits of error of the WT210's active power, by IM 760401-01E p. 16-4.

All of it is pure: settings and conditions in, ratios out. Ratios are 1, not percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from netjoule_meters.passport import Accuracy, AccuracyTerm

SOURCE = "Yokogawa IM 760401-01E p. 16-4"
_THREE_MONTHS_DAYS = 92.0
_TWELVE_MONTHS_DAYS = 366.0


@dataclass(frozen=True, slots=True)
class Band:
    """Error limits within a band that ends at ``upto_hz``: parts of reading and of range, and a slope
    of the reading part per kHz above ``slope_from_khz``."""

    upto_hz: float
    reading_ratio: float
    range_ratio: float
    slope_per_khz: float = 0.0
    slope_from_khz: float = 0.0


# AC, 3 months after calibration, power factor 1, crest factor 3, line filter off.
_BANDS = (
    Band(45.0, 0.003, 0.002),
    Band(66.0, 0.001, 0.001),
    Band(1e3, 0.002, 0.002),
    Band(1e4, 0.001, 0.003, 0.00067, 1.0),
    Band(1e5, 0.005, 0.005, 0.0009, 10.0),
)
_DC = Band(0.0, 0.003, 0.002)
_DC_CURRENT_OFFSET_A = 10e-6


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the limits depend on.

    Attributes:
        frequency_hz: frequency of the supply; 0 for DC.
        power_factor: of the load; 1 when unknown.
        crest_factor: 3 or 6, the instrument's setting.
        line_filter: whether it is on.
        voltage_range_v: only the DC offset needs both ranges.
        current_range_a: see above.
    """

    frequency_hz: float
    power_factor: float
    crest_factor: int
    line_filter: bool
    voltage_range_v: float
    current_range_a: float


def power_accuracy(conditions: Conditions, calibration_age_days: float) -> Accuracy:
    """Limits of error of active power so long after calibration.

    The 12-month limits add half of the 3-month reading error. Older than that, or outside the table, the
    limits are unknown.
    """
    if calibration_age_days < 0:
        return Accuracy(None, None, "unknown: the calibration date lies in the future")
    if calibration_age_days > _TWELVE_MONTHS_DAYS:
        return Accuracy(None, None, f"unknown: calibrated over 12 months ago ({SOURCE} ends there)")
    band = _band(conditions.frequency_hz)
    if band is None:
        return Accuracy(None, None, f"unknown: no limits at {conditions.frequency_hz:g} Hz ({SOURCE})")
    months = 3 if calibration_age_days <= _THREE_MONTHS_DAYS else 12
    reading_ratio = band_reading_ratio(band, conditions.frequency_hz)
    terms = (
        AccuracyTerm("reading", reading_ratio, 0.0),
        AccuracyTerm("range", 0.0, band.range_ratio),
        AccuracyTerm("calibration_age", 0.0 if months == 3 else reading_ratio / 2, 0.0),
        AccuracyTerm("crest_factor", 0.0, band.range_ratio if conditions.crest_factor == 6 else 0.0),
        AccuracyTerm(
            "power_factor", power_factor_ratio(conditions.power_factor, conditions.frequency_hz), 0.0
        ),
        AccuracyTerm("line_filter", line_filter_ratio(conditions), 0.0),
        AccuracyTerm("dc_offset", 0.0, dc_offset_ratio(conditions)),
    )
    supply = "DC" if conditions.frequency_hz == 0 else f"{conditions.frequency_hz:g} Hz"
    source = (
        f"{SOURCE}: {months} months after calibration, {supply}, power factor {conditions.power_factor:g}, "
        f"crest factor {conditions.crest_factor}, line filter {'on' if conditions.line_filter else 'off'}"
    )
    return Accuracy.of_terms(terms, source)


def band_reading_ratio(band: Band, frequency_hz: float) -> float:
    """Reading part of a band at a frequency, 3 months after calibration."""
    return band.reading_ratio + band.slope_per_khz * max(frequency_hz / 1e3 - band.slope_from_khz, 0.0)


def power_factor_ratio(
    power_factor: float, frequency_hz: float, influence: float = 0.002, influence_per_khz: float = 0.002
) -> float:
    """Added part of the reading for 0 < power factor < 1: tan(phi) times the influence at power factor 0.

    The influence is a part of VA at 45 to 66 Hz, and grows with the frequency elsewhere (for reference).
    """
    if frequency_hz == 0 or power_factor >= 1:
        return 0.0
    if not 45 <= frequency_hz <= 66:
        influence += influence_per_khz * frequency_hz / 1e3
    return influence * math.sqrt(1 - power_factor**2) / power_factor


def line_filter_ratio(conditions: Conditions) -> float:
    """Added part of the reading when the line filter is on."""
    if not conditions.line_filter or conditions.frequency_hz == 0:
        return 0.0
    return 0.01 if conditions.frequency_hz < 45 else 0.003


def dc_offset_ratio(conditions: Conditions) -> float:
    """The DC term 10 uA x voltage, taken at the full voltage range, as part of the power range."""
    if conditions.frequency_hz != 0:
        return 0.0
    return _DC_CURRENT_OFFSET_A / conditions.current_range_a


def _band(frequency_hz: float) -> Band | None:
    if frequency_hz == 0:
        return _DC
    if frequency_hz < 0.5:
        return None
    return next((band for band in _BANDS if frequency_hz <= band.upto_hz), None)
