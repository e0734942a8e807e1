# SPDX-License-Identifier: Apache-2.0
"""Mean power over a window, from what a meter's readings stand for (passport: `semantics`).

interval_mean   a reading is the mean over the update interval that ended `lag_s` before it was logged:
                E = sum(P x overlap), the part of a reading that lies in the window.
instantaneous   a reading is the power at one instant: trapezoids between neighbours, cut at the edges.
energy_counter  energy is the difference of two counts, the power between them taken as constant; a count
                that is less than the one before has passed the counter's modulus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from netjoule_energy.power.windows import FloatArray, Window

INTERVAL_MEAN = "interval_mean"
INSTANTANEOUS = "instantaneous"
ENERGY_COUNTER = "energy_counter"

OVERRANGE_FLAGS = ("overrange", "peak_over")
LEAST_COVERAGE = 0.9
GREATEST_COVERAGE = 1.1

GREATEST_SPACING = 1.5
"""Instants further apart, in update intervals, have lost a reading between them: no trapezoid is laid."""
GREATEST_COUNT_SPACING = 3.0
"""Counts further apart, in update intervals, are a gap: what the counter did meanwhile is not known."""
_TOUCH_S = 1e-9
"""A touch of rounding size is no overlap: it must neither count as a reading nor invalidate by its flag."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of one meter in time order.

    t_s: when each was logged, campaign seconds. power_w: NaN where the instrument gave no number.
    flag: "" for a good reading. energy_j: counts of a counter (NaN where there is none), None for other
    meters. counter_modulus_j: where it starts again from 0, None when that is not known.
    """

    t_s: FloatArray
    power_w: FloatArray
    flag: npt.NDArray[np.str_]
    update_interval_s: float
    lag_s: float
    semantics: str = INTERVAL_MEAN
    energy_j: FloatArray | None = None
    counter_modulus_j: float | None = None


def joined(parts: Sequence[Readings]) -> Readings:
    """Return stretches of one meter's readings, in order, as one; what two of them hold counts once."""
    first = parts[0]
    t_s = np.concatenate([part.t_s for part in parts])
    _, kept = np.unique(t_s, return_index=True)
    counts = None if first.energy_j is None else np.concatenate([part.energy_j for part in parts])
    return replace(
        first,
        t_s=t_s[kept],
        power_w=np.concatenate([part.power_w for part in parts])[kept],
        flag=np.concatenate([part.flag for part in parts])[kept],
        energy_j=None if counts is None else counts[kept],
    )


@dataclass(frozen=True, slots=True)
class Pieces:
    """Stretches of campaign time in seconds with the power in W that a meter says was there."""

    start_s: FloatArray
    end_s: FloatArray
    power_w: FloatArray


@dataclass(frozen=True, slots=True)
class WindowMean:
    """Mean power over one window and what it rests on.

    mean_w: None without any usable reading. coverage: covered share of the window (1 = all of it).
    overrange: a reading inside was out of range. weights_s, values_w: weight in seconds and power in W
    of each usable reading (of each difference of a counter), in time order.
    """

    window: Window
    mean_w: float | None
    coverage: float
    overrange: bool
    weights_s: FloatArray
    values_w: FloatArray

    @property
    def readings(self) -> int:
        """Number of readings that the mean rests on."""
        return int(self.values_w.size)

    @property
    def covered(self) -> bool:
        """Whether the readings cover the window to 90-110 %."""
        return LEAST_COVERAGE - 1e-9 <= self.coverage <= GREATEST_COVERAGE + 1e-9


def mean_power(readings: Readings, window: Window) -> WindowMean:
    """Return sum(w P) / sum(w) over the good readings, w = seconds of the window that each stands for."""
    if readings.semantics == INSTANTANEOUS:
        weights_s, values_w = _trapezoids(readings, window)
    else:
        weights_s, values_w = _overlaps(pieces_of(readings), window)
    covered_s = float(weights_s.sum())
    return WindowMean(
        window=window,
        mean_w=float(weights_s @ values_w) / covered_s if covered_s > 0 else None,
        coverage=covered_s / window.length_s,
        overrange=_overrange_inside(readings, window),
        weights_s=weights_s,
        values_w=values_w,
    )


