# SPDX-License-Identifier: Apache-2.0
"""Mean power over a window, from the readings of a meter that publishes interval means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netjoule_meters.energy.windows import FloatArray, Window

OVERRANGE_FLAGS = ("overrange", "peak_over")
LEAST_COVERAGE = 0.9
GREATEST_COVERAGE = 1.1


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of one meter in time order.

    t_s: when each was logged, campaign seconds. power_w: NaN where the instrument gave no number.
    flag: "" for a good reading. A reading logged at t stands for [t - lag - update interval, t - lag].
    """

    t_s: FloatArray
    power_w: FloatArray
    flag: npt.NDArray[np.str_]
    update_interval_s: float
    lag_s: float


@dataclass(frozen=True, slots=True)
class WindowMean:
    """Mean power over one window and what it rests on.

    mean_w: None without any usable reading. coverage: covered share of the window (1 = all of it).
    overrange: a reading inside was out of range. weights_s, values_w: overlap in seconds and power in W
    of each usable reading, in time order.
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
    """Return sum(w P) / sum(w) over the unflagged readings, w = overlap of reading and window in seconds."""
    covers_end = readings.t_s - readings.lag_s
    covers_start = covers_end - readings.update_interval_s
    overlap_s = np.minimum(covers_end, window.end_s) - np.maximum(covers_start, window.start_s)
    # A touch of rounding size is no overlap: it must neither count as a reading nor invalidate by its flag.
    touches = overlap_s > 1e-9
    used = touches & (readings.flag == "") & np.isfinite(readings.power_w)
    weights_s, values_w = overlap_s[used], readings.power_w[used]
    covered_s = float(weights_s.sum())
    return WindowMean(
        window=window,
        mean_w=float(weights_s @ values_w) / covered_s if covered_s > 0 else None,
        coverage=covered_s / window.length_s,
        overrange=bool(np.any(touches & np.isin(readings.flag, OVERRANGE_FLAGS))),
        weights_s=weights_s,
        values_w=values_w,
    )
