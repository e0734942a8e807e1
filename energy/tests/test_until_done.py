# SPDX-License-Identifier: Apache-2.0
"""Windows until done: energies of traces whose integrals are known, tails, repeats, grades, floors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netjoule_contracts
from netjoule_energy.campaign.files import read_states
from netjoule_energy.power.readings import ENERGY_COUNTER, INSTANTANEOUS, Readings, mean_power
from netjoule_energy.power.until_done import RadioStates, straddle_half_widths_w, tail_of
from netjoule_energy.power.windows import FloatArray, Window
from netjoule_energy.run.assess import assess_run
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.run.result import document_of
from netjoule_energy.run.run_input import RunInput, run_input
from netjoule_energy.uncertainty.budget import Accuracy

UPDATE_S, IDLE_W = 0.1, 5.0
LAST_S = 12.0


def energy_j(at_s: FloatArray, work: Window, extra_w: list[float]) -> FloatArray:
    """Energy up to each time: idle power, and in equal parts of the window these powers beside it."""
    knots_s = np.linspace(work.start_s, work.end_s, len(extra_w) + 1)
    steps_j = np.concatenate(([0.0], np.cumsum(extra_w))) * work.length_s / len(extra_w)
    return np.asarray(IDLE_W * at_s + np.interp(at_s, knots_s, steps_j))


def readings_of(work: Window, extra_w: list[float], semantics: str = "interval_mean") -> Readings:
    """What a perfect meter reads of such a device."""
    edges_s = 0.037 + UPDATE_S * np.arange(round(LAST_S / UPDATE_S))
    at_j = energy_j(edges_s, work, extra_w)
    flags = np.full(edges_s.size - 1, "", dtype=np.str_)
    power_w = np.diff(at_j) / UPDATE_S
    if semantics == INSTANTANEOUS:
        place = np.floor((edges_s[1:] - work.start_s) / work.length_s * len(extra_w)).astype(int)
        inside = (edges_s[1:] >= work.start_s) & (edges_s[1:] < work.end_s)
        power_w = IDLE_W + np.where(inside, np.array(extra_w)[np.clip(place, 0, len(extra_w) - 1)], 0.0)
    counts = at_j[1:] if semantics == ENERGY_COUNTER else None
    return Readings(edges_s[1:], power_w, flags, UPDATE_S, 0.0, semantics=semantics, energy_j=counts)


starts = st.floats(3.0, 4.0)
lengths = st.floats(0.02, 4.0)
powers = st.lists(st.floats(0.0, 20.0), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(starts, lengths, powers, st.sampled_from(["interval_mean", ENERGY_COUNTER]))
def test_energy_is_the_integral_but_for_what_readings_on_the_edges_hide(
    start_s: float, length_s: float, extra_w: list[float], semantics: str
) -> None:
    work = Window(start_s, start_s + length_s)
    readings = readings_of(work, extra_w, semantics)
    found = mean_power(readings, work)
    assert found.mean_w is not None
    true_j = float(np.mean(extra_w)) * length_s
    limit_j = sum(straddle_half_widths_w(readings, work)) * length_s
    assert abs((found.mean_w - IDLE_W) * length_s - true_j) <= limit_j + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.integers(30, 40), st.integers(1, 40), st.floats(0.0, 20.0))
def test_nothing_is_hidden_where_no_reading_lies_on_an_edge(first: int, count: int, extra_w: float) -> None:
    work = Window(0.037 + UPDATE_S * first, 0.037 + UPDATE_S * (first + count))
    readings = readings_of(work, [extra_w])
    assert straddle_half_widths_w(readings, work) == (0.0, 0.0)
    mean_w = mean_power(readings, work).mean_w
    assert mean_w == pytest.approx(IDLE_W + extra_w, rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(starts, st.floats(0.3, 4.0), st.floats(0.0, 20.0))
def test_instantaneous_readings_hide_what_a_step_between_two_may_be(
    start_s: float, length_s: float, extra_w: float
) -> None:
    work = Window(start_s, start_s + length_s)
    readings = readings_of(work, [extra_w], INSTANTANEOUS)
    mean_w = mean_power(readings, work).mean_w
    assert mean_w is not None
    limit_w = sum(straddle_half_widths_w(readings, work))
    assert abs(mean_w - IDLE_W - extra_w) <= limit_w + 1e-9


# --- tails -----------------------------------------------------------------------------------------


def states(*changes: tuple[float, bool]) -> RadioStates:
    return RadioStates(np.array([t for t, _ in changes]), np.array([i for _, i in changes], dtype=np.bool_))


PLANNED = Window(10.0, 13.0)


@pytest.mark.parametrize(
    ("of_radio", "greatest_s", "end_s", "cut"),
    [
        (None, None, 13.0, False),
        (states((9.0, False), (11.5, True)), None, 11.5, False),
        (states((9.0, True), (11.5, True)), None, None, False),
        (states((9.0, False), (11.5, True)), 1.0, 11.0, True),
        (states((9.0, False)), 2.0, 12.0, True),
        (states((9.0, False)), None, 13.0, True),
        (states((10.2, False), (10.8, True), (12.0, False)), 2.0, 10.8, False),
        (states(), 2.0, 12.0, True),
    ],
)
def test_a_tail_ends_when_the_radio_is_idle_or_is_cut(
    of_radio: RadioStates | None, greatest_s: float | None, end_s: float | None, cut: bool
) -> None:
    tail = tail_of(PLANNED, of_radio, greatest_s)
    assert tail.cut is cut
    assert tail.window == (None if end_s is None else Window(10.0, end_s))


def test_states_are_read_from_the_log_of_a_radio_that_tells_them(tmp_path: Any) -> None:
    assert read_states(tmp_path, "client", 1.0, 3.0) is None
    log = tmp_path / "radio" / "client.csv"
    log.parent.mkdir()
    log.write_text("t_s,mcs\n1.0,3\n")
    assert read_states(tmp_path, "client", 1.0, 3.0) is None
    log.write_text("t_s,state\n0.5,\n2.0,\n")
    assert read_states(tmp_path, "client", 1.0, 3.0) is None, "its reader cannot know them"
    log.write_text("t_s,state\n0.1,idle\n0.5,dch\n2.0,fach\n2.5,idle\n9.0,dch\n")
    found = read_states(tmp_path, "client", 1.0, 3.0)
    assert found is not None
    assert list(found.t_s) == [0.5, 2.0, 2.5]
    assert list(found.idle) == [False, False, True]


# --- results ---------------------------------------------------------------------------------------


def a_run(work: Window, extra_w: float, quantity: float = 2.0, **changes: Any) -> RunInput:
    """Work in two runs' worth, metered at the client; a tail of 0.4 s at 1 W follows it."""
    tail = Window(work.end_s, work.end_s + 0.4)
    power_w = readings_of(work, [extra_w])
    more = readings_of(tail, [1.0]).power_w - IDLE_W
    readings = replace(power_w, power_w=power_w.power_w + more)
    accuracy = Accuracy(0.001, 0.001, known=True)
    meter = MeterInput("m", "client", "modelled", None, None, accuracy, readings, None)
    spans = {"idle_before": (1.0, 2.5), "tail": (tail.start_s, tail.end_s), "idle_after": (9.5, 11.0)}
    part = {
        "part": "1",
        "node": "client",
        "quantity": quantity,
        "u": 0.0,
        "asked_per_s": None,
        "measures": {},
    }
    run = {
        "run_id": "r", "load": "flow", "kind": "work", "arm": "new", "factors": {"level": 3},
        "radio_source": "wired", "status": "done", "reasons": [],
        "windows": {name: {"t_start_s": a, "t_end_s": b} for name, (a, b) in spans.items()},
        "window": {
            "kind": "until_done", "t_start_s": work.start_s, "t_end_s": work.end_s, "clock_limit_s": 0.0
        },
        "work": {"quantity": quantity, "unit": "run", "u": 0.0, "reconciles": True, "parts": [part]},
        "measures": {"loss_ratio": None, "achieved_ratio": None}, "control": None,
    }  # fmt: skip
    return run_input(run | changes, {}, (meter,))


