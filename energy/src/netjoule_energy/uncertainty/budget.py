# SPDX-License-Identifier: Apache-2.0
"""95 % half-widths of E_A and of power differences by Monte Carlo (JCGM 101:2008).

Error model, every term drawn apart and reported apart:

gain        reading part of the specification: one factor for P_A and P_I, so it acts on their difference.
offset      range part: drawn for P_A and for P_I, unless the meter was zeroed (then it cancels).
resolution  what the least step of the readings hides.
noise       scatter of the readings: t (6.4.9) over the distribution of their autocorrelation.
edges       a window edge lies anywhere within one update interval of where the readings place it, or within
            the uncertainty of a lag that was measured.
timebase    the clock that the window's length is taken from may run fast or slow.
idle_drift  idle power between the two idle windows may leave the straight line.
t_a         what an edge of the window may miscount of the work, and the residual of its clock.
straddle    readings on an edge of a window until done are shared by time; of such windows alone.

Limits +-a of a specification are rectangular: u = a / sqrt(3). Gain and offset hold the whole specification;
its terms (range, power factor, crest factor, time since calibration ...) are listed beside them where the
passport states them. Within one run the idle windows that it shares with its neighbours are treated as its
own; E_A above the floor, which two runs make, draws a window that they share once (`floor_spread`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from netjoule_energy.power.idle import Idle, drift_half_width_w
from netjoule_energy.power.readings import WindowMean
from netjoule_energy.power.windows import FloatArray
from netjoule_energy.uncertainty.noise import MeanNoise, Scatter

DRAWS = 10_000
RESOLUTION_FACTOR = 3.0
TIMEBASE_RATIO = 1e-4
"""Limit of a host clock's rate error: crystal oscillators of computers keep within 100 ppm."""


@dataclass(frozen=True, slots=True)
class SpecificationTerm:
    """One term of a meter's specification: parts of the reading (1) and of the range (W)."""

    name: str
    reading_ratio: float
    range_w: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Specification of a meter: +-reading_ratio of the reading, +-range_w of the range in W.

    known: False when the maker states nothing; gain and offset then add nothing, and the grade says so.
    zeroed: the offset is the same in every window. terms: what the two limits are made of, if stated.
    provisional: no document at hand confirms the limits.
    """

    reading_ratio: float
    range_w: float
    known: bool
    zeroed: bool = False
    terms: tuple[SpecificationTerm, ...] = ()
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class PowerTerm:
    """Mean power of one window in W with what is uncertain about it.

    noise: distribution of the error of the mean. edge_half_widths_w: largest error in W that each edge
    can cause. resolution_half_widths_w: of the rectangular errors that the meter's least step leaves.
    straddle_half_widths_w: of those that readings on an edge leave, of a window until done.
    """

    mean_w: float
    noise: MeanNoise
    edge_half_widths_w: tuple[float, float]
    resolution_half_widths_w: tuple[float, ...] = ()
    straddle_half_widths_w: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PowerBudget:
    """Everything that makes P_A - P_I of one run uncertain."""

    active: PowerTerm
    before: PowerTerm
    after: PowerTerm
    after_share: float
    drift_half_width_w: float

    @property
    def delta_w(self) -> float:
        """P_A - P_I in W."""
        idle = (1 - self.after_share) * self.before.mean_w + self.after_share * self.after.mean_w
        return self.active.mean_w - idle


@dataclass(frozen=True, slots=True)
class Throughput:
    """Work per second (of Mb: T_A in Mb/s) with what is uncertain about it, relative to it.

    edge_ratio: what the two edges of the window may miscount, each by half of it either way; as a standard
    uncertainty that is 1 / sqrt(6) of it. clock_ratio: limit of the counting clock's error at each edge.
    timebase_ratio: limit of that clock's rate error.
    """

    work_per_s: float
    edge_ratio: float
    clock_ratio: float
    timebase_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """What the draws say: u of P_A - P_I in W; of E_A its 95 % half-width, the parts and the upper limit."""

    u_delta_w: float
    u95_ea: float | None
    ea_upper: float | None
    u95_by_component: dict[str, float] | None


class SharedIdle(Enum):
    """Which idle window of a run is also one of the null run's: its first, its last or none."""

    NONE = "none"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class FloorSpread:
    """95 % half-widths of the floor in W and of energy per work above the floor in J (None without work)."""

    u95_floor_w: float
    u95_ea_above_floor: float | None


