# SPDX-License-Identifier: Apache-2.0
"""Compute the shared E_A vectors with exact fractions, apart from the code that they test.

Run `python energy/tests/make_ea_vectors.py` to write protocols/contracts/vectors/ea/*.json again.
Nothing here imports netjoule_meters: every rule is written a second time, in rational arithmetic.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

VECTOR_DIR = Path(__file__).resolve().parents[2] / "protocols" / "contracts" / "vectors" / "ea"

# CSV times carry 6 decimals, so two roundings of one instant differ by at most 1e-6 s; twice that is allowed.
EDGE_TOLERANCE_S = Fraction("0.000002")

Case = dict[str, Any]
Reading = list[Any]


def exact(number: float | int) -> Fraction:
    """Return the decimal that is written in the JSON file, not the nearest binary float."""
    return Fraction(str(number))


def span(t_start_s: float, t_end_s: float) -> dict[str, float]:
    return {"t_start_s": t_start_s, "t_end_s": t_end_s}


def mean_power(case: Case, start: Fraction, end: Fraction) -> tuple[Fraction | None, Fraction, bool]:
    """Return mean power in W, coverage, and whether an overrange reading touches the window."""
    semantics = case.get("semantics", "interval_mean")
    energy, time = {
        "interval_mean": of_means,
        "instantaneous": of_instants,
        "energy_counter": of_counts,
    }[semantics](case, start, end)
    return (energy / time if time else None), time / (end - start), overrange(case, semantics, start, end)


def overrange(case: Case, semantics: str, start: Fraction, end: Fraction) -> bool:
    tau, lag = exact(case["update_interval_s"]), exact(case["lag_s"])
    later = tau if semantics == "instantaneous" else 0
    return any(
        row[2] in ("overrange", "peak_over")
        and min(exact(row[0]) - lag + later, end) > max(exact(row[0]) - lag - tau, start)
        for row in case["readings"]
    )


def of_means(case: Case, start: Fraction, end: Fraction) -> tuple[Fraction, Fraction]:
    """Energy in J and time in s: each good reading counts by its overlap with the window."""
    tau, lag = exact(case["update_interval_s"]), exact(case["lag_s"])
    energy, time = Fraction(0), Fraction(0)
    for row in case["readings"]:
        covers_end = exact(row[0]) - lag
        overlap = min(covers_end, end) - max(covers_end - tau, start)
        if overlap > 0 and row[2] == "" and row[1] is not None:
            energy += overlap * exact(row[1])
            time += overlap
    return energy, time


def neighbours(case: Case, column: int) -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Return (time, value, later time, later value) of each two good readings that follow each other."""
    lag = exact(case["lag_s"])
    good = [
        (exact(row[0]) - lag, exact(row[column]))
        for row in case["readings"]
        if row[2] == "" and row[column] is not None
    ]
    return [(*first, *second) for first, second in itertools.pairwise(good)]


def of_instants(case: Case, start: Fraction, end: Fraction) -> tuple[Fraction, Fraction]:
    """Trapezoids between neighbours at most 1.5 update intervals apart, cut at the window's edges."""
    limit = exact(case["update_interval_s"]) * Fraction(3, 2)
    energy, time = Fraction(0), Fraction(0)
    for t0, p0, t1, p1 in neighbours(case, 1):
        low, high = max(t0, start), min(t1, end)
        if high <= low or t1 - t0 > limit:
            continue
        at_low = p0 + (p1 - p0) * (low - t0) / (t1 - t0)
        at_high = p0 + (p1 - p0) * (high - t0) / (t1 - t0)
        energy += (at_low + at_high) / 2 * (high - low)
        time += high - low
    return energy, time


def of_counts(case: Case, start: Fraction, end: Fraction) -> tuple[Fraction, Fraction]:
    """Differences of counts at most 3 update intervals apart, prorated at the window's edges."""
    limit = exact(case["update_interval_s"]) * 3
    modulus = exact(case["counter_modulus_j"]) if case["counter_modulus_j"] is not None else None
    energy, time = Fraction(0), Fraction(0)
    for t0, e0, t1, e1 in neighbours(case, 3):
        counted = e1 - e0
        if counted < 0 and modulus is not None:
            counted += modulus
        began_anew = counted < 0 or (modulus is not None and counted >= modulus / 2)
        overlap = min(t1, end) - max(t0, start)
        if overlap <= 0 or began_anew or t1 - t0 > limit:
            continue
        energy += counted * overlap / (t1 - t0)
        time += overlap
    return energy, time


