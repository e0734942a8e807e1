# SPDX-License-Identifier: Apache-2.0
"""How late a meter's readings are: a coded sync pulse is looked for in its power trace.

Before and after a campaign a load is switched on and off by a Barker code of 13 bits. The power that such
a pulse must give is compared with the trace at every lag of a range (normalised correlation: height and
idle power do not matter), and Bayes' rule turns correlations into the probability of each lag. A Barker
code resembles no shifted copy of itself (its side lobes are 1/13 of the peak), so one pulse has one answer.

The lag is from the end of what a reading stands for to the moment at which it was logged: meter, line and
clock offset in one number, measured at the same place where traffic starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netjoule_energy.power.readings import INSTANTANEOUS, Pieces, Readings, instants_of, pieces_of
from netjoule_energy.power.windows import FloatArray

BARKER_13 = "1111100110101"
METHOD = "normalised_correlation"
LEAST_CONFIDENCE = 0.9
"""A lag that is less sure than this is recorded, but readings keep the lag of the passport."""

_LEAST_READINGS = 8
_STEPS_PER_BIT = 10
_FINE_STEPS = 20
_PERFECT = 1e-12
"""Correlation is never taken as closer to 1 than this: a trace without noise has rounding."""
_GREATEST_CORRELATION = 0.95


@dataclass(frozen=True, slots=True)
class Pulse:
    """One coded load: first edge in campaign seconds, seconds per bit, bits as text of 0 and 1.

    amplitude_w: what was found in the trace; None before it was looked for or when it could not be seen.
    """

    t_start_s: float
    bit_s: float
    code: str = BARKER_13
    amplitude_w: float | None = None

    def __post_init__(self) -> None:
        if not self.bit_s > 0 or not self.code or set(self.code) - {"0", "1"}:
            raise ValueError(f"a pulse needs bits of 0 and 1 and a positive bit length, got {self}")

    @property
    def t_end_s(self) -> float:
        """End of the last bit, campaign seconds."""
        return self.t_start_s + self.bit_s * len(self.code)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The lag of one meter's readings.

    lag_s, u_lag_s: the lag and its standard uncertainty in s. confidence: probability that the pulses are
    in the trace and the lag is within half a bit (or half an update) of `lag_s`. pulses: as found.
    """

    lag_s: float
    u_lag_s: float
    confidence: float
    pulses: tuple[Pulse, ...]
    method: str = METHOD

    @property
    def usable(self) -> bool:
        """Whether energy arithmetic goes by this lag."""
        return self.confidence >= LEAST_CONFIDENCE

    def document(self, meter_id: str) -> dict[str, Any]:
        """Return the entry of `alignment` in campaign.json."""
        return {
            "meter_id": meter_id,
            "lag_s": self.lag_s,
            "u_lag_s": self.u_lag_s,
            "confidence": self.confidence,
            "method": self.method,
            "pulses": [
                {
                    "t_start_s": pulse.t_start_s,
                    "bit_s": pulse.bit_s,
                    "code": pulse.code,
                    "amplitude_w": pulse.amplitude_w,
                }
                for pulse in self.pulses
            ],
        }


def bit_length_s(update_interval_s: float) -> float:
    """Return a bit length that a meter can resolve: two of its updates, and no less than 0.2 s."""
    return max(0.2, 2 * update_interval_s)


def find_lag(readings: Readings, pulses: Sequence[Pulse]) -> Alignment | None:
    """Return the lag at which the readings fit the pulses best, None when too few readings lie about them.

    Looked for is it within five updates (at least 2 s) about `readings.lag_s`.
    """
    reach_s = max(2.0, 5 * readings.update_interval_s)
    low_s, high_s = readings.lag_s - reach_s, readings.lag_s + reach_s
    grid = _Grid(low_s, high_s, readings.update_interval_s)
    trace = _trace(readings)
    seen = [(pulse, pieces) for pulse in pulses if (pieces := _around(trace, pulse, grid)).power_w.size > 0]
    if sum(pieces.power_w.size for _, pieces in seen) < _LEAST_READINGS * max(len(seen), 1):
        return None
    found = _search(seen, grid)
    return None if found is None else _with_spread(found, seen, pulses, grid)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Least and greatest lag to look at, and the meter's update interval, s."""

    low_s: float
    high_s: float
    update_s: float