@dataclass(frozen=True, slots=True)
class _Draws:
    """Additive errors in W by component, one array per component."""

    noise: FloatArray
    offset: FloatArray
    resolution: FloatArray
    edges: FloatArray
    idle_drift: FloatArray
    straddle: FloatArray

    def total(self) -> FloatArray:
        return self.noise + self.offset + self.resolution + self.edges + self.idle_drift + self.straddle


def power_term(
    mean: WindowMean,
    scatter: Scatter,
    edge_shift_s: float,
    resolution_half_widths_w: tuple[float, ...] = (),
) -> PowerTerm:
    """Return the term of a window; its mean must exist.

    An edge that lies up to `edge_shift_s` away exchanges that much of the window's average for the reading
    at the edge: error (reading - mean) x shift / length.
    """
    if mean.mean_w is None:
        raise ValueError("a window without readings has no mean power")
    scale = edge_shift_s / mean.window.length_s
    first, last = abs(mean.values_w[0] - mean.mean_w), abs(mean.values_w[-1] - mean.mean_w)
    return PowerTerm(
        mean_w=mean.mean_w,
        noise=scatter.mean_noise(mean.weights_s),
        edge_half_widths_w=(float(first) * scale, float(last) * scale),
        resolution_half_widths_w=resolution_half_widths_w,
    )


def power_budget(
    active: PowerTerm, before: PowerTerm, after: PowerTerm, idle: Idle, u_difference_w: float
) -> PowerBudget:
    """Return the budget of one run; `u_difference_w` is u of idle after minus idle before in W."""
    return PowerBudget(active, before, after, idle.after_share, drift_half_width_w(idle, u_difference_w))


