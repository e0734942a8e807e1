# SPDX-License-Identifier: Apache-2.0
"""The generator floor: its numbers, when it is empty, when it is warned of, and how sure it is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import netjoule_contracts
from netjoule_contracts.types.result import Result
from netjoule_energy import compute_and_write
from netjoule_energy.power.readings import Readings
from netjoule_energy.power.windows import Window
from netjoule_energy.run.node_floor import shared_idle
from netjoule_energy.run.node_power import MeterInput, NodePower, node_power
from netjoule_energy.run.result import document_of, floor_ratio
from netjoule_energy.uncertainty.budget import (
    Accuracy,
    PowerBudget,
    PowerTerm,
    SharedIdle,
    Throughput,
    floor_spread,
)
from netjoule_energy.uncertainty.noise import MeanNoise

Build = Callable[..., Any]

EXACT = Accuracy(0.0, 0.0, known=True)
TEN_MBPS = Throughput(10.0, 0.0, 0.0)
DRAWS = 200_000


def codes(result: Result) -> set[str]:
    return {reason.code for reason in result.reasons}


def mini_block(build: Build, flow: Any, *, run: Any = None, **of_null: Any) -> tuple[Any, Result]:
    """Write a run of 1.5 W beside its null run of 0.5 W; return the campaign and the run's result."""
    null = flow(**({"transport": "null", "extra_w": {"m1": 0.5}} | of_null))
    campaign = build(flows=[run or flow(), null])
    return campaign, compute_and_write(campaign.folder, campaign.run_ids[:1])[0]


def edit_flow(campaign: Any, index: int, change: Callable[[dict[str, Any]], None]) -> None:
    path = campaign.folder / "runs" / campaign.run_ids[index] / "flow.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_floor_of_the_mini_block(build: Build, flow: Any) -> None:
    campaign, udp = mini_block(build, flow)
    floor = udp.nodes[0].floor
    assert (floor.run_id, floor.reason) == ("b01m001-null-a1", None)
    assert floor.p_null_w == pytest.approx(8.5)
    assert floor.floor_w == pytest.approx(0.5)
    assert floor.energy_per_work_above_floor_j == pytest.approx(0.1, rel=1e-6)
    assert 0 < floor.u95_floor_w < 0.05
    assert 0 < floor.u95_energy_per_work_above_floor_j < 0.01
    (null,) = compute_and_write(campaign.folder, campaign.run_ids[1:])
    assert null.valid
    assert codes(null) == {"null_has_no_throughput"}
    assert (null.work.work_per_s, null.nodes[0].ea_reason) == (None, "null_has_no_throughput")
    assert null.nodes[0].delta_p_w == pytest.approx(0.5)
    assert null.nodes[0].floor.reason == "null_has_no_throughput"


def test_idle_that_moved_between_the_two_runs_is_in_neither(build: Build, flow: Any, meter: Any) -> None:
    null = flow(transport="null", extra_w={"m1": 0.5})
    campaign = build(meters=[meter(drift_w_per_s=0.005)], flows=[flow(), flow(transport="tcp"), null])
    floor = compute_and_write(campaign.folder, campaign.run_ids[:1])[0].nodes[0].floor
    assert floor.floor_w == pytest.approx(0.5, abs=1e-5)
    assert floor.energy_per_work_above_floor_j == pytest.approx(0.1, abs=1e-6)
    # P_null itself moved on: two runs later idle had risen by 2 x 0.005 W/s x the length of a run.
    assert floor.p_null_w > 8.5 + 0.04


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"not_sent": 200}, "floor_achieved_low"),
        ({"sender_cpu_s": 3.2}, "floor_core_busy"),
        ({"status": "invalid"}, "null_run_invalid"),
        ({"changes": {"reasons": [{"code": "clock_unsure", "detail": ""}]}}, "null_run_invalid"),
    ],
)
def test_floor_is_empty_with_a_reason(build: Build, flow: Any, changes: dict[str, Any], reason: str) -> None:
    _, result = mini_block(build, flow, **changes)
    floor = result.nodes[0].floor
    assert result.valid
    assert floor.reason == reason
    assert floor.run_id == "b01m001-null-a1"
    numbers = (floor.p_null_w, floor.floor_w, floor.u95_floor_w, floor.energy_per_work_above_floor_j)
    assert {*numbers, floor.u95_energy_per_work_above_floor_j} == {None}
    assert result.nodes[0].energy_per_work_j == pytest.approx(0.15, rel=1e-6)


