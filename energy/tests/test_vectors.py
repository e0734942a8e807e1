# SPDX-License-Identifier: Apache-2.0
"""The shared vectors are what the exact calculation gives, and this package reproduces them."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import netjoule_contracts
from netjoule_contracts.flow_control import control_of
from netjoule_energy.power.readings import Readings
from netjoule_energy.power.windows import Intervals, MeasuredSpan, Window, measured_span
from netjoule_energy.run.node_floor import ControlPower, node_floor
from netjoule_energy.run.node_power import MeterInput, NodePower, node_power
from netjoule_energy.uncertainty.budget import Accuracy, Throughput

MAKER = runpy.run_path(str(Path(__file__).with_name("make_ea_vectors.py")))
FLOOR_MAKER = runpy.run_path(str(Path(__file__).with_name("make_floor_vectors.py")))
VECTORS = sorted((netjoule_contracts.root() / "vectors" / "ea").glob("*.json"))


def window(document: dict[str, float]) -> Window:
    return Window(document["t_start_s"], document["t_end_s"])


def energies(rows: list[list[Any]]) -> np.ndarray | None:
    """Counts of a counter; None for other meters, whose rows have no fourth cell."""
    if not any(len(row) > 3 for row in rows):
        return None
    return np.array([math.nan if row[3] is None else row[3] for row in rows], dtype=float)


def meter_of(case: dict[str, Any]) -> MeterInput:
    readings = Readings(
        t_s=np.array([row[0] for row in case["readings"]], dtype=float),
        power_w=np.array([math.nan if row[1] is None else row[1] for row in case["readings"]], dtype=float),
        flag=np.array([row[2] for row in case["readings"]], dtype=np.str_),
        update_interval_s=case["update_interval_s"],
        lag_s=case["lag_s"],
        semantics=case.get("semantics", "interval_mean"),
        energy_j=energies(case["readings"]),
        counter_modulus_j=case.get("counter_modulus_j"),
    )
    accuracy = Accuracy(0.0, 0.0, known=True)
    return MeterInput("m1", "client", "measured", None, None, accuracy, readings, None)


def windows(case: dict[str, Any]) -> dict[str, Window]:
    return {name: window(w) for name, w in case["windows"].items()}


def power_of(case: dict[str, Any], meter: MeterInput) -> tuple[MeasuredSpan, NodePower]:
    table = np.array(case["intervals"], dtype=float).reshape(-1, 3)
    span = measured_span(
        window(case["windows"]["measure"]), Intervals(table[:, 0], table[:, 1], 8e-6 * table[:, 2])
    )
    return span, node_power(meter, span.window, windows(case))


def found(case: dict[str, Any]) -> dict[str, Any]:
    """Compute a vector's input with the package's pure functions."""
    meter = meter_of(case)
    span, power = power_of(case, meter)
    t_a_mbps = span.work_per_s
    delta = power.delta_w
    priced = t_a_mbps and delta is not None and delta >= 0
    return {
        "window_t_start_s": span.window.start_s,
        "window_t_end_s": span.window.end_s,
        "p_a_w": power.active.mean_w,
        "p_i_before_w": power.before.mean_w if power.before else None,
        "p_i_after_w": power.after.mean_w if power.after else None,
        "p_i_w": power.idle.at_middle_w if power.idle else None,
        "t_a_mbps": t_a_mbps,
        "ea_j_per_mbit": delta / t_a_mbps if priced else None,
        "coverage": power.active.coverage,
        "tail_energy_j": power.tail_energy_j,
        "reasons": sorted({r.code for r in power.reasons if r.code in ("meter_gap", "meter_overrange")}),
    }


def found_floor(case: dict[str, Any]) -> dict[str, Any]:
    """Compute the floor of a vector that has a mini-block with or without null."""
    meter, of_control, control = meter_of(case), None, None
    span, power = power_of(case, meter)
    if case["null"] is not None:
        null_case = case["null"]
        of_null = windows(null_case)
        node = node_power(meter, of_null["measure"], of_null)
        run = null_case["run"] | {"windows": null_case["windows"]}
        of_control = ControlPower({"m1": node}, valid=not node.reasons)
        own = case["run"] | {"windows": case["windows"]}
        control = control_of([(own, case["flow"])], [(run, null_case["flow"])], "null")
    rate = Throughput(span.work_per_s or 0.0, 0.0, 0.0)
    rng = np.random.default_rng(1)
    floor = node_floor(control, meter, power, rate, of_control=of_control, rng=rng)
    return {
        "p_null_w": floor.p_null_w,
        "floor_w": floor.floor_w,
        "ea_above_floor_j_per_mbit": floor.energy_per_work_above_floor_j,
        "floor_reason": floor.reason,
    }


def test_files_are_what_the_exact_calculation_gives() -> None:
    made = [*MAKER["vectors"](), *FLOOR_MAKER["vectors"]()]
    rendered = {f"{vector['name']}.json": MAKER["render"](vector) for vector in made}
    assert rendered == {path.name: path.read_text(encoding="ascii") for path in VECTORS}


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_package_reproduces_the_vector(path: Path) -> None:
    vector = json.loads(path.read_text(encoding="ascii"))
    case, wanted = vector["input"], vector["expected"]
    values = found(case) | (found_floor(case) if "null" in case else {})
    assert values.keys() == wanted.keys()
    for name, value in wanted.items():
        is_number = isinstance(value, int | float)
        expected = pytest.approx(value, rel=1e-9, abs=1e-12) if is_number else value
        assert values[name] == expected, name
