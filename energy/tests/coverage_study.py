# SPDX-License-Identifier: Apache-2.0
"""Does u95 hold what it says? Runs of a device whose E_A is known, each on a new emulated instrument.

`python energy/tests/coverage_study.py` runs every scenario and writes docs/method/coverage.md; a slow test
holds the first scenario to its limits. Nothing is simplified on the way: the device's power goes into the
emulated WT210, the WT210's own commands go over a line (its clock is moved instead of waited for), the
adapter's readings and passport go through the same arithmetic as those of a campaign.

The oracle knows the error model that the runs are drawn from, with all its parameters: it need not estimate
scatter or correlation. Its half-width is that of the errors' true distribution.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from netjoule_contracts.types.result import Node
from netjoule_energy.campaign.files import accuracy_of
from netjoule_energy.power.readings import Readings
from netjoule_energy.power.windows import Intervals
from netjoule_energy.run.assess import assess_run
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.run.run_input import RunInput
from netjoule_meters.adapters.power_analysers.wt210 import WT210
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.instrument_errors import Quantity
from netjoule_meters.emulated.power_analysers.wt210 import EmulatedWT210
from netjoule_meters.emulated.power_analysers.wt210_measurement import RANGE_RATIO, READING_RATIO, Errors
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.errors import ReplyTimeout

REPORT = Path(__file__).resolve().parents[2] / "docs" / "method" / "coverage.md"
RUNS = 200
STEP_S = 0.02
"""The device's power is constant for so long."""
UPDATE_S, INTERVAL_S, PAYLOAD_BYTES, RATE_MBPS = 0.1, 0.1, 1250, 10.0
SETTLE_S, TAIL_S = 0.6, 0.5
SETTINGS = {"voltage_range_v": 300, "current_range_a": 0.1, "update_interval_s": UPDATE_S}
POWER_RANGE_W = 30.0
LEVELS = 100


@dataclass(frozen=True, slots=True)
class Scenario:
    """A device and how it is measured.

    scatter_w, correlation: of the load's power over one update and from one update to the next.
    constant_offset: the range part of the specification is one offset for all powers.
    """

    name: str
    idle_w: float = 8.0
    extra_w: float = 1.5
    scatter_w: float = 0.05
    correlation: float = 0.5
    drift_w_per_s: float = 0.0005
    idle_s: float = 5.0
    measure_s: float = 10.0
    constant_offset: bool = False

    @property
    def true_ea(self) -> float:
        """E_A of the device, J/Mb."""
        return self.extra_w / RATE_MBPS


SCENARIOS = (
    Scenario("windows of 10 s, load scatters"),
    Scenario("windows of 2 s", idle_s=2.0, measure_s=2.0),
    Scenario("windows of 20 s, load wanders", scatter_w=0.1, correlation=0.9, idle_s=10.0, measure_s=20.0),
    Scenario("small load, 0.3 W of 8 W", extra_w=0.3),
    Scenario("constant offset", constant_offset=True),
)


@dataclass(frozen=True, slots=True)
class CurvedQuantity(Quantity):
    """An error within the whole specification: a gain, and a range part of its own for each 1 % of the range.

    A range part that is the same everywhere would cancel in P_A - P_I, and the specification does not
    promise that it does.
    """

    levels: tuple[float, ...] = ()

    def shown(self, true: float, range_value: float) -> float:
        level = self.levels[int(abs(true) / range_value * LEVELS) % LEVELS]
        return true * (1 + self.gain) + level * range_value


class StudiedWT210(EmulatedWT210):
    """A new instrument for each seed, drawn within its 12-month specification."""

    def __init__(self, seed: int, *, constant_offset: bool) -> None:
        super().__init__(update_interval_s=UPDATE_S, seed=seed)
        if not constant_offset:
            draw = Random(seed)
            gain = draw.uniform(-READING_RATIO, READING_RATIO)
            levels = tuple(draw.uniform(-RANGE_RATIO, RANGE_RATIO) for _ in range(LEVELS))
            self._errors = Errors(power=CurvedQuantity(gain, 0.0, levels))