def test_a_run_that_lagged_or_had_a_busy_core_has_no_floor_either(build: Build, flow: Any) -> None:
    assert mini_block(build, flow, run=flow(not_sent=200))[1].nodes[0].floor.reason == "floor_achieved_low"


def test_a_gap_in_the_null_run_at_one_meter_voids_the_floor_at_all(
    build: Build, flow: Any, meter: Any
) -> None:
    extra_w = {"m1": 0.5, "m2": 0.5}
    flows = [flow(extra_w={"m1": 1.5, "m2": 1.5}), flow(transport="null", extra_w=extra_w)]
    campaign = build(meters=[meter(), meter(meter_id="m2")], flows=flows)
    low, high = (campaign.windows(1)["measure"][name] for name in ("t_start_s", "t_end_s"))
    path = campaign.folder / "meters" / "m2.csv"
    lines = path.read_text().splitlines(keepends=True)
    kept = [k for k in lines[1:] if not low + 0.4 < float(k.split(",")[0]) < high - 0.4]
    path.write_text("".join([lines[0], *kept]))
    run, null = compute_and_write(campaign.folder, campaign.run_ids)
    assert (run.valid, null.valid) == (True, False)
    assert {node.floor.reason for node in run.nodes} == {"null_run_invalid"}


@pytest.mark.parametrize("which", [0, 1])
def test_a_spinning_sender_leaves_the_floor_empty(build: Build, flow: Any, which: int) -> None:
    campaign, _ = mini_block(build, flow)
    edit_flow(campaign, which, lambda doc: doc.update(pacing={"mode": "spin"}))
    (result,) = compute_and_write(campaign.folder, campaign.run_ids[:1])
    assert result.nodes[0].floor.reason == "floor_spinning"


@pytest.mark.parametrize(("null_w", "warned"), [(0.29, False), (0.31, True), (2.0, True)])
def test_a_large_floor_is_warned_of(build: Build, flow: Any, null_w: float, warned: bool) -> None:
    _, result = mini_block(build, flow, extra_w={"m1": null_w})
    assert result.valid
    assert ("floor_large" in codes(result)) is warned
    if warned:
        (detail,) = [reason.detail for reason in result.reasons if reason.code == "floor_large"]
        assert detail.startswith(f"meter m1: the floor of {null_w:.4f} W is {100 * null_w / 1.5:.0f} %")


def test_no_share_is_told_of_a_difference_that_the_meter_does_not_resolve(build: Build, flow: Any) -> None:
    _, result = mini_block(build, flow, run=flow(extra_w={"m1": 0.001}), extra_w={"m1": 0.001})
    assert result.nodes[0].below_resolution
    assert "floor_large" not in codes(result)
    assert floor_ratio(0.1, 0.0) is None
    assert floor_ratio(0.1, -0.1) is None
    assert floor_ratio(None, 0.5) is None


# 2.9 s at 10 Mb/s in messages of 1,250 bytes.
MESSAGES = 2900


@pytest.mark.parametrize(
    ("own", "null", "warned"),
    [(2900, 2900, False), (2900, 4350, False), (2900, 4351, True), (8700, 2900, True), (10, 0, True)],
)
def test_null_that_woke_up_otherwise_is_warned_of_and_the_floor_stays(
    build: Build, flow: Any, own: int, null: int, warned: bool
) -> None:
    _, result = mini_block(build, flow, run=flow(wake_ups=own, naps=0), wake_ups=null, naps=0)
    assert result.measures["wake_ups_per_message"] == own / MESSAGES
    assert result.valid
    assert (result.nodes[0].floor.floor_w, result.nodes[0].floor.reason) == (pytest.approx(0.5), None)
    found = [reason.detail for reason in result.reasons if reason.code == "floor_wake_ups_differ"]
    per_message = [f"{count / MESSAGES:.3g}" for count in (own, null)]
    expected = f"{per_message[0]} wake-ups per message, {per_message[1]} in b01m001-null-a1"
    assert found == ([expected] if warned else [])


