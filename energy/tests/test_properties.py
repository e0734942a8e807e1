# SPDX-License-Identifier: Apache-2.0
"""What must hold for any campaign: shifting time changes nothing, scaling power scales energy."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from flow_runs import FlowInput, FlowRun
from hypothesis import given, settings
from hypothesis import strategies as st

from netjoule_contracts.types.result import Node
from netjoule_energy.power.readings import Readings, mean_power
from netjoule_energy.power.windows import Intervals, Window
from netjoule_energy.run.assess import assess_run
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.uncertainty.budget import Accuracy

WINDOWS = {"idle_before": (0.4, 1.4), "measure": (2.0, 4.0), "tail": (4.0, 4.3), "idle_after": (4.5, 5.5)}


def source(
    powers: list[float], *, shift_s: float = 0.0, scale: float = 1.0, bytes_scale: float = 1.0
) -> FlowRun:
    """Return a run of 56 readings at 10 Hz; scaling power scales the range limit of the meter too."""
    t_s = np.arange(1, len(powers) + 1) * 0.1 + 0.037 + shift_s
    readings = Readings(t_s, scale * np.array(powers), np.array([""] * t_s.size, dtype=np.str_), 0.1, 0.0)
    accuracy = Accuracy(0.002, 0.01 * scale, known=True)
    starts = 1.4 + 0.1 * np.arange(26) + shift_s
    windows: dict[str, Any] = {
        name: {"t_start_s": a + shift_s, "t_end_s": b + shift_s} for name, (a, b) in WINDOWS.items()
    }
    run = {
        "run_id": "b01m001-udp-a1",
        "transport": "udp",
        "payload_bytes": 1000,
        "offered_rate_mbps": 10.0,
        "direction": "up",
        "hosts": {"client": "client", "server": "server"},
        "radio_source": "link-model",
        "status": "done",
        "reasons": [],
        "windows": windows,
    }
    intervals = Intervals(starts, starts + 0.1, np.full(26, 125_000.0 * bytes_scale))
    meter = MeterInput("m1", "client", "measured", None, None, accuracy, readings, None)
    report = {"sender": {"messages_sent": 1, "messages_scheduled": 1}}
    return FlowRun(run, (FlowInput({}, report, intervals),), (meter,))


def node(run: FlowRun) -> Node:
    return assess_run(*run.lifted(), np.random.default_rng(5), frozenset()).nodes[0]


powers = st.lists(st.floats(0.5, 50.0), min_size=56, max_size=56)


@settings(max_examples=40, deadline=None)
@given(powers, st.integers(0, 10**6))
def test_shifting_time_changes_no_power(values: list[float], shift_s: int) -> None:
    still, moved = node(source(values)), node(source(values, shift_s=float(shift_s)))
    for name in ("p_a_w", "p_i_w", "delta_p_w"):
        assert getattr(moved, name) == pytest.approx(getattr(still, name), rel=1e-6, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(powers, st.floats(0.01, 100.0))
def test_scaling_power_scales_energy_and_uncertainty(values: list[float], scale: float) -> None:
    plain, scaled = node(source(values)), node(source(values, scale=scale))
    assert scaled.delta_p_w == pytest.approx(scale * plain.delta_p_w, rel=1e-6, abs=1e-9 * scale)
    assert scaled.u95_energy_per_work_j == pytest.approx(scale * plain.u95_energy_per_work_j, rel=1e-6)
    assert scaled.below_resolution == plain.below_resolution


@settings(max_examples=20, deadline=None)
@given(powers, st.floats(0.1, 10.0))
def test_energy_per_megabit_falls_with_goodput(values: list[float], factor: float) -> None:
    plain, faster = node(source(values)), node(source(values, bytes_scale=factor))
    if plain.energy_per_work_j is None:
        assert faster.energy_per_work_j is None
    else:
        assert faster.energy_per_work_j == pytest.approx(plain.energy_per_work_j / factor, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(powers, st.floats(0.2, 2.0), st.floats(2.5, 5.0))
def test_mean_lies_among_the_readings(values: list[float], start: float, end: float) -> None:
    mean = mean_power(source(values).meters[0].readings, Window(start, end))
    assert mean.mean_w is not None
    assert min(values) - 1e-9 <= mean.mean_w <= max(values) + 1e-9
    assert mean.coverage == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(powers)
def test_numbers_are_finite_or_empty_and_empty_has_a_reason(values: list[float]) -> None:
    found = node(source(values))
    assert (found.energy_per_work_j is None) == (found.ea_reason is not None)
    assert (found.energy_per_work_j is None) == (found.delta_p_w < 0)
    numbers = (
        found.u_delta_p_w,
        found.u95_energy_per_work_j,
        found.p_a_w,
        *msgspec.to_builtins(found.u95_components).values(),
    )
    assert np.isfinite(numbers).all()