@dataclass(frozen=True, slots=True)
class _Found:
    lag_s: float
    u_lag_s: float
    confidence: float


_Seen = Sequence[tuple[Pulse, Pieces]]


def _trace(readings: Readings) -> Pieces:
    """The trace as logged, that is at lag 0; an instant is a stretch too short to matter."""
    unshifted = replace(readings, lag_s=0.0)
    if readings.semantics != INSTANTANEOUS:
        return pieces_of(unshifted)
    at_s, power_w = instants_of(unshifted)
    half_s = readings.update_interval_s / 200
    return Pieces(at_s - half_s, at_s + half_s, power_w)


def _around(trace: Pieces, pulse: Pulse, grid: _Grid) -> Pieces:
    """The readings that any lag of the range could set into the pulse, with idle on both sides."""
    margin_s = 2 * pulse.bit_s
    inside = (trace.end_s >= pulse.t_start_s + grid.low_s - margin_s) & (
        trace.start_s <= pulse.t_end_s + grid.high_s + margin_s
    )
    return Pieces(trace.start_s[inside], trace.end_s[inside], trace.power_w[inside])


def _shape(pulse: Pulse, pieces: Pieces, lags_s: FloatArray) -> FloatArray:
    """Share of each stretch (column) in which the load was on, for each lag (row), less its mean."""
    knots_s = pulse.t_start_s + pulse.bit_s * np.arange(len(pulse.code) + 1)
    on_s = np.concatenate(([0.0], np.cumsum([int(bit) for bit in pulse.code]))) * pulse.bit_s
    ends = np.interp(pieces.end_s - lags_s[:, None], knots_s, on_s)
    starts = np.interp(pieces.start_s - lags_s[:, None], knots_s, on_s)
    shares = (ends - starts) / (pieces.end_s - pieces.start_s)
    return np.asarray(shares - shares.mean(axis=1, keepdims=True), dtype=np.float64)


def _correlations(seen: _Seen, lags_s: FloatArray) -> FloatArray:
    """Normalised correlation at each lag: one height, but an idle power of its own for each pulse."""
    product, shape_square, power_square = np.zeros(lags_s.size), np.zeros(lags_s.size), 0.0
    for pulse, pieces in seen:
        shape, power_w = _shape(pulse, pieces, lags_s), pieces.power_w - pieces.power_w.mean()
        product += shape @ power_w
        shape_square += (shape * shape).sum(axis=1)
        power_square += float(power_w @ power_w)
    scale = np.sqrt(shape_square * power_square)
    return np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)


def _search(seen: _Seen, grid: _Grid) -> _Found | None:
    bit_s = min(pulse.bit_s for pulse, _ in seen)
    step_s = min(bit_s, grid.update_s) / _STEPS_PER_BIT
    count = math.ceil((grid.high_s - grid.low_s) / step_s) + 1
    lags_s: FloatArray = grid.low_s + step_s * np.arange(count, dtype=np.float64)
    rho = _correlations(seen, lags_s)
    best = int(np.argmax(rho))
    if rho[best] <= 0:
        return None
    readings = _effective_readings(seen, float(lags_s[best]))
    log_evidence = _log_evidence(rho, readings - len(seen) - 1)
    near = np.abs(lags_s - lags_s[best]) <= max(bit_s, grid.update_s) / 2 + step_s / 2
    confidence = _confidence(log_evidence, near, readings)
    lag_s, u_s = _moments(lags_s[near], log_evidence[near])
    if u_s < step_s:  # the peak is narrower than the grid: look at it more closely
        offsets: FloatArray = np.linspace(-2.0, 2.0, 4 * _FINE_STEPS + 1, dtype=np.float64)
        fine_s: FloatArray = float(lags_s[best]) + step_s * offsets
        fine = _log_evidence(_correlations(seen, fine_s), readings - len(seen) - 1)
        lag_s, u_s = _moments(fine_s, fine)
    return _Found(lag_s, math.hypot(u_s, step_s / _FINE_STEPS / math.sqrt(12)), confidence)


