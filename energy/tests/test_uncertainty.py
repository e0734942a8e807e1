# SPDX-License-Identifier: Apache-2.0
"""The Monte Carlo against closed forms, and its coverage against simulated truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netjoule_energy.power.readings import Readings
from netjoule_energy.power.windows import Window
from netjoule_energy.run.node_power import MeterInput, node_power
from netjoule_energy.uncertainty.budget import (
    Accuracy,
    PowerBudget,
    PowerTerm,
    SpecificationTerm,
    Throughput,
    half_width_95,
    specification_u95,
    spread,
    u95_throughput,
)
from netjoule_energy.uncertainty.noise import MeanNoise

EXACT = Accuracy(0.0, 0.0, known=True)
TEN_MBPS = Throughput(10.0, 0.0, 0.0)
DRAWS = 200_000


def term(
    mean_w: float,
    u_w: float = 0.0,
    freedom: float = 1e6,
    edges: tuple[float, float] = (0.0, 0.0),
    resolution: tuple[float, ...] = (),
) -> PowerTerm:
    return PowerTerm(mean_w, MeanNoise(np.array([u_w]), np.ones(1), freedom), edges, resolution)


def budget(active: PowerTerm, idle: PowerTerm, drift_w: float = 0.0) -> PowerBudget:
    return PowerBudget(active, idle, idle, 0.5, drift_w)


def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)


def test_exact_inputs_have_no_uncertainty() -> None:
    found = spread(budget(term(9.5), term(8.0)), EXACT, TEN_MBPS, rng())
    assert found.u_delta_w == pytest.approx(0.0, abs=1e-12)
    assert found.u95_ea == pytest.approx(0.0, abs=1e-12)
    assert found.u95_by_component == pytest.approx(
        dict.fromkeys(found.u95_by_component or {}, 0.0), abs=1e-12
    )


def test_gain_acts_on_the_difference_only() -> None:
    found = spread(budget(term(9.5), term(8.0)), Accuracy(0.01, 0.0, known=True), TEN_MBPS, rng(), DRAWS)
    assert found.u_delta_w == pytest.approx(1.5 * 0.01 / math.sqrt(3), rel=0.01)
    assert found.u95_ea == pytest.approx(0.95 * 0.15 * 0.01, rel=0.01)


def test_offsets_of_both_windows_are_independent_unless_zeroed() -> None:
    drawn = spread(budget(term(9.5), term(8.0)), Accuracy(0.0, 0.03, known=True), None, rng(), DRAWS)
    assert drawn.u_delta_w == pytest.approx(math.sqrt(2) * 0.03 / math.sqrt(3), rel=0.01)
    zeroed = Accuracy(0.0, 0.03, known=True, zeroed=True)
    assert spread(budget(term(9.5), term(8.0)), zeroed, None, rng(), DRAWS).u_delta_w == pytest.approx(
        0, abs=1e-12
    )


def test_unknown_accuracy_adds_nothing() -> None:
    found = spread(budget(term(9.5), term(8.0)), Accuracy(0.5, 5.0, known=False), TEN_MBPS, rng())
    assert found.u95_ea == pytest.approx(0.0, abs=1e-12)


def test_noise_of_three_windows() -> None:
    found = spread(budget(term(9.5, 0.02), term(8.0, 0.04)), EXACT, TEN_MBPS, rng(), DRAWS)
    u_w = math.sqrt(0.02**2 + 2 * (0.5 * 0.04) ** 2)
    assert found.u_delta_w == pytest.approx(u_w, rel=0.01)
    assert found.u95_ea == pytest.approx(1.96 * u_w / 10, rel=0.01)


def test_drift_and_edges_are_rectangular() -> None:
    drift = spread(budget(term(9.5), term(8.0), 0.06), EXACT, None, rng(), DRAWS)
    assert drift.u_delta_w == pytest.approx(0.06 / math.sqrt(3), rel=0.01)
    edges = spread(budget(term(9.5, edges=(0.03, 0.04)), term(8.0)), EXACT, None, rng(), DRAWS)
    assert edges.u_delta_w == pytest.approx(0.05 / math.sqrt(3), rel=0.01)


def test_one_message_at_each_edge_of_the_window() -> None:
    found = spread(budget(term(9.5), term(8.0)), EXACT, Throughput(10.0, 0.01, 0.0), rng(), DRAWS)
    # Sum of two rectangular errors of half a message: triangular, 95 % within (1 - sqrt(0.05)) of a message.
    u95_t_a = u95_throughput(Throughput(10.0, 0.01, 0.0), rng(), DRAWS)
    assert u95_t_a == pytest.approx(10 * 0.01 * (1 - math.sqrt(0.05)), rel=0.01)
    assert found.u95_ea == pytest.approx(0.15 * 0.01 * (1 - math.sqrt(0.05)), rel=0.01)


def test_components_alone_are_smaller_than_the_whole() -> None:
    case = budget(term(9.5, 0.01, 8, (0.002, 0.003), (0.005,)), term(8.0, 0.01, 8, (0.001, 0.001)), 0.01)
    found = spread(case, Accuracy(0.0015, 0.01, known=True), Throughput(10.0, 0.002, 1e-5, 1e-3), rng())
    assert found.u95_by_component is not None
    assert found.u95_ea is not None
    assert all(0 < part < found.u95_ea for part in found.u95_by_component.values())
    # Adding half-widths in quadrature is exact for normal parts and close for this mixture.
    assert found.u95_ea == pytest.approx(math.hypot(*found.u95_by_component.values()), rel=0.15)


def test_negative_difference_has_a_positive_upper_limit() -> None:
    found = spread(budget(term(7.5, 0.1), term(8.0)), EXACT, TEN_MBPS, rng(), DRAWS)
    assert found.ea_upper == pytest.approx(1.645 * 0.1 / 10, rel=0.02)


def test_same_generator_state_gives_the_same_digits() -> None:
    case = budget(term(9.5, 0.01), term(8.0, 0.01))
    assert spread(case, EXACT, TEN_MBPS, rng()) == spread(case, EXACT, TEN_MBPS, rng())


def test_half_width_of_a_rectangle() -> None:
    assert half_width_95(np.linspace(-1, 1, 100_001)) == pytest.approx(0.95, rel=1e-3)


def test_timebase_is_rectangular_and_acts_on_throughput() -> None:
    rate = Throughput(10.0, 0.0, 0.0, 0.002)
    found = spread(budget(term(9.5), term(8.0)), EXACT, rate, rng(), DRAWS)
    assert found.u95_by_component is not None
    assert found.u95_by_component["timebase"] == pytest.approx(0.15 * 0.95 * 0.002, rel=0.01)
    assert found.u95_ea == pytest.approx(found.u95_by_component["timebase"], rel=1e-9)
    assert u95_throughput(rate, rng(), DRAWS) == pytest.approx(10 * 0.95 * 0.002, rel=0.01)


def test_resolution_adds_a_rectangle_per_window() -> None:
    found = spread(budget(term(9.5, resolution=(0.03,)), term(8.0)), EXACT, None, rng(), DRAWS)
    assert found.u_delta_w == pytest.approx(0.03 / math.sqrt(3), rel=0.01)


def test_terms_of_the_specification_in_closed_form() -> None:
    terms = (SpecificationTerm("reading", 0.001, 0.0), SpecificationTerm("range", 0.0, 0.03))
    alone = specification_u95(terms, 1.5, 10.0, zeroed=False)
    both = Accuracy(0.001, 0.03, known=True, terms=terms)
    drawn = spread(budget(term(9.5), term(8.0)), both, TEN_MBPS, rng(), DRAWS)
    assert drawn.u95_by_component is not None
    assert alone["reading"] == pytest.approx(drawn.u95_by_component["gain"], rel=0.01)
    assert alone["range"] == pytest.approx(drawn.u95_by_component["offset"], rel=0.01)
    assert specification_u95(terms, 1.5, 10.0, zeroed=True)["range"] == 0.0


def simulate(seed: int, correlation: float) -> tuple[float, float]:
    """Return (error of E_A, reported u95) of one simulated run with a new instrument."""
    source = np.random.default_rng([seed, round(100 * correlation)])
    tau, sigma, gain_limit, range_limit = 0.1, 0.05, 0.004, 0.03
    active, before, after = Window(2.0, 4.0), Window(0.5, 1.4), Window(4.4, 5.3)
    t_s = np.arange(tau, 5.6, tau) + 0.03
    noise = np.empty(t_s.size)
    noise[0] = source.normal()
    for k in range(1, noise.size):
        noise[k] = correlation * noise[k - 1] + math.sqrt(1 - correlation**2) * source.normal()
    flowing = (t_s > 1.6) & (t_s <= 4.2)
    true_w = np.where(flowing, 9.2, 8.0)
    offset_w = np.where(flowing, *source.uniform(-range_limit, range_limit, 2))
    read_w = (true_w + offset_w) / (1 + source.uniform(-gain_limit, gain_limit)) + sigma * noise
    readings = Readings(t_s, read_w, np.array([""] * t_s.size, dtype=np.str_), tau, 0.0)
    accuracy = Accuracy(gain_limit, range_limit, known=True)
    meter = MeterInput("m1", "client", "measured", None, None, accuracy, readings, None)
    power = node_power(meter, active, {"idle_before": before, "idle_after": after, "tail": None})
    assert power.budget is not None
    found = spread(power.budget, accuracy, TEN_MBPS, source, 4000)
    assert found.u95_ea is not None
    return power.budget.delta_w / 10 - 0.12, found.u95_ea


@pytest.mark.parametrize(("correlation", "widest"), [(0.0, 1.4), (0.5, 1.55), (0.8, 1.25), (0.9, 1.1)])
def test_coverage_of_u95(correlation: float, widest: float) -> None:
    """Truth lies within u95 in 93-99 % of 400 runs, also of a load that wanders.

    The seeds are fixed, so the outcome is the same every time.
    """
    runs = [simulate(seed, correlation) for seed in range(400)]
    inside = sum(abs(error) <= u95 for error, u95 in runs) / len(runs)
    assert 0.93 <= inside <= 0.99
    # The interval is not bought with width alone. Twenty readings cannot tell correlations of 0 and 0.5
    # apart; what covers both is wider than either needs.
    needed = float(np.quantile([abs(error) for error, _ in runs], 0.95))
    assert float(np.median([u95 for _, u95 in runs])) <= widest * needed