def test_wake_ups_and_naps_stand_in_the_result_and_are_empty_where_nobody_tells(
    build: Build, flow: Any
) -> None:
    names = ("wake_ups_per_message", "naps_per_message")
    campaign, told = mini_block(build, flow, run=flow(wake_ups=8700, naps=5800))
    assert [told.measures[name] for name in names] == [3.0, 2.0]
    (null,) = compute_and_write(campaign.folder, campaign.run_ids[1:])
    assert [null.measures[name] for name in names] == [None, None]
    assert "floor_wake_ups_differ" not in codes(told), "nothing is known of null"
    measures = dict(document_of(told)["measures"])
    netjoule_contracts.validate("result_flow", measures)
    for name in names:
        del measures[name]
    netjoule_contracts.validate("result_flow", measures)  # as versions before wrote it


def test_without_a_floor_nothing_is_said_of_nulls_wake_ups(build: Build, flow: Any) -> None:
    _, result = mini_block(build, flow, run=flow(wake_ups=8700), wake_ups=2900, sender_cpu_s=3.2)
    assert result.nodes[0].floor.reason == "floor_core_busy"
    assert "floor_wake_ups_differ" not in codes(result)


def test_a_result_with_a_floor_fits_its_contract(build: Build, flow: Any) -> None:
    _, result = mini_block(build, flow)
    netjoule_contracts.validate("result", document_of(result))


# How sure the floor is


def term(mean_w: float, u_w: float = 0.0) -> PowerTerm:
    return PowerTerm(mean_w, MeanNoise(np.array([u_w]), np.ones(1), 1e6), (0.0, 0.0))


def budget(active: PowerTerm, before: PowerTerm, after: PowerTerm, drift_w: float = 0.0) -> PowerBudget:
    return PowerBudget(active, before, after, 0.5, drift_w)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def plain(active_w: float, u_active_w: float = 0.0, u_idle_w: float = 0.0) -> PowerBudget:
    return budget(term(active_w, u_active_w), term(8.0, u_idle_w), term(8.0, u_idle_w))


def test_gain_is_common_and_acts_on_the_difference() -> None:
    accuracy = Accuracy(0.01, 0.0, known=True)
    found = floor_spread(plain(9.5), plain(9.0), accuracy, TEN_MBPS, rng=rng(), draws=DRAWS)
    assert found.u95_floor_w == pytest.approx(0.95 * 1.0 * 0.01, rel=0.01)
    assert found.u95_ea_above_floor == pytest.approx(0.95 * 0.5 * 0.01 / 10, rel=0.01)


def test_range_errors_of_both_flows_count_and_idles_cancels() -> None:
    # The difference of two rectangles of half-width a is a triangle: 95 % within 2a (1 - sqrt(0.05)).
    limit_w = 0.03
    accuracy = Accuracy(0.0, limit_w, known=True)
    found = floor_spread(plain(9.5), plain(9.0), accuracy, TEN_MBPS, rng=rng(), draws=DRAWS)
    triangle_w = 2 * limit_w * (1 - math.sqrt(0.05))
    assert found.u95_floor_w == pytest.approx(triangle_w, rel=0.01)
    assert found.u95_ea_above_floor == pytest.approx(triangle_w / 10, rel=0.01)
    zeroed = Accuracy(0.0, limit_w, known=True, zeroed=True)
    none = floor_spread(plain(9.5), plain(9.0), zeroed, TEN_MBPS, rng=rng(), draws=DRAWS)
    assert (none.u95_floor_w, none.u95_ea_above_floor) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("shared", "idles"), [(SharedIdle.NONE, 4), (SharedIdle.BEFORE, 2), (SharedIdle.AFTER, 2)]
)
def test_an_idle_window_of_both_runs_cancels(shared: SharedIdle, idles: int) -> None:
    # P_A and P_null with 30 mW each; every idle window that is not shared counts with half of its 40 mW.
    run, null = plain(9.5, 0.03, 0.04), plain(9.0, 0.03, 0.04)
    found = floor_spread(run, null, EXACT, TEN_MBPS, shared=shared, rng=rng(), draws=DRAWS)
    u_w = math.sqrt(2 * 0.03**2 + idles * (0.04 / 2) ** 2)
    assert found.u95_ea_above_floor == pytest.approx(1.96 * u_w / 10, rel=0.01)
    u_floor_w = math.sqrt(0.03**2 + 2 * (0.04 / 2) ** 2)
    assert found.u95_floor_w == pytest.approx(1.96 * u_floor_w, rel=0.01)