def assess(source: RunInput, control: RunInput | None = None) -> dict[str, Any]:
    document = document_of(assess_run(source, control, np.random.default_rng(3), frozenset()))
    netjoule_contracts.validate("result", document)
    return document


WORK = Window(3.012, 6.012)


def test_energy_of_the_work_is_told_per_unit_of_it() -> None:
    found = assess(a_run(WORK, 2.0))
    (node,) = found["nodes"]
    assert found["window"] == {"kind": "until_done", "t_start_s": 3.012, "t_end_s": 6.012}
    assert found["work"]["quantity"] == 2.0
    assert found["work"]["unit"] == "run"
    assert node["e_d_j"] == pytest.approx(2.0 * 3.0, abs=0.2)
    assert node["e_t_j"] == pytest.approx(node["e_d_j"] + IDLE_W * 3.0)
    assert node["energy_per_work_j"] == pytest.approx(node["e_d_j"] / 2.0)
    assert abs(node["energy_per_work_j"] - 3.0) < node["u95_energy_per_work_j"]
    assert "ea_j_per_mbit" not in node, "E_A is of megabits"
    assert 0 < node["u95_components"]["straddle"] <= node["u95_energy_per_work_j"]
    assert node["tail_energy_j"] == pytest.approx(0.4, abs=0.12)
    assert (node["tail_s"], node["tail_cut"]) == (pytest.approx(0.4), False)
    assert [reason["code"] for reason in found["reasons"]] == []