def effective_window(case: Case) -> tuple[Fraction, Fraction, Fraction]:
    """Return start, end and bytes of the longest contiguous span of whole receiver intervals."""
    measure = case["windows"]["measure"]
    start, end = exact(measure["t_start_s"]), exact(measure["t_end_s"])
    best: tuple[Fraction, Fraction, Fraction] | None = None
    current: tuple[Fraction, Fraction, Fraction] | None = None
    for t_start, t_end, size in case["intervals"]:
        lo, hi = exact(t_start), exact(t_end)
        if lo < start - EDGE_TOLERANCE_S or hi > end + EDGE_TOLERANCE_S:
            continue
        joined = current is not None and abs(lo - current[1]) <= EDGE_TOLERANCE_S
        current = (current[0], hi, current[2] + size) if joined and current else (lo, hi, Fraction(size))
        if best is None or current[1] - current[0] > best[1] - best[0]:
            best = current
    return best if best is not None else (start, end, Fraction(0))


def expected(case: Case) -> dict[str, Any]:
    """Return what a reader must find, every number the float nearest to the exact fraction."""
    windows = case["windows"]
    a, b, size = effective_window(case)
    p_a, coverage, over = mean_power(case, a, b)
    idle = {}
    reasons = {"meter_overrange"} if over else set()
    if not Fraction(9, 10) <= coverage <= Fraction(11, 10):
        reasons.add("meter_gap")
    for name in ("idle_before", "idle_after"):
        lo, hi = exact(windows[name]["t_start_s"]), exact(windows[name]["t_end_s"])
        power, idle_coverage, over = mean_power(case, lo, hi)
        idle[name] = (lo + hi) / 2, power
        if not Fraction(9, 10) <= idle_coverage <= Fraction(11, 10):
            reasons.add("meter_gap")
        if over:
            reasons.add("meter_overrange")
    (t0, before), (t1, after) = idle["idle_before"], idle["idle_after"]
    p_i = None
    if before is not None and after is not None:
        p_i = before + (after - before) * ((a + b) / 2 - t0) / (t1 - t0)
    t_a = size * 8 / 1_000_000 / (b - a) if case["intervals"] else None
    delta = p_a - p_i if p_a is not None and p_i is not None else None
    ea = delta / t_a if delta is not None and t_a and delta >= 0 else None
    lo, hi = exact(windows["tail"]["t_start_s"]), exact(windows["tail"]["t_end_s"])
    p_tail, tail_coverage, _ = mean_power(case, lo, hi)
    tail_ok = p_tail is not None and p_i is not None and Fraction(9, 10) <= tail_coverage <= Fraction(11, 10)
    tail = (p_tail - p_i) * (hi - lo) if tail_ok and p_tail is not None and p_i is not None else None
    values = {
        "window_t_start_s": a,
        "window_t_end_s": b,
        "p_a_w": p_a,
        "p_i_before_w": before,
        "p_i_after_w": after,
        "p_i_w": p_i,
        "t_a_mbps": t_a,
        "ea_j_per_mbit": ea,
        "coverage": coverage,
        "tail_energy_j": tail,
    }
    numbers = {name: None if value is None else float(value) for name, value in values.items()}
    return {**numbers, "reasons": sorted(reasons)}


def grid(count: int, power: Any, *, first: str = "0.1", step: str = "0.1") -> list[Reading]:
    """Return `count` readings on a regular grid; `power` is called with the reading's time as a fraction."""
    readings = []
    for index in range(count):
        t = Fraction(first) + index * Fraction(step)
        readings.append([float(t), round(float(power(t)), 9), ""])
    return readings


def step_power(low: str, high: str, start: str, end: str) -> Any:
    """Return a power function that is `high` for readings of (start, end] and `low` elsewhere."""
    return lambda t: Fraction(high) if Fraction(start) < t <= Fraction(end) else Fraction(low)


def counted(
    power: Any, *, first_j: str = "0", modulus_j: str | None = None, count: int = 51
) -> list[Reading]:
    """Return readings of a counter at 10 Hz; `power` gives the mean of the 0.1 s that end at a time."""
    readings: list[Reading] = []
    energy = Fraction(first_j)
    for index in range(count):
        t = index * Fraction("0.1")
        energy += Fraction(round(float(power(t)) / 10, 6)).limit_denominator(10**6) if index else 0
        energy = energy % Fraction(modulus_j) if modulus_j else energy
        readings.append([float(t), None, "", round(float(energy), 6)])
    return readings