def pieces_of(readings: Readings) -> Pieces:
    """Return what the good readings of an interval-mean meter or a counter say, stretch by stretch."""
    if readings.semantics == ENERGY_COUNTER:
        return _differences(readings)
    good = (readings.flag == "") & np.isfinite(readings.power_w)
    end_s = readings.t_s[good] - readings.lag_s
    return Pieces(end_s - readings.update_interval_s, end_s, readings.power_w[good])


def instants_of(readings: Readings) -> tuple[FloatArray, FloatArray]:
    """Return when (campaign seconds) and how much (W) an instantaneous meter's good readings say."""
    good = (readings.flag == "") & np.isfinite(readings.power_w)
    return readings.t_s[good] - readings.lag_s, readings.power_w[good]


def _overlaps(pieces: Pieces, window: Window) -> tuple[FloatArray, FloatArray]:
    overlap_s = np.minimum(pieces.end_s, window.end_s) - np.maximum(pieces.start_s, window.start_s)
    touches = overlap_s > _TOUCH_S
    return overlap_s[touches], pieces.power_w[touches]


def _trapezoids(readings: Readings, window: Window) -> tuple[FloatArray, FloatArray]:
    """Weight of each instant: the integral of a straight line is its value at the middle times the length."""
    at_s, power_w = instants_of(readings)
    weights_s = np.zeros(at_s.size)
    width_s = np.diff(at_s)
    low_s, high_s = np.maximum(at_s[:-1], window.start_s), np.minimum(at_s[1:], window.end_s)
    near = (width_s > _TOUCH_S) & (width_s <= GREATEST_SPACING * readings.update_interval_s + _TOUCH_S)
    used = np.flatnonzero(near & (high_s - low_s > _TOUCH_S))
    length_s = (high_s - low_s)[used]
    share_of_later = ((low_s + high_s)[used] / 2 - at_s[used]) / width_s[used]
    np.add.at(weights_s, used, length_s * (1 - share_of_later))
    np.add.at(weights_s, used + 1, length_s * share_of_later)
    counts = weights_s > 0
    return weights_s[counts], power_w[counts]


def _differences(readings: Readings) -> Pieces:
    """Power between neighbouring counts.

    A count below the one before has passed the modulus; when that is not known, or the way round is over
    half of it (a counter that began anew rather than wrapped), nothing is said about the time between.
    """
    if readings.energy_j is None:
        empty = np.empty(0)
        return Pieces(empty, empty, empty)
    good = (readings.flag == "") & np.isfinite(readings.energy_j)
    at_s, counted_j = readings.t_s[good] - readings.lag_s, readings.energy_j[good]
    width_s, step_j = np.diff(at_s), np.diff(counted_j)
    usable = (width_s > _TOUCH_S) & (
        width_s <= GREATEST_COUNT_SPACING * readings.update_interval_s + _TOUCH_S
    )
    modulus_j = readings.counter_modulus_j
    if modulus_j is not None:
        step_j = np.where(step_j < 0, step_j + modulus_j, step_j)
        usable &= step_j < modulus_j / 2
    usable &= step_j >= 0
    return Pieces(at_s[:-1][usable], at_s[1:][usable], step_j[usable] / width_s[usable])


def _overrange_inside(readings: Readings, window: Window) -> bool:
    """Whether a reading that was out of range stands for any part of the window."""
    end_s = readings.t_s - readings.lag_s
    start_s = end_s - readings.update_interval_s
    if readings.semantics == INSTANTANEOUS:
        end_s = end_s + readings.update_interval_s
    touches = np.minimum(end_s, window.end_s) - np.maximum(start_s, window.start_s) > _TOUCH_S
    return bool(np.any(touches & np.isin(readings.flag, OVERRANGE_FLAGS)))
