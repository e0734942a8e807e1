# SPDX-License-Identifier: Apache-2.0
"""Does the instrument's own integrator agree with the sum of what was logged?

An analyser like the WT210 counts watt-hours from all its samples; the log holds one mean per update, and
beside it the count at that update (column energy_j of a meter whose semantics is interval_mean). Both come
from the same converters, so gain and offset are common to both and cancel: what remains is whether
readings were lost, doubled or taken for another time. The limits of the integrator (0.1 % of reading, its
timer's 0.02 %) are in no manual page at hand and therefore provisional.
"""

from __future__ import annotations

import math

import numpy as np

from netjoule_contracts.types.result import Integrator
from netjoule_energy.power.readings import INTERVAL_MEAN, Readings, mean_power
from netjoule_energy.power.resolution import counter_step_j
from netjoule_energy.power.windows import Window

READING_RATIO = 0.001
TIMER_RATIO = 0.0002


def check_integrator(readings: Readings, window: Window) -> Integrator | None:
    """Compare both between the first and the last update inside `window`.

    None without counts, when the count began anew inside, or when the log has a gap there.
    """
    if readings.semantics != INTERVAL_MEAN or readings.energy_j is None:
        return None
    end_s = readings.t_s - readings.lag_s
    inside = (end_s >= window.start_s) & (end_s <= window.end_s)
    counted = inside & (readings.flag == "") & np.isfinite(readings.energy_j)
    at_s, counts_j = end_s[counted], readings.energy_j[counted]
    if at_s.size < 2 or at_s[-1] <= at_s[0] or np.any(np.diff(counts_j) < 0):
        return None
    mean = mean_power(readings, Window(float(at_s[0]), float(at_s[-1])))
    if mean.mean_w is None or not mean.covered:
        return None
    logged_j, counted_j = mean.mean_w * mean.window.length_s, float(counts_j[-1] - counts_j[0])
    step_j = counter_step_j(readings.energy_j[readings.flag == ""])
    limits_j = (step_j / 2, step_j / 2, READING_RATIO * counted_j, TIMER_RATIO * counted_j)
    u95_j = 2 * math.sqrt(sum(limit**2 for limit in limits_j) / 3)
    agrees = abs(counted_j - logged_j) <= u95_j + 1e-9
    return Integrator(logged_j=logged_j, counted_j=counted_j, u95_j=u95_j, agrees=agrees)