def test_drift_of_idle_counts_for_each_run() -> None:
    run, null = (budget(term(w), term(8.0), term(8.0), 0.02) for w in (9.5, 9.0))
    found = floor_spread(run, null, EXACT, TEN_MBPS, rng=rng(), draws=DRAWS)
    assert found.u95_floor_w == pytest.approx(0.95 * 0.02, rel=0.01)
    assert found.u95_ea_above_floor == pytest.approx(2 * 0.02 * (1 - math.sqrt(0.05)) / 10, rel=0.01)


def test_without_throughput_there_is_no_energy_above_floor() -> None:
    found = floor_spread(plain(9.5), plain(9.0, 0.03), EXACT, None, rng=rng())
    assert found.u95_floor_w > 0
    assert found.u95_ea_above_floor is None


# Simulated mini-blocks: a device of known power, an instrument drawn within its specification

UPDATE_S = 0.1
WINDOWS = {"idle_before": Window(0, 10), "measure": Window(11, 21), "idle_after": Window(22, 32)}
NEXT_RUN_S = 22.0
ACCURACY = Accuracy(0.0015, 0.003, known=True)
TRUE_FLOOR_W, TRUE_RUN_W = 0.5, 1.5


def later(by_s: float) -> dict[str, Window]:
    return {name: Window(w.start_s + by_s, w.end_s + by_s) for name, w in WINDOWS.items()}


def powers_of_a_mini_block(draw: np.random.Generator) -> tuple[NodePower, NodePower]:
    """Return run and null, neighbours, as a new instrument saw them: noise, gain, a range error by level."""
    end_s = np.arange(1, 541) * UPDATE_S
    flows = [(10.5, 21.5, TRUE_RUN_W), (32.5, 43.5, TRUE_FLOOR_W)]
    power_w = 8.0 + draw.normal(0, 0.05, end_s.size)
    level = np.zeros(end_s.size, dtype=int)
    for which, (start_s, stop_s, extra_w) in enumerate(flows, start=1):
        on = (end_s > start_s) & (end_s <= stop_s)
        power_w, level = np.where(on, power_w + extra_w, power_w), np.where(on, which, level)
    offsets_w = draw.uniform(-ACCURACY.range_w, ACCURACY.range_w, 3)
    shown_w = power_w * (1 + draw.uniform(-ACCURACY.reading_ratio, ACCURACY.reading_ratio)) + offsets_w[level]
    flag = np.full(end_s.size, "", dtype=np.str_)
    readings = Readings(end_s, shown_w, flag, UPDATE_S, 0.0)
    meter = MeterInput("m1", "client", "measured", None, None, ACCURACY, readings, None)
    run, null = WINDOWS, later(NEXT_RUN_S)
    return node_power(meter, run["measure"], run), node_power(meter, null["measure"], null)


def test_u95_of_the_floor_holds_the_truth_and_is_not_far_wider_than_need_be() -> None:
    errors: list[tuple[float, float]] = []
    widths: list[tuple[float, float]] = []
    draw = np.random.default_rng(20)
    for _ in range(400):
        run, null = powers_of_a_mini_block(draw)
        assert run.budget is not None
        assert null.budget is not None
        assert shared_idle(run, null) is SharedIdle.AFTER
        found = floor_spread(
            run.budget, null.budget, ACCURACY, TEN_MBPS, shared=SharedIdle.AFTER, rng=draw, draws=4000
        )
        above = (run.budget.delta_w - null.budget.delta_w) / 10
        errors.append((null.budget.delta_w - TRUE_FLOOR_W, above - (TRUE_RUN_W - TRUE_FLOOR_W) / 10))
        assert found.u95_ea_above_floor is not None
        widths.append((found.u95_floor_w, found.u95_ea_above_floor))
    missed = np.abs(np.array(errors))
    half_widths = np.array(widths)
    held = (missed <= half_widths).mean(axis=0)
    assert np.all(held >= 0.93), held
    # A hundred readings a window tell how little they are correlated; twenty cost 1.6 to 1.8 times the width.
    needed = np.quantile(missed, 0.95, axis=0)
    assert np.all(half_widths.mean(axis=0) <= 1.3 * needed), half_widths.mean(axis=0) / needed


def test_runs_that_are_no_neighbours_share_no_idle() -> None:
    run, null = powers_of_a_mini_block(np.random.default_rng(1))
    assert shared_idle(null, run) is SharedIdle.BEFORE
    assert shared_idle(run, run) is SharedIdle.NONE