@dataclass
class Line:
    """A line to an emulated instrument; who waits moves the clock, and with it the device's power."""

    instrument: EmulatedWT210
    power_w: np.ndarray
    resource: str = "study"
    steps: int = 0
    received: bytes = b""
    lines: list[bytes] = field(default_factory=list)

    def monotonic_ns(self) -> int:
        return round(self.steps * STEP_S * 1e9)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def cancel(self) -> None:
        pass

    def drain(self, quiet_s: float) -> None:
        self.advance(quiet_s)
        self.lines.clear()

    def write_line(self, line: bytes) -> None:
        self.instrument.receive(line + b"\r\n")
        self.take()

    def read_line(self, timeout_s: float) -> bytes:
        deadline = self.steps + timeout_s / STEP_S
        while not self.lines:
            if self.steps >= deadline:
                raise ReplyTimeout("no answer")
            self.advance(STEP_S)
        return self.lines.pop(0)

    def advance(self, seconds: float) -> None:
        for _ in range(max(1, round(seconds / STEP_S))):
            start_s = self.steps * STEP_S
            power_w = float(self.power_w[min(self.steps, self.power_w.size - 1)])
            self.instrument.feed(PowerInterval(start_s, start_s + STEP_S, power_w))
            self.steps += 1
            self.take()

    def take(self) -> None:
        *lines, self.received = (self.received + self.instrument.step(self.steps * STEP_S)).split(b"\n")
        self.lines += [line.rstrip(b"\r") for line in lines]


def windows_of(scenario: Scenario, start_s: float) -> dict[str, dict[str, float]]:
    """Windows of the run; power changes SETTLE_S before a window that it would disturb."""
    go_s = start_s + scenario.idle_s + SETTLE_S
    stop_s = go_s + SETTLE_S + scenario.measure_s + SETTLE_S
    after_s = stop_s + TAIL_S + SETTLE_S
    edges = {
        "idle_before": (start_s, start_s + scenario.idle_s),
        "measure": (go_s + SETTLE_S, go_s + SETTLE_S + scenario.measure_s),
        "tail": (stop_s, stop_s + TAIL_S),
        "idle_after": (after_s, after_s + scenario.idle_s),
    }
    return {name: {"t_start_s": a, "t_end_s": b} for name, (a, b) in edges.items()}


def device_power_w(scenario: Scenario, windows: dict[str, dict[str, float]], rng: np.random.Generator) -> Any:
    """True power for each STEP_S: idle that drifts, a load that scatters about its mean while it runs."""
    end_s = windows["idle_after"]["t_end_s"] + 2.0
    t_s = np.arange(math.ceil(end_s / STEP_S)) * STEP_S
    flowing = (t_s >= windows["measure"]["t_start_s"] - SETTLE_S) & (t_s < windows["tail"]["t_start_s"])
    phi = step_correlation(scenario)
    wander = rng.normal(0.0, 1.0, t_s.size)
    for k in range(1, wander.size):
        wander[k] = phi * wander[k - 1] + math.sqrt(1 - phi**2) * wander[k]
    scatter_w = scenario.scatter_w / math.sqrt(variance_of_mean(phi, round(UPDATE_S / STEP_S)))
    idle_w = scenario.idle_w + scenario.drift_w_per_s * t_s + 0.3 * scatter_w * wander
    return np.where(flowing, idle_w + scenario.extra_w + 0.7 * scatter_w * wander, idle_w)


def step_correlation(scenario: Scenario) -> float:
    """Correlation from one step of the device to the next."""
    return float(scenario.correlation ** (STEP_S / UPDATE_S))


def variance_of_mean(phi: float, count: int) -> float:
    """Variance of the mean of `count` steps of variance 1, summed term by term."""
    return (count + 2 * sum((count - k) * phi**k for k in range(1, count))) / count**2


def received(scenario: Scenario, windows: dict[str, dict[str, float]], rng: np.random.Generator) -> Intervals:
    """Receiver intervals on a grid of their own; messages come evenly, at a phase of their own."""
    spacing_s = 8e-6 * PAYLOAD_BYTES / RATE_MBPS
    first_s = windows["measure"]["t_start_s"] - 0.4 + rng.uniform(0, INTERVAL_S)
    edges_s = first_s + INTERVAL_S * np.arange(round((scenario.measure_s + 0.7) / INTERVAL_S))
    counts = np.diff(np.floor(edges_s / spacing_s + rng.uniform(0, 1)))
    return Intervals(edges_s[:-1], edges_s[1:], 8e-6 * counts * PAYLOAD_BYTES)