def test_a_radio_that_is_never_idle_cuts_the_tail_and_says_so() -> None:
    source = a_run(WORK, 2.0)
    (meter,) = source.meters
    busy = replace(source, meters=(replace(meter, states=states((1.0, False))),))
    found = assess(busy)
    assert found["nodes"][0]["tail_cut"] is True
    assert [reason["code"] for reason in found["reasons"]] == ["tail_cut"]
    asleep = replace(source, meters=(replace(meter, states=states((1.0, True))),))
    assert assess(asleep)["nodes"][0]["tail_energy_j"] == 0.0


@pytest.mark.parametrize(
    ("updates", "graded", "short"), [(25, True, False), (15, True, True), (9.5, False, True)]
)
def test_short_work_is_warned_of_and_under_ten_updates_gets_no_good_grade(
    updates: float, graded: bool, short: bool
) -> None:
    found = assess(a_run(Window(3.037, 3.037 + updates * UPDATE_S), 20.0))
    (node,) = found["nodes"]
    assert ("few_readings" not in node["grade_limits"]) is graded
    assert (node["grade"] in ("A", "B")) is graded
    assert ([reason["code"] for reason in found["reasons"]] == ["work_short"]) is short


def test_the_floor_is_the_control_runs_energy_for_the_same_work() -> None:
    told = {"run_id": "c", "comparable": True, "reason": None, "warnings": []}
    # The control run does the same work in half of the time, at 0.5 W: 0.375 J for each unit of it.
    control = a_run(Window(3.037, 4.537), 0.5, quantity=2.0, kind="control", run_id="c")
    found = assess(a_run(Window(3.037, 6.037), 2.0, quantity=2.0, control=told), control)
    (node,) = found["nodes"]
    floor = node["floor"]
    assert (floor["run_id"], floor["reason"]) == ("c", None)
    assert floor["floor_w"] == pytest.approx(0.25, rel=1e-6), "0.75 J over 3 s"
    assert floor["energy_per_work_above_floor_j"] == pytest.approx((6.0 - 0.75) / 2.0, rel=1e-6)
    assert floor["u95_energy_per_work_above_floor_j"] > 0
    refused = told | {"comparable": False, "reason": "floor_core_busy"}
    alone = assess(a_run(WORK, 2.0, control=refused), control)["nodes"][0]["floor"]
    assert (alone["floor_w"], alone["reason"]) == (None, "floor_core_busy")


def test_a_simulated_run_without_power_has_its_work_and_no_energy() -> None:
    source = a_run(Window(2.0, 6.0), 0.0, quantity=20.0)
    run = source.run | {"radio_source": "simulated"}
    found = assess(replace(source, run=run, meters=()))
    [node] = found["nodes"]
    assert (found["valid"], found["work"]["work_per_s"]) == (True, 5.0)
    assert (node["node"], node["power_source"], node["ea_reason"]) == (
        "client",
        "modelled",
        "no_power_logged",
    )
    assert {node[name] for name in ("p_a_w", "e_d_j", "e_t_j", "energy_per_work_j", "grade")} == {None}
