# SPDX-License-Identifier: Apache-2.0
"""What the routers of a run's path did: rows of routers.csv, and what they come to in a window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import netjoule_contracts as contracts

VARYING = "varying"
"""The kind of an element whose rate chance changes, which saves nothing."""
SLEEP = "sleep"
SLEEP_POWER_RATIO = 0.1
"""Power of a link asleep over that of one awake, about a tenth (Christensen et al., IEEE 802.3az: the road to
Energy Efficient Ethernet, IEEE Communications Magazine 48:11, 2010)."""


def rows_of(told: Mapping[str, Any], host: str) -> list[dict[str, Any]]:
    """Rows of routers.csv from the answer of netjoule-simulate, router by router in order of time.

    Args:
        host: to which the path leads.
    """
    where = {"host": host, "direction": "up"}
    return [row | where for number in range(len(told["routers"])) for row in _rows(told, number)]


def _rows(told: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    start_ns, columns = told["start_ns"], [field["name"] for field in contracts.table("routers")["fields"]]
    for step in told["steps"]:
        span = {"t_start_s": start_ns / 1e9, "t_end_s": step["t_end_ns"] / 1e9}
        of_step = step["routers"][number]
        yield {name: of_step.get(name) for name in columns} | told["routers"][number] | span
        start_ns = step["t_end_ns"]


def measures_of(rows: Sequence[Mapping[str, Any]], start_s: float, end_s: float) -> dict[str, float | None]:
    """Measures of the routers that scale their rate, in a window; {} without any.

    Of several, rate and savings are means, so that the unit of power is that of all of them at their highest
    rates; switches and losses are sums, over what came to the first on each way.

    Args:
        rows: of routers.csv. A step that straddles an edge is shared by time.
        start_s: of the window, campaign time.
        end_s: of the window.
    """
    shares = [(row, _within(row, start_s, end_s)) for row in rows if row["kind"] != VARYING]
    inside = [(row, share) for row, share in shares if share > 0]
    if not inside:
        return {}

    def mean(value: Callable[[Mapping[str, Any]], float]) -> float:
        lengths = [share * (row["t_end_s"] - row["t_start_s"]) for row, share in inside]
        weighted = (length * value(row) for length, (row, _) in zip(lengths, inside, strict=True))
        return float(sum(weighted) / sum(lengths))

    def count(name: str) -> float:
        return float(sum(share * row[name] for row, share in inside))

    firsts = _firsts([row for row, _ in inside])
    came = float(
        sum(
            share * row["flows_arrived_packets"]
            for row, share in inside
            if row["element"] == firsts[row["host"], row["direction"]]
        )
    )
    return {
        "service_rate_mbps": mean(lambda row: row["mean_rate_mbps"]),
        "saving_linear_ratio": mean(lambda row: _saving(row, row["mean_rate_mbps"] / row["max_rate_mbps"])),
        "saving_cubic_ratio": mean(lambda row: _saving(row, row["mean_cubic"])),
        "rate_switches": count("switches"),
        "router_loss_ratio": count("flows_dropped_packets") / came if came else None,
    } | _lateness([row for row, _ in inside])


def _firsts(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """The element that packets meet first, by host and direction of the way."""
    firsts: dict[tuple[str, str], int] = {}
    for row in rows:
        way, nearer = (row["host"], row["direction"]), min if row["direction"] == "up" else max
        firsts[way] = nearer(row["element"], firsts.get(way, row["element"]))
    return firsts


def _lateness(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """How late routers were asked for their rate, in the mean and at most; None in simulated time."""
    asked = [row for row in rows if row.get("ticks")]
    ticks = sum(row["ticks"] for row in asked)
    late_us = sum(row["ticks"] * row["tick_late_mean_us"] for row in asked)
    return {
        "tick_late_mean_us": late_us / ticks if ticks else None,
        "tick_late_max_us": max((row["tick_late_max_us"] for row in asked), default=None),
    }


def _saving(row: Mapping[str, Any], power: float) -> float:
    """Share of its power that a router saves in a step; `power`: as its rate has it, of the highest."""
    if row["kind"] == SLEEP:
        power = 1.0 - row["asleep_share"] * (1.0 - SLEEP_POWER_RATIO)
    return max(0.0, 1.0 - float(power))


def _within(row: Mapping[str, Any], start_s: float, end_s: float) -> float:
    """The share of a step that lies in a window."""
    inside_s = min(row["t_end_s"], end_s) - max(row["t_start_s"], start_s)
    return float(max(0.0, inside_s) / (row["t_end_s"] - row["t_start_s"]))