def logged(line: Line, until_s: float, **settings: Any) -> tuple[Readings, dict[str, Any]]:
    """What the adapter reads, as the logger would write it down, and the passport it gives."""
    meter = WT210(line, SETTINGS | settings, clock=line)
    meter.open()
    config = MeterConfig("m1", "client", "wt210", "study", SETTINGS, "modelled", "study", "constant")
    passport = meter.passport(config, date(2026, 1, 1)).document()
    rows = []
    while line.steps * STEP_S < until_s:
        reading = meter.read()
        power_w = math.nan if reading.power_w is None else float(f"{reading.power_w:.12g}")
        energy_j = math.nan if reading.energy_j is None else float(f"{reading.energy_j:.12g}")
        rows.append((round(reading.t_ns / 1e9, 6), power_w, reading.flag.value, energy_j))
    t_s, power_w, flags, energy_j = zip(*rows, strict=True)
    readings = Readings(
        np.array(t_s),
        np.array(power_w),
        np.array(flags, dtype=np.str_),
        UPDATE_S,
        passport["lag_s"],
        energy_j=np.array(energy_j),
    )
    return readings, passport


def fly(scenario: Scenario, seed: int) -> Node:
    """One run on a new instrument."""
    rng = np.random.default_rng([seed, len(scenario.name)])
    windows = windows_of(scenario, 2.0 + rng.uniform(0, UPDATE_S))
    instrument = StudiedWT210(seed, constant_offset=scenario.constant_offset)
    line = Line(instrument, device_power_w(scenario, windows, rng))
    readings, passport = logged(line, windows["idle_after"]["t_end_s"] + 0.5)
    meter = MeterInput(
        "m1", "client", "modelled", "study", "constant", accuracy_of(passport), readings, None,
        step=passport.get("resolution") or 0.0,
    )  # fmt: skip
    message_mb = 8e-6 * PAYLOAD_BYTES
    work = {"quantity": 0.0, "unit": "Mb", "u": message_mb / math.sqrt(6), "reconciles": True, "parts": []}
    run = {
        "run_id": f"study-{seed}", "load": "study", "kind": "work", "arm": "study", "factors": {},
        "radio_source": "link-model", "status": "done", "reasons": [], "windows": windows,
        "window": {"kind": "fixed", **windows["measure"], "clock_limit_s": 0.0},
        "work": work, "measures": {}, "control": None,
    }  # fmt: skip
    source = RunInput(run, received(scenario, windows, rng), (meter,))
    return assess_run(source, None, rng, frozenset()).nodes[0]


def oracle_half_width(scenario: Scenario, draws: int = 200_000) -> float:
    """95 % half-width of the errors of E_A, with every parameter of the error model known."""
    rng = np.random.default_rng(20260101)
    phi = step_correlation(scenario)
    scatter_w = scenario.scatter_w / math.sqrt(variance_of_mean(phi, round(UPDATE_S / STEP_S)))

    def mean_error_w(length_s: float, share: float) -> Any:
        spread_w = share * scatter_w * math.sqrt(variance_of_mean(phi, round(length_s / STEP_S)))
        return rng.normal(0.0, spread_w, draws)

    idle_w = (mean_error_w(scenario.idle_s, 0.3) + mean_error_w(scenario.idle_s, 0.3)) / 2
    range_w = 0.0 if scenario.constant_offset else RANGE_RATIO * POWER_RANGE_W
    offset_w = rng.uniform(-range_w, range_w, draws) - rng.uniform(-range_w, range_w, draws)
    gain = 1 + rng.uniform(-READING_RATIO, READING_RATIO, draws)
    edge_ratio = 8e-6 * PAYLOAD_BYTES / (RATE_MBPS * scenario.measure_s)
    rate = RATE_MBPS * (1 + edge_ratio * (rng.uniform(-0.5, 0.5, draws) + rng.uniform(-0.5, 0.5, draws)))
    ea = (scenario.extra_w * gain + offset_w + mean_error_w(scenario.measure_s, 1.0) - idle_w) / rate
    low, high = np.quantile(ea, (0.025, 0.975))
    return float(high - low) / 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scenario's runs say. widths relative to E_A; grades: how many of each."""

    scenario: Scenario
    runs: int
    inside: int
    median_u95: float
    oracle_u95: float
    needed_u95: float
    grades: dict[str, int]

    @property
    def coverage(self) -> float:
        """Share of runs whose u95 holds the true E_A."""
        return self.inside / self.runs

    @property
    def against_oracle(self) -> float:
        """Median half-width over the oracle's."""
        return self.median_u95 / self.oracle_u95


