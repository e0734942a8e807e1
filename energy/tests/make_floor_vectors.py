# SPDX-License-Identifier: Apache-2.0
"""Compute the shared vectors of the generator floor with exact fractions, apart from the code they test.

Run `python energy/tests/make_floor_vectors.py` to write protocols/contracts/vectors/ea/floor-*.json
again. A vector holds one meter's readings over a run and the null run of its mini-block, with what their
run.json and flow.json say of the senders. Nothing here imports netjoule_meters.
"""

from __future__ import annotations

import runpy
from fractions import Fraction
from pathlib import Path
from typing import Any

BASE = runpy.run_path(str(Path(__file__).with_name("make_ea_vectors.py")))
exact, grid, mean_power, span, steady = (
    BASE[name] for name in ("exact", "grid", "mean_power", "span", "steady")
)

Document = dict[str, Any]

LEAST_ACHIEVED = Fraction("0.99")
MOST_BUSY = Fraction("0.9")
ORIGIN_NS = 7_000_000_000_000
RATE_MBPS, PAYLOAD_BYTES = 10, 1250
MESSAGES_PER_S = 1000
# Neighbours: the idle window that closes the run opens null.
WINDOWS = {
    "idle_before": span(0.0, 1.0),
    "measure": span(1.5, 3.5),
    "tail": span(3.5, 4.0),
    "idle_after": span(4.0, 5.0),
}
NULL_WINDOWS = {
    "idle_before": span(4.0, 5.0),
    "measure": span(5.5, 7.5),
    "tail": span(7.5, 8.0),
    "idle_after": span(8.0, 9.0),
}
FLOW_S, NULL_FLOW_S = ("1.2", "3.5"), ("5.2", "7.5")


def powered(run_w: str, null_w: str, *, drift_w_per_s: str = "0", wave: bool = False) -> list[list[Any]]:
    """Return readings at 10 Hz of a device that idles at 8 W and draws more while a flow runs."""

    def power(t: Fraction) -> Fraction:
        ripple = (t * 7 % 3) / 400 if wave else Fraction(0)
        value = 8 + Fraction(drift_w_per_s) * t + ripple
        if Fraction(FLOW_S[0]) < t <= Fraction(FLOW_S[1]):
            value += Fraction(run_w)
        if Fraction(NULL_FLOW_S[0]) < t <= Fraction(NULL_FLOW_S[1]):
            value += Fraction(null_w)
        return value

    return list(grid(90, power))