def _log_evidence(rho: FloatArray, freedom: float) -> FloatArray:
    """Logarithm of how much more probable the trace is with the pulse at each lag than without one."""
    unexplained = np.maximum(1 - np.maximum(rho, 0.0) ** 2, _PERFECT)
    return np.asarray(-max(freedom, 1.0) / 2 * np.log(unexplained), dtype=np.float64)


def _confidence(log_evidence: FloatArray, near: FloatArray, readings: float) -> float:
    """Probability of a pulse at a lag among `near`; beforehand all lags are alike, and so is "no pulse".

    The height that was fitted costs a factor of sqrt(readings) (Schwarz's criterion).
    """
    top = float(log_evidence.max())
    weights = np.exp(log_evidence - top)
    log_pulse = top + math.log(float(weights.mean())) - math.log(max(readings, 1.0)) / 2
    there = 1 / (1 + math.exp(-min(max(log_pulse, -700.0), 700.0)))
    return there * float(weights[near].sum() / weights.sum())


def _moments(lags_s: FloatArray, log_evidence: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of the lag under the evidence, s."""
    weights = np.exp(log_evidence - log_evidence.max())
    weights /= weights.sum()
    mean_s = float(weights @ lags_s)
    return mean_s, math.sqrt(max(float(weights @ (lags_s - mean_s) ** 2), 0.0))


def _effective_readings(seen: _Seen, lag_s: float) -> float:
    """Independent readings: what the fit leaves over is seldom white, a load has a life of its own."""
    lags_s = np.array([lag_s])
    height_w = _height_w(seen, lag_s)
    square = lagged = 0.0
    count = 0
    for pulse, pieces in seen:
        rest = pieces.power_w - pieces.power_w.mean() - height_w * _shape(pulse, pieces, lags_s)[0]
        square += float(rest @ rest)
        lagged += float(rest[:-1] @ rest[1:])
        count += rest.size
    correlation = min(max(lagged / square, 0.0), _GREATEST_CORRELATION) if square > 0 else 0.0
    return count * (1 - correlation) / (1 + correlation)


def _height_w(seen: _Seen, lag_s: float) -> float:
    """Height of the pulses in W by least squares."""
    product = square = 0.0
    for pulse, pieces in seen:
        shape = _shape(pulse, pieces, np.array([lag_s]))[0]
        product += float(shape @ pieces.power_w)
        square += float(shape @ shape)
    return product / square if square > 0 else 0.0


def _with_spread(found: _Found, seen: _Seen, pulses: Sequence[Pulse], grid: _Grid) -> Alignment:
    """Compare the pulses' own lags: a lag that wandered is uncertain by that, one that jumped is no lag."""
    alone = [one for item in seen if (one := _search([item], grid)) is not None]
    lags_s = [one.lag_s for one in alone if one.confidence >= 0.5]
    spread_s = max(lags_s) - min(lags_s) if lags_s else 0.0
    limit_s = max(grid.update_s, min(pulse.bit_s for pulse, _ in seen))
    heights = {id(pulse): _height_w([(pulse, pieces)], found.lag_s) for pulse, pieces in seen}
    return Alignment(
        lag_s=round(found.lag_s, 6),
        u_lag_s=round(math.hypot(found.u_lag_s, spread_s / math.sqrt(12)), 6),
        confidence=round(found.confidence if spread_s <= limit_s else min(found.confidence, 0.5), 6),
        pulses=tuple(replace(pulse, amplitude_w=heights.get(id(pulse))) for pulse in pulses),
    )
