# SPDX-License-Identifier: Apache-2.0
"""u95 holds the true E_A of a known device, on 200 new instruments, and is no wider than it needs to be."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from netjoule_energy.power.alignment import Pulse, bit_length_s, find_lag
from netjoule_energy.power.integrator import check_integrator
from netjoule_energy.power.windows import Window

STUDY = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("coverage_study.py"))))


def test_the_device_of_the_study_is_read_as_it_is() -> None:
    """A few runs come out near the truth, each on another instrument, and no reading is lost."""
    scenario = STUDY.SCENARIOS[0]
    nodes = [STUDY.fly(scenario, seed) for seed in (1, 2, 3)]
    assert len({node.p_a_w for node in nodes}) == 3
    for node in nodes:
        assert node.energy_per_work_j == pytest.approx(scenario.true_ea, abs=2 * node.u95_energy_per_work_j)
        assert node.coverage == pytest.approx(1.0)
        assert (node.readings, node.semantics) == (100, "interval_mean")
        assert node.u95_components.offset > node.u95_components.noise > node.u95_components.gain > 0


def test_the_oracle_knows_the_closed_form_without_scatter() -> None:
    still = STUDY.Scenario("still", scatter_w=0.0)
    # Difference of two rectangles of 0.03 W, gain aside: 0.06 W x (1 - sqrt(0.05)) over 10 Mb/s.
    assert STUDY.oracle_half_width(still) == pytest.approx(0.06 * (1 - 0.05**0.5) / 10, rel=0.01)


def test_the_instruments_own_integrator_agrees_with_the_log() -> None:
    scenario = STUDY.SCENARIOS[0]
    windows = STUDY.windows_of(scenario, 2.0)
    power_w = STUDY.device_power_w(scenario, windows, np.random.default_rng(3))
    line = STUDY.Line(STUDY.StudiedWT210(4, constant_offset=False), power_w)
    readings, _ = STUDY.logged(line, windows["idle_after"]["t_end_s"], integrate=True)
    check = check_integrator(readings, Window(*windows["measure"].values()))
    assert check is not None
    assert check.agrees
    assert check.counted_j == pytest.approx(9.5 * 10, rel=0.02)
    # 0.9 s of idle before the flow are lost: the rest stands for them, and is the power of the flow.
    lost = Window(windows["measure"]["t_start_s"] - 2.6, windows["measure"]["t_end_s"])
    kept = (readings.t_s < lost.start_s + 0.6) | (readings.t_s > lost.start_s + 1.5)
    holed = replace(
        readings,
        t_s=readings.t_s[kept],
        power_w=readings.power_w[kept],
        flag=readings.flag[kept],
        energy_j=readings.energy_j[kept],
    )
    again = check_integrator(holed, lost)
    assert again is not None
    assert not again.agrees
    assert again.logged_j - again.counted_j == pytest.approx(0.9 * 1.5 * 11 / 12.6, rel=0.3)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_lag_of_the_emulated_instrument_is_found_by_a_load_pulse(seed: int) -> None:
    """It shows the mean of an interval one update interval after its end."""
    pulse = Pulse(3.0 + 0.01 * seed, bit_length_s(STUDY.UPDATE_S))
    t_s = np.arange(round(9.0 / STUDY.STEP_S)) * STUDY.STEP_S
    bit = np.floor((t_s - pulse.t_start_s) / pulse.bit_s).astype(int)
    inside = (bit >= 0) & (bit < len(pulse.code))
    on = inside & np.array([pulse.code[k % len(pulse.code)] == "1" for k in bit])
    noise_w = np.random.default_rng(seed).normal(0.0, 0.1, t_s.size)
    line = STUDY.Line(STUDY.StudiedWT210(seed, constant_offset=False), 8.0 + 1.0 * on + noise_w)
    readings, passport = STUDY.logged(line, 8.5)
    found = find_lag(readings, [pulse])
    assert found is not None
    assert found.usable
    # The device's power and the clock both move in steps of 0.02 s.
    assert found.lag_s == pytest.approx(passport["lag_s"], abs=STUDY.STEP_S + 2 * found.u_lag_s)


@pytest.mark.slow
def test_true_energy_lies_inside_u95_and_the_interval_is_not_wide() -> None:
    outcome = STUDY.study(STUDY.SCENARIOS[0], range(STUDY.RUNS))
    assert outcome.runs == 200
    assert 0.93 <= outcome.coverage <= 0.99
    assert outcome.against_oracle <= 1.2


@pytest.mark.slow
def test_a_load_that_wanders_is_covered_too() -> None:
    outcome = STUDY.study(STUDY.SCENARIOS[2], range(STUDY.RUNS))
    assert 0.93 <= outcome.coverage <= 0.99