def sender_of(
    flow_s: tuple[str, str],
    *,
    mode: str = "absolute",
    cpu_s: float = 0.2,
    missing: int = 0,
    window_only: bool = False,
) -> dict[str, Document]:
    """Return run.json and flow.json of one end: what was asked and what its sender did.

    missing: messages of the schedule that did not leave; with `window_only` all of them in the first 0.1 s,
    before the measure window.
    """
    start, end = (Fraction(edge) for edge in flow_s)
    scheduled = int((end - start) * MESSAGES_PER_S)
    pacing = {"mode": mode, "window_us": 0, "gso": False}
    intervals = [
        {
            "end": "sender",
            "start_ns": ORIGIN_NS + int((start + Fraction(k, 10)) * 10**9),
            "end_ns": ORIGIN_NS + int((start + Fraction(k + 1, 10)) * 10**9),
            "messages": MESSAGES_PER_S // 10 - (missing if k == 0 else 0),
        }
        for k in range(scheduled * 10 // MESSAGES_PER_S)
    ]
    sender = {
        "start_ns": ORIGIN_NS + int(start * 10**9),
        "first_packet_ns": ORIGIN_NS + int(start * 10**9),
        "end_ns": ORIGIN_NS + int(end * 10**9),
        "messages_scheduled": scheduled,
        "messages_sent": scheduled - missing,
        "cpu_s": cpu_s,
    }
    run = {
        "offered_rate_mbps": RATE_MBPS,
        "payload_bytes": PAYLOAD_BYTES,
        "pacing": pacing,
        "t_first_packet_s": float(start),
    }
    return {
        "run": run,
        "flow": {"pacing": pacing, "sender": sender, "intervals": intervals if window_only else []},
    }


def kept_pace(windows: Document, run: Document, flow: Document) -> bool:
    """Whether 99 % of the schedule left, in all or in the measure window but for a message at its edge."""
    sender = flow["sender"]
    if Fraction(sender["messages_sent"], sender["messages_scheduled"]) >= LEAST_ACHIEVED:
        return True
    zero_ns = sender["first_packet_ns"] - exact(run["t_first_packet_s"]) * 10**9
    low, high = (exact(windows["measure"][name]) * 10**9 + zero_ns for name in ("t_start_s", "t_end_s"))
    inside = [one for one in flow["intervals"] if one["start_ns"] >= low and one["end_ns"] <= high]
    length_s = Fraction(sum(one["end_ns"] - one["start_ns"] for one in inside), 10**9)
    asked = exact(run["offered_rate_mbps"]) * 10**6 * length_s / (8 * run["payload_bytes"])
    return bool(asked) and (sum(one["messages"] for one in inside) + 1) / asked >= LEAST_ACHIEVED


def refusal(case: Document, null_invalid: bool) -> str | None:
    """Return the code that leaves the floor empty."""
    null = case["null"]
    if null is None:
        return "no_null_run"
    if null_invalid:
        return "null_run_invalid"
    ends = [(case["windows"], case["run"], case["flow"]), (null["windows"], null["run"], null["flow"])]
    if not all(kept_pace(*end) for end in ends):
        return "floor_achieved_low"
    if any(flow["pacing"]["mode"] == "spin" for _, _, flow in ends):
        return "floor_spinning"
    for _, _, flow in ends:
        sender = flow["sender"]
        if exact(sender["cpu_s"]) * 10**9 / (sender["end_ns"] - sender["start_ns"]) > MOST_BUSY:
            return "floor_core_busy"
    return None


def above_idle(case: Document, windows: Document, start: Fraction, end: Fraction) -> dict[str, Any]:
    """Return mean power of [start, end] and that above the idle line, and whether every window is covered."""
    active, *coverages = mean_power(case, start, end)[:2]
    middles, idle = [], []
    for name in ("idle_before", "idle_after"):
        low, high = exact(windows[name]["t_start_s"]), exact(windows[name]["t_end_s"])
        power, coverage, _ = mean_power(case, low, high)
        middles.append((low + high) / 2)
        idle.append(power)
        coverages.append(coverage)
    at = ((start + end) / 2 - middles[0]) / (middles[1] - middles[0])
    whole = all(Fraction(9, 10) <= coverage <= Fraction(11, 10) for coverage in coverages)
    delta = active - idle[0] - at * (idle[1] - idle[0]) if whole else None
    return {"power": active, "delta": delta}


def expected(case: Document) -> Document:
    """Return what a reader must find: the run's own numbers and the floor's."""
    found = BASE["expected"](case)
    null = case["null"]
    start, end, _ = BASE["effective_window"](case)
    own = above_idle(case, case["windows"], start, end)["delta"]
    of_null: dict[str, Any] = {"power": None, "delta": None}
    if null is not None:
        window = null["windows"]["measure"]
        of_null = above_idle(case, null["windows"], exact(window["t_start_s"]), exact(window["t_end_s"]))
    reason = refusal(case, null is not None and of_null["delta"] is None)
    floor = of_null["delta"] if reason is None else None
    rate = Fraction(RATE_MBPS)
    above = (own - floor) / rate if floor is not None and own is not None else None
    return {
        **found,
        "p_null_w": None if floor is None else float(of_null["power"]),
        "floor_w": None if floor is None else float(floor),
        "ea_above_floor_j_per_mbit": None if above is None else float(above),
        "floor_reason": reason,
    }


def build(name: str, description: str, **changes: Any) -> Document:
    """Return one vector; `changes` replaces parts of the plain case (1.5 W, of which null takes 0.5 W)."""
    case: Document = {
        "readings": powered("1.5", "0.5"),
        "update_interval_s": 0.1,
        "lag_s": 0.0,
        "windows": WINDOWS,
        "intervals": steady("1.2", 23, 125_000),
        **sender_of(FLOW_S),
        "null": {"windows": NULL_WINDOWS, **sender_of(NULL_FLOW_S)},
    }
    case.update(changes)
    return {
        "schema_version": 1,
        "name": f"floor-{name}",
        "description": description,
        "input": case,
        "expected": expected(case),
    }


def null_run(windows: Document = NULL_WINDOWS, **changes: Any) -> Document:
    """Return the null run with its sender changed."""
    return {"windows": windows, **sender_of(NULL_FLOW_S, **changes)}


def vectors() -> list[Document]:
    """Return every shared case of the floor."""
    plain = powered("1.5", "0.5")
    far = {name: span(w["t_start_s"] + 0.013, w["t_end_s"] - 0.021) for name, w in NULL_WINDOWS.items()}
    return [
        build("given", "Null takes 0.5 W of the 1.5 W: floor 0.5 W, 0.1 J/Mb above it."),
        build(
            "own-idle",
            "Idle rises by 2 mW/s between run and null: each is taken above its own idle.",
            readings=powered("1.5", "0.5", drift_w_per_s="0.002"),
        ),
        build(
            "off-grid",
            "Readings differ and null's windows lie off the meter's grid.",
            readings=powered("1.5", "0.5", wave=True),
            null=null_run(far),
        ),
        build(
            "above-run",
            "Null drew more than the run: E_A above floor is negative and stays.",
            readings=powered("0.3", "0.5"),
        ),
        build("none", "A mini-block without null.", null=None),
        build(
            "null-gap",
            "Readings are missing in null's measure window: null is invalid.",
            readings=[row for row in plain if not 6.05 < row[0] < 6.75],
        ),
        build("null-lagged", "Null sent 98 % of its schedule.", null=null_run(missing=46)),
        build(
            "run-lagged",
            "The run sent 98 % of its schedule, nobody knows where.",
            **sender_of(FLOW_S, missing=46),
        ),
        build(
            "slow-start",
            "The run sent 98 % of its schedule, and all of it in the measure window: the floor stands.",
            **sender_of(FLOW_S, missing=46, window_only=True),
        ),
        build(
            "spinning",
            "The pacer spins in both runs.",
            **sender_of(FLOW_S, mode="spin", cpu_s=2.29),
            null=null_run(mode="spin", cpu_s=2.29),
        ),
        build(
            "hybrid",
            "A pacer that sleeps and spins shortly: the spin is the same in both, the floor stands.",
            **sender_of(FLOW_S, mode="hybrid", cpu_s=0.5),
            null=null_run(mode="hybrid", cpu_s=0.4),
        ),
        build("core-busy", "The run's sender had 91 % of a core.", **sender_of(FLOW_S, cpu_s=2.1)),
        build("null-core-busy", "Null's sender had 91 % of a core.", null=null_run(cpu_s=2.1)),
    ]


def main() -> None:
    for vector in vectors():
        path = BASE["VECTOR_DIR"] / f"{vector['name']}.json"
        path.write_text(BASE["render"](vector), encoding="ascii")


if __name__ == "__main__":
    main()
