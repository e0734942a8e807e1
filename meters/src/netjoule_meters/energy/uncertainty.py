# SPDX-License-Identifier: Apache-2.0
"""95 % half-widths of E_A and of power differences by Monte Carlo (JCGM 101:2008).

Error model, every term drawn apart and reported apart:

gain        reading part of the specification: one factor for P_A and P_I, so it acts on their difference.
offset      range part: drawn for P_A and for P_I, unless the meter was zeroed (then it cancels).
noise       scatter of the readings, scaled-and-shifted t (6.4.9) with effective sample size.
edges       a window edge lies anywhere within one update interval of where the readings place it.
idle_drift  idle power between the two idle windows may leave the straight line.
t_a         one message at each edge of the window, and the residual of the receiver's clock.

Limits +-a of a specification are rectangular: u = a / sqrt(3). Idle windows that neighbouring runs share are
treated as if each run had its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netjoule_meters.energy.idle import Idle, drift_half_width_w
from netjoule_meters.energy.noise import Scatter
from netjoule_meters.energy.power import WindowMean
from netjoule_meters.energy.windows import FloatArray

DRAWS = 10_000
COMPONENTS = ("gain", "offset", "noise", "edges", "idle_drift", "t_a")
RESOLUTION_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Specification of a meter: +-reading_ratio of the reading, +-range_w of the range in W.

    known: False when the maker states nothing; gain and offset then add nothing, and the grade says so.
    zeroed: the offset is the same in every window.
    """

    reading_ratio: float
    range_w: float
    known: bool
    zeroed: bool = False


@dataclass(frozen=True, slots=True)
class PowerTerm:
    """Mean power of one window in W with what is uncertain about it.

    u_noise_w: standard uncertainty of the mean in W. edge_half_widths_w: largest error in W that each edge
    can cause. degrees_of_freedom: of the scatter behind u_noise_w.
    """

    mean_w: float
    u_noise_w: float
    degrees_of_freedom: float
    edge_half_widths_w: tuple[float, float]


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
    """T_A in Mb/s with the relative size of one message and the relative clock residual of the window."""

    t_a_mbps: float
    message_ratio: float
    clock_ratio: float


@dataclass(frozen=True, slots=True)
class Spread:
    """What the draws say: u of P_A - P_I in W; of E_A its 95 % half-width, the parts and the upper limit."""

    u_delta_w: float
    u95_ea: float | None
    ea_upper: float | None
    u95_by_component: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class FloorSpread:
    """95 % half-widths of the floor in W and of E_A above the floor in J/Mb (None without T_A)."""

    u95_floor_w: float
    u95_ea_above_floor: float | None


@dataclass(frozen=True, slots=True)
class _Draws:
    """Additive errors in W by component, one array per component."""

    noise: FloatArray
    offset: FloatArray
    edges: FloatArray
    idle_drift: FloatArray

    def total(self) -> FloatArray:
        return self.noise + self.offset + self.edges + self.idle_drift