def study(scenario: Scenario, seeds: Sequence[int]) -> Outcome:
    """Fly a scenario once per seed."""
    nodes = [fly(scenario, seed) for seed in seeds]
    errors, widths = [], []
    for node in nodes:
        assert node.energy_per_work_j is not None, node.ea_reason
        assert node.u95_energy_per_work_j is not None
        errors.append(abs(node.energy_per_work_j - scenario.true_ea))
        widths.append(node.u95_energy_per_work_j)
    grades = [str(node.grade) for node in nodes]
    return Outcome(
        scenario=scenario,
        runs=len(nodes),
        inside=sum(error <= width for error, width in zip(errors, widths, strict=True)),
        median_u95=float(np.median(widths)),
        oracle_u95=oracle_half_width(scenario),
        needed_u95=float(np.quantile(errors, 0.95)),
        grades={grade: grades.count(grade) for grade in sorted(set(grades))},
    )


def report(outcomes: Sequence[Outcome]) -> str:
    """The page docs/method/coverage.md."""
    rows = ["| " + " | ".join(_cells(outcome)) + " |" for outcome in outcomes]
    return HEAD + "\n".join(rows) + "\n" + FOOT


def _cells(outcome: Outcome) -> list[str]:
    def of_truth(half_width: float) -> str:
        return f"{100 * half_width / outcome.scenario.true_ea:.2f} %"

    return [
        outcome.scenario.name,
        str(outcome.runs),
        f"{100 * outcome.coverage:.1f} %",
        of_truth(outcome.median_u95),
        of_truth(outcome.oracle_u95),
        f"{outcome.against_oracle:.2f}",
        of_truth(outcome.needed_u95),
        ", ".join(f"{count} {grade}" for grade, count in outcome.grades.items()),
    ]


HEAD = """# Coverage of u95

Written by `python energy/tests/coverage_study.py`; emulated instruments, modelled device.

Each run has a new emulated WT210, drawn within its 12-month specification (gain within 0.15 % of the reading,
range part within 0.1 % of 30 W), and a new course of the load. The device takes 8 W and, unless the scenario
says otherwise, 1.5 W more at 10 Mb/s, so E_A is 0.15 J/Mb; its power scatters with a known correlation and
its idle power drifts by 0.5 mW/s. Readings come through the WT210's own commands and the adapter at 10 Hz,
and the arithmetic behind `result.json` makes E_A and u95 of them. The oracle knows the error model with all
parameters and estimates nothing; "needed" is the half-width that would have held 95 % of these runs. Widths
are in percent of E_A.

| scenario | runs | true E_A inside u95 | median u95 | oracle | median / oracle | needed | grades |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""

FOOT = """
The first scenario is held to 93-99 % and to 1.2 times the oracle by a slow test.

- **Windows of 2 s** hold twenty readings. Those cannot tell independent readings from ones that are
  correlated by 0.5, so the interval covers both and is wider than either needs. Longer windows are the cure.
- **Load wanders**: neighbouring readings are correlated by 0.9, so that 20 s are worth about ten independent
  readings.
- **Constant offset**: an instrument whose range error is the same at 8 W and at 9.5 W. It then cancels in
  P_A - P_I, but the specification does not promise that, so u95 holds it all the same and is wider than such
  an instrument needs. Zeroing (`zeroed` in the passport's accuracy) takes the term away.
- What no such study can show: whether a real instrument keeps its specification, and what a device model
  leaves out.
"""


def main() -> None:
    outcomes = []
    for scenario in SCENARIOS:
        outcome = study(scenario, range(RUNS))
        outcomes.append(outcome)
        cells = ", ".join(_cells(outcome))
        sys.stdout.write(cells + "\n")
        sys.stdout.flush()
    REPORT.write_text(report(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