def spread(
    budget: PowerBudget,
    accuracy: Accuracy,
    throughput: Throughput | None,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> Spread:
    """Return the uncertainty of one run; `throughput` None (or zero) leaves the parts of E_A empty."""
    errors = _draw(budget, accuracy, rng, draws)
    gain = _rectangular(rng, accuracy.reading_ratio if accuracy.known else 0.0, draws)
    delta = budget.delta_w
    deltas = (delta + errors.total()) * (1 + gain)
    u_delta_w = float(deltas.std())
    if throughput is None or throughput.work_per_s <= 0:
        return Spread(u_delta_w, None, None, None)
    t_a = _draw_rate(throughput, rng, draws)
    timebase = 1 + _rectangular(rng, throughput.timebase_ratio, draws)
    rate = t_a * timebase
    parts = {
        "gain": delta * (1 + gain) / throughput.work_per_s,
        "offset": (delta + errors.offset) / throughput.work_per_s,
        "resolution": (delta + errors.resolution) / throughput.work_per_s,
        "noise": (delta + errors.noise) / throughput.work_per_s,
        "edges": (delta + errors.edges) / throughput.work_per_s,
        "timebase": delta / (throughput.work_per_s * timebase),
        "idle_drift": (delta + errors.idle_drift) / throughput.work_per_s,
        "t_a": delta / t_a,
    }
    if budget.active.straddle_half_widths_w:
        parts["straddle"] = (delta + errors.straddle) / throughput.work_per_s
    # The limit never falls below what the meter could have seen: a negative difference is taken as none.
    limit = (max(delta, 0.0) + errors.total()) * (1 + gain) / rate
    return Spread(
        u_delta_w=u_delta_w,
        u95_ea=half_width_95(deltas / rate),
        ea_upper=float(np.quantile(limit, 0.95)),
        u95_by_component={name: half_width_95(part) for name, part in parts.items()},
    )


def u95_throughput(throughput: Throughput, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """Return the 95 % half-width of work per second."""
    rate = _draw_rate(throughput, rng, draws)
    return half_width_95(rate * (1 + _rectangular(rng, throughput.timebase_ratio, draws)))


def specification_u95(
    terms: Sequence[SpecificationTerm], delta_w: float, work_per_s: float, *, zeroed: bool
) -> dict[str, float]:
    """Return what each term of the specification alone adds to u95 of energy per work, J.

    Closed forms: a rectangle holds 95 % within 0.95 of its limit; the difference of two range errors is
    triangular and holds 95 % within 1 - sqrt(0.05) of twice the limit.
    """
    range_factor = 0.0 if zeroed else 2 * (1 - math.sqrt(0.05))
    return {
        term.name: math.hypot(0.95 * term.reading_ratio * delta_w, range_factor * term.range_w) / work_per_s
        for term in terms
    }


def floor_spread(
    run: PowerBudget,
    null: PowerBudget,
    accuracy: Accuracy,
    throughput: Throughput | None,
    *,
    shared: SharedIdle = SharedIdle.NONE,
    scale: float = 1.0,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> FloorSpread:
    """Return the uncertainty of the generator floor P_null - P_I and of E_A above it.

    Drawn once for both runs: the gain, the range error of idle power (two idle powers are one reading on one
    range) and the idle window that the two share, if any. Everything else is drawn for each run.
    scale: of the null run's power above idle, so that its energy is that for the same work.
    """
    gain = 1 + _rectangular(rng, accuracy.reading_ratio if accuracy.known else 0.0, draws)
    idle_offset = _offset(accuracy, rng, draws)
    before, after = (_window_error(term, rng, draws) for term in (run.before, run.after))
    null_before = after if shared is SharedIdle.AFTER else _window_error(null.before, rng, draws)
    null_after = before if shared is SharedIdle.BEFORE else _window_error(null.after, rng, draws)

    def above_idle(budget: PowerBudget, first: FloatArray, last: FloatArray) -> FloatArray:
        """Power above idle in W; `first` and `last` are the errors of its idle windows."""
        idle = (1 - budget.after_share) * first + budget.after_share * last + idle_offset
        active = _window_error(budget.active, rng, draws) + _offset(accuracy, rng, draws)
        drift = _rectangular(rng, budget.drift_half_width_w, draws)
        return (budget.delta_w + active - idle + drift) * gain

    floor = scale * above_idle(null, null_before, null_after)
    u95_floor_w = half_width_95(floor)
    if throughput is None or throughput.work_per_s <= 0:
        return FloorSpread(u95_floor_w, None)
    rate = _draw_rate(throughput, rng, draws) * (1 + _rectangular(rng, throughput.timebase_ratio, draws))
    return FloorSpread(u95_floor_w, half_width_95((above_idle(run, before, after) - floor) / rate))


def half_width_95(samples: FloatArray) -> float:
    """Return half the width of the probabilistically symmetric 95 % interval (JCGM 101, 7.7)."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(high - low) / 2


def _draw(budget: PowerBudget, accuracy: Accuracy, rng: np.random.Generator, draws: int) -> _Draws:
    before_share, after_share = 1 - budget.after_share, budget.after_share

    def joined(of: Callable[[PowerTerm], FloatArray]) -> FloatArray:
        """Error of P_A less that of P_I, in W."""
        return of(budget.active) - before_share * of(budget.before) - after_share * of(budget.after)

    noise = joined(lambda term: term.noise.draw(rng, draws))
    edges = joined(lambda term: _rectangles(rng, term.edge_half_widths_w, draws))
    resolution = joined(lambda term: _rectangles(rng, term.resolution_half_widths_w, draws))
    offset = _offset(accuracy, rng, draws) - _offset(accuracy, rng, draws)
    drift = _rectangular(rng, budget.drift_half_width_w, draws)
    straddle = _rectangles(rng, budget.active.straddle_half_widths_w, draws)
    return _Draws(noise, offset, resolution, edges, drift, straddle)


def _window_error(term: PowerTerm, rng: np.random.Generator, draws: int) -> FloatArray:
    """Errors of the mean power of one window in W, but for gain and offset."""
    half_widths = (
        *term.edge_half_widths_w,
        *term.resolution_half_widths_w,
        *term.straddle_half_widths_w,
    )
    return term.noise.draw(rng, draws) + _rectangles(rng, half_widths, draws)


def _offset(accuracy: Accuracy, rng: np.random.Generator, draws: int) -> FloatArray:
    """Range errors of one power in W; none of a zeroed meter, whose offset cancels."""
    return _rectangular(rng, accuracy.range_w if accuracy.known and not accuracy.zeroed else 0.0, draws)


def _draw_rate(throughput: Throughput, rng: np.random.Generator, draws: int) -> FloatArray:
    messages = _rectangular(rng, 0.5, draws) + _rectangular(rng, 0.5, draws)
    clock = _rectangular(rng, throughput.clock_ratio, draws) - _rectangular(
        rng, throughput.clock_ratio, draws
    )
    # With a single unit of work in the window the factor could reach 0, and no draw may divide by that.
    factor = np.maximum(1 + messages * throughput.edge_ratio + clock, 1e-3)
    return throughput.work_per_s * factor


def _rectangles(rng: np.random.Generator, half_widths: Sequence[float], draws: int) -> FloatArray:
    total = np.zeros(draws)
    for half_width in half_widths:
        total += _rectangular(rng, half_width, draws)
    return total


def _rectangular(rng: np.random.Generator, half_width: float, draws: int) -> FloatArray:
    return rng.uniform(-1.0, 1.0, draws) * half_width