def power_term(mean: WindowMean, scatter: Scatter, update_interval_s: float) -> PowerTerm:
    """Return the term of a window; its mean must exist.

    An edge that lies up to half an update interval away exchanges that much of the window's average for
    the reading at the edge: error (reading - mean) x shift / length.
    """
    if mean.mean_w is None:
        raise ValueError("a window without readings has no mean power")
    scale = update_interval_s / 2 / mean.window.length_s
    first, last = abs(mean.values_w[0] - mean.mean_w), abs(mean.values_w[-1] - mean.mean_w)
    return PowerTerm(
        mean_w=mean.mean_w,
        u_noise_w=scatter.u_mean_w(mean.weights_s),
        degrees_of_freedom=scatter.degrees_of_freedom,
        edge_half_widths_w=(float(first) * scale, float(last) * scale),
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
    if throughput is None or throughput.t_a_mbps <= 0:
        return Spread(u_delta_w, None, None, None)
    rate = _draw_rate(throughput, rng, draws)
    parts = {
        "gain": delta * (1 + gain) / throughput.t_a_mbps,
        "offset": (delta + errors.offset) / throughput.t_a_mbps,
        "noise": (delta + errors.noise) / throughput.t_a_mbps,
        "edges": (delta + errors.edges) / throughput.t_a_mbps,
        "idle_drift": (delta + errors.idle_drift) / throughput.t_a_mbps,
        "t_a": delta / rate,
    }
    # The limit never falls below what the meter could have seen: a negative difference is taken as none.
    limit = (max(delta, 0.0) + errors.total()) * (1 + gain) / rate
    return Spread(
        u_delta_w=u_delta_w,
        u95_ea=half_width_95(deltas / rate),
        ea_upper=float(np.quantile(limit, 0.95)),
        u95_by_component={name: half_width_95(parts[name]) for name in COMPONENTS},
    )


def u95_throughput_mbps(throughput: Throughput, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """Return the 95 % half-width of T_A in Mb/s."""
    return half_width_95(_draw_rate(throughput, rng, draws))


def floor_spread(
    run: PowerBudget,
    null: PowerBudget,
    accuracy: Accuracy,
    throughput: Throughput | None,
    *,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> FloorSpread:
    """Return the uncertainty of the generator floor and of E_A above it; gain is common to both runs."""
    gain = _rectangular(rng, accuracy.reading_ratio if accuracy.known else 0.0, draws)
    floor = (null.delta_w + _draw(null, accuracy, rng, draws).total()) * (1 + gain)
    u95_floor_w = half_width_95(floor)
    if throughput is None or throughput.t_a_mbps <= 0:
        return FloorSpread(u95_floor_w, None)
    active = (run.delta_w + _draw(run, accuracy, rng, draws).total()) * (1 + gain)
    return FloorSpread(u95_floor_w, half_width_95((active - floor) / _draw_rate(throughput, rng, draws)))


def half_width_95(samples: FloatArray) -> float:
    """Return half the width of the probabilistically symmetric 95 % interval (JCGM 101, 7.7)."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(high - low) / 2


def _draw(budget: PowerBudget, accuracy: Accuracy, rng: np.random.Generator, draws: int) -> _Draws:
    before_share, after_share = 1 - budget.after_share, budget.after_share
    noise = _t(rng, budget.active, draws)
    noise -= before_share * _t(rng, budget.before, draws) + after_share * _t(rng, budget.after, draws)
    edges = _edges(rng, budget.active, draws)
    edges -= before_share * _edges(rng, budget.before, draws) + after_share * _edges(rng, budget.after, draws)
    limit_w = accuracy.range_w if accuracy.known and not accuracy.zeroed else 0.0
    offset = _rectangular(rng, limit_w, draws) - _rectangular(rng, limit_w, draws)
    return _Draws(noise, offset, edges, _rectangular(rng, budget.drift_half_width_w, draws))


def _draw_rate(throughput: Throughput, rng: np.random.Generator, draws: int) -> FloatArray:
    messages = _rectangular(rng, 0.5, draws) + _rectangular(rng, 0.5, draws)
    clock = _rectangular(rng, throughput.clock_ratio, draws) - _rectangular(
        rng, throughput.clock_ratio, draws
    )
    # With a single message in the window the factor could reach 0, and no draw may divide by that.
    factor = np.maximum(1 + messages * throughput.message_ratio + clock, 1e-3)
    return throughput.t_a_mbps * factor


def _t(rng: np.random.Generator, term: PowerTerm, draws: int) -> FloatArray:
    return term.u_noise_w * rng.standard_t(term.degrees_of_freedom, draws)


def _edges(rng: np.random.Generator, term: PowerTerm, draws: int) -> FloatArray:
    first, last = term.edge_half_widths_w
    return _rectangular(rng, first, draws) + _rectangular(rng, last, draws)


def _rectangular(rng: np.random.Generator, half_width: float, draws: int) -> FloatArray:
    return rng.uniform(-1.0, 1.0, draws) * half_width
