# SPDX-License-Identifier: Apache-2.0
"""How much of a window a device model answered outside of what it was fitted for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from netjoule_energy.power.windows import FloatArray, Window

HOLLOW_RATIO = 0.05
"""A run with a greater share is drawn hollow and left out of envelope, tests and fits."""


@dataclass(frozen=True, slots=True)
class DeviceSamples:
    """Samples of a device stream: start and end in campaign seconds, and the model's `extrapolated` flag."""

    start_s: FloatArray
    end_s: FloatArray
    extrapolated: npt.NDArray[np.bool_]


def extrapolated_ratio(samples: DeviceSamples, window: Window) -> float | None:
    """Return the share of the sampled time in `window` that is extrapolated; None without samples in it."""
    overlap_s = np.minimum(samples.end_s, window.end_s) - np.maximum(samples.start_s, window.start_s)
    overlap_s = np.maximum(overlap_s, 0.0)
    total_s = float(overlap_s.sum())
    if total_s <= 0:
        return None
    return float(overlap_s[samples.extrapolated].sum()) / total_s


def is_hollow(ratio: float | None) -> bool:
    """Return whether a run is over the limit; exactly 5 % (but for rounding) is not."""
    return ratio is not None and ratio > HOLLOW_RATIO + 1e-9