def steady(t_start: str, count: int, size: int, *, length: str = "0.1") -> list[list[Any]]:
    """Return `count` contiguous receiver intervals of `size` bytes each."""
    lo = Fraction(t_start)
    width = Fraction(length)
    return [[float(lo + k * width), float(lo + (k + 1) * width), size] for k in range(count)]


WINDOWS = {
    "idle_before": span(0.0, 1.0),
    "measure": span(1.5, 3.5),
    "tail": span(3.5, 4.0),
    "idle_after": span(4.0, 5.0),
}


def build(name: str, description: str, **changes: Any) -> dict[str, Any]:
    """Return one vector; `changes` replaces parts of the plain case (10 Hz, 1.5 W step, 10 Mb/s)."""
    case: Case = {
        "readings": grid(50, step_power("8", "9.5", "1.2", "3.5")),
        "update_interval_s": 0.1,
        "lag_s": 0.0,
        "windows": WINDOWS,
        "intervals": steady("1.2", 23, 125_000),
    }
    case.update(changes)
    return {
        "schema_version": 1,
        "name": name,
        "description": description,
        "input": case,
        "expected": expected(case),
    }


def flagged(readings: list[Reading], index: int, flag: str, power: float | None) -> list[Reading]:
    """Return the readings with one of them flagged and its power replaced."""
    return [
        [t, power if k == index else p, flag if k == index else f] for k, (t, p, f) in enumerate(readings)
    ]


def wavy(t: Fraction) -> Fraction:
    """Return a power that differs in every reading, so that a wrong weight or a wrong reading shows."""
    return 8 + (Fraction(t) * 7 % 3) / 4 + (Fraction(3, 2) if Fraction("1.2") < t <= Fraction("3.5") else 0)


def vectors() -> list[dict[str, Any]]:
    """Return every shared case."""
    plain = grid(50, step_power("8", "9.5", "1.2", "3.5"))
    drift = grid(50, lambda t: 8 + t / 50 + (Fraction(3, 2) if Fraction("1.2") < t <= Fraction("3.5") else 0))
    uneven = [
        [t0, t1, 125_000 + 1_440 * ((7 * k) % 11)] for k, (t0, t1, _) in enumerate(steady("1.2", 23, 0))
    ]
    jitter = [[round(t + (0.013 if k % 3 == 0 else -0.009), 6), p, f] for k, (t, p, f) in enumerate(plain)]
    off_grid = {
        "idle_before": span(0.037, 0.961),
        "measure": span(1.533333, 3.471),
        "tail": span(3.481, 3.967),
        "idle_after": span(4.013, 4.899),
    }
    lagged = [[round(t + 0.3, 6), p, f] for t, p, f in grid(50, wavy)]
    half_gap = [row for row in plain if not 2.35 < row[0] < 2.95]
    return [
        build(
            "constant",
            "The same power all the time: no extra power, E_A is 0.",
            readings=grid(50, lambda t: 8),
        ),
        build("step", "A step of 1.5 W at 10 Mb/s on the meter's grid: 0.15 J/Mb."),
        build(
            "drifted-idle",
            "Idle rises by 0.02 W/s; the line through both idle means is used.",
            readings=drift,
        ),
        build(
            "edges-off-grid",
            "No window edge lies on the meter's grid: edge readings count by overlap.",
            readings=grid(50, wavy),
            windows=off_grid,
            intervals=steady("1.208", 23, 118_080),
        ),
        build(
            "flagged-reading",
            "One reading of the measure window has a flag and is not used; coverage is 0.95.",
            readings=flagged(grid(50, wavy), 20, "no_data", None),
        ),
        build(
            "flag-with-number",
            "A flagged reading is not used even when it carries a plausible number.",
            readings=flagged(grid(50, wavy), 27, "garbage", 99.0),
        ),
        build(
            "overrange",
            "An overrange reading in the measure window is not used: invalid (meter_overrange).",
            readings=flagged(grid(50, wavy), 24, "overrange", None),
        ),
        build(
            "lag",
            "Every reading arrives 0.3 s after the interval that it stands for ended.",
            readings=lagged,
            lag_s=0.3,
        ),
        build(
            "slow-meter",
            "A meter of 0.25 s against intervals of 0.1 s.",
            update_interval_s=0.25,
            readings=grid(20, wavy, first="0.25", step="0.25"),
        ),
        build(
            "jitter", "Reading times jitter by up to 13 ms: readings overlap or leave slits.", readings=jitter
        ),
        build(
            "gap",
            "Six of twenty readings are missing: coverage 0.7, invalid (meter_gap).",
            readings=half_gap,
        ),
        build(
            "no-readings",
            "No reading at all in the measure window: P_A and E_A are empty, not zero (meter_gap).",
            readings=[row for row in plain if not 1.45 < row[0] < 3.55],
        ),
        build("uneven-goodput", "Goodput differs in every receiver interval.", intervals=uneven),
        build(
            "partial-intervals",
            "Receiver intervals that cross an edge are left out, and the window shrinks.",
            intervals=steady("1.17", 9, 312_500, length="0.25"),
            readings=grid(50, wavy),
        ),
        build(
            "null",
            "Transport null has no receiver: the window is the measure window, T_A and E_A are empty.",
            intervals=[],
        ),
        build("zero-goodput", "Nothing arrives: T_A is 0 and E_A is empty.", intervals=steady("1.2", 23, 0)),
        *instantaneous_vectors(off_grid),
        *counter_vectors(off_grid),
        build(
            "negative-delta",
            "Active power below idle: the difference stays visible in P_A and P_I, E_A is empty.",
            readings=grid(50, step_power("8", "7.9", "1.2", "3.5")),
        ),
    ]


def instantaneous_vectors(off_grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return cases of a meter whose readings are the power at one instant."""
    spots = grid(51, wavy, first="0.02")
    spot = {"semantics": "instantaneous", "windows": off_grid, "intervals": steady("1.208", 23, 118_080)}
    return [
        build(
            "instantaneous",
            "Spot readings: trapezoids between neighbours, cut at window edges off the grid.",
            readings=spots,
            **spot,
        ),
        build(
            "instantaneous-lag",
            "Spot readings that are logged 0.3 s late.",
            readings=[[round(t + 0.3, 6), p, f] for t, p, f in spots],
            lag_s=0.3,
            **spot,
        ),
        build(
            "instantaneous-lost",
            "A flagged spot reading takes the trapezoids on both sides of it: coverage falls by 0.2 s.",
            readings=flagged(spots, 24, "stale", 9.0),
            **spot,
        ),
        build(
            "instantaneous-overrange",
            "A spot reading over range just outside the window bears on its first trapezoid.",
            readings=flagged(spots, 15, "overrange", None),
            **spot,
        ),
    ]


def counter_vectors(off_grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return cases of a meter that counts energy."""
    plain = counted(wavy, first_j="120.5")
    counter = {
        "semantics": "energy_counter",
        "counter_modulus_j": None,
        "windows": off_grid,
        "intervals": steady("1.208", 23, 118_080),
    }
    wrapping = counted(wavy, first_j="250", modulus_j="262.143999")
    restarted = [[t, p, f, round(e - 130, 6) if t > 2.55 else e] for t, p, f, e in plain]
    return [
        build(
            "counter",
            "Differences of counts, prorated at window edges off the grid.",
            readings=plain,
            **counter,
        ),
        build(
            "counter-wrap",
            "The counter passes its modulus of 262.143999 J during the run.",
            readings=wrapping,
            **(counter | {"counter_modulus_j": 262.143999}),
        ),
        build(
            "counter-restart",
            "A counter without modulus begins anew in the measure window: nothing is said of that step.",
            readings=restarted,
            **counter,
        ),
        build(
            "counter-missed",
            "Two readings are missing: what the counter counted meanwhile is not lost.",
            readings=[row for row in plain if not 2.35 < row[0] < 2.55],
            **counter,
        ),
        build(
            "counter-gap",
            "Over three update intervals without a count: a gap.",
            readings=[row for row in plain if not 2.35 < row[0] < 2.75],
            **counter,
        ),
    ]


def render(vector: dict[str, Any]) -> str:
    """Return the vector as JSON text, one reading or interval per line."""
    text = json.dumps(vector, indent=2, ensure_ascii=True)
    return compact_rows(text) + "\n"


def compact_rows(text: str) -> str:
    """Join lists of scalars, which json.dumps spreads over lines, into one line each."""
    out: list[str] = []
    row: list[str] | None = None
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped == "[":
            row = [line]
        elif row is not None and stripped.rstrip(",") == "]":
            out.append(row[0] + " ".join(row[1:]) + stripped)
            row = None
        elif row is not None:
            row.append(stripped)
        else:
            out.append(line)
    return "\n".join(out)


def main() -> None:
    VECTOR_DIR.mkdir(parents=True, exist_ok=True)
    for vector in vectors():
        (VECTOR_DIR / f"{vector['name']}.json").write_text(render(vector), encoding="ascii")


if __name__ == "__main__":
    main()
