# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/findings.md, out of a campaign: `findings_tables.py CAMPAIGN` prints them.

With a second one (`study-cubic`) also the table of both.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from math import expm1, log
from pathlib import Path
from statistics import fmean

from netjoule.core import files
from netjoule.coursework import cells
from netjoule.coursework.cells import CannotTell, Cells
from netjoule.store.planfile import read_plan

TRANSPORTS = ("udp", "dccp", "tcp", "quic")
SIZES = (64, 1440)
LOADS_MBPS = (0.5, 1, 2, 6, 12, 20, 30)
SATURATED_MBPS = (4, 6, 8, 10, 12, 20, 30)
PAST_THE_CAP_MBPS = (12, 20, 30)

Value = Callable[[str, float], str]


def ea(found: Cells, payload_bytes: int) -> Iterator[str]:
    """E_A in J/Mb, mean over blocks and half of its 95 % interval, by load and transport."""

    def value(transport: str, load: float) -> str:
        cell = found.at(transport, payload_bytes, load)
        return f"{cell.mean('ea_j_per_mbit'):.3f} ± {cell.half_width('ea_j_per_mbit'):.3f}"

    yield from _table(f"E_A at {payload_bytes} B, J/Mb", LOADS_MBPS, TRANSPORTS, value)


def arrival(found: Cells, payload_bytes: int) -> Iterator[str]:
    """Goodput in Mb/s, loss and what congestion control did not send, by load and transport."""

    def value(transport: str, load: float) -> str:
        cell = found.at(transport, payload_bytes, load)
        goodput, loss = cell.mean("goodput_mbps"), cell.mean("loss_ratio")
        return f"{goodput:.2f} / {loss:.3f} / {1 - cell.mean('achieved_ratio'):.3f}"

    title = f"goodput Mb/s / loss / not sent, {payload_bytes} B"
    yield from _table(title, SATURATED_MBPS, TRANSPORTS, value)


def floor(found: Cells) -> Iterator[str]:
    """The generator floor's share of P_A - P_I of UDP, by load and size."""

    def value(size: str, load: float) -> str:
        cell = found.at("udp", int(size), load)
        null = found.at("null", int(size), load)
        if 2 * sum(run.below_resolution for run in null.runs) > len(null.runs):
            return "not resolved"
        try:
            floor_w, added_w = cell.mean("floor_w"), cell.mean("delta_p_w")
        except CannotTell:
            return "no floor"
        return f"{floor_w:.2f} of {added_w:.2f} W, {100 * floor_w / added_w:.0f} %"

    yield from _table("floor of P_A - P_I, UDP", LOADS_MBPS, tuple(map(str, SIZES)), value, unit=" B")


def cpu(campaign: Path, payload_bytes: int) -> Iterator[str]:
    """CPU time of the sender in us (user + system) and its sleeps per message sent, by load and transport."""
    spent: dict[tuple[str, float], list[tuple[float, float, float]]] = defaultdict(list)
    for row in read_plan(campaign):
        if row.status != "valid" or row.cell["payload_bytes"] != payload_bytes:
            continue
        flow = files.read_json(campaign / "runs" / row.run_id / "flow.json")
        sender, sent = flow["sender"], flow["sender"]["messages_sent"]
        user, system = (1e6 * sender[name] / sent for name in ("cpu_user_s", "cpu_system_s"))
        slept = sender["context_switches_voluntary"] / sent
        spent[row.arm, row.cell["offered_rate_mbps"]].append((user, system, slept))

    def value(transport: str, load: float) -> str:
        user, system, slept = map(fmean, zip(*spent[transport, load], strict=True))
        return f"{user:.1f} + {system:.1f} us, {slept:.2f}"

    title = f"CPU user + system and sleeps per message sent, {payload_bytes} B"
    yield from _table(title, LOADS_MBPS, ("null", *TRANSPORTS), value)


def same_congestion_control(study: Cells, cubic: Cells) -> str:
    """E_A, goodput and packets per message at 64 bytes past the cap: in the study, and with CUBIC for TCP."""
    found = {"study": study, "study-cubic": cubic}
    columns = tuple(f"{name}, {of}" for name in ("udp", "tcp", "quic") for of in found)

    def value(column: str, load: float) -> str:
        transport, of = column.split(", ")
        cell = found[of].at(transport, 64, load)
        ea, half = cell.mean("ea_j_per_mbit"), cell.half_width("ea_j_per_mbit")
        return (
            f"{ea:.3f} ± {half:.3f}, {cell.mean('goodput_mbps'):.2f}, {cell.mean('frames_per_message'):.2f}"
        )

    title = "E_A in J/Mb, goodput in Mb/s, frames per message, 64 B"
    return "\n".join(_table(title, PAST_THE_CAP_MBPS, columns, value))


def less_percent(found: Cells, transport: str, reference: str) -> float:
    """How much less E_A is past the cap at 64 bytes: mean log-ratio over loads and blocks, a contrast's."""
    ratios = [
        log(ours / theirs)
        for load in PAST_THE_CAP_MBPS
        for ours, theirs in cells.positive_pairs(
            found.at(transport, 64, load), found.at(reference, 64, load), "ea_j_per_mbit"
        ).values()
    ]
    return 100 * -expm1(fmean(ratios))


def _table(
    title: str, loads: tuple[float, ...], columns: tuple[str, ...], value: Value, unit: str = ""
) -> Iterator[str]:
    yield f"| {title} | {' | '.join(f'{column}{unit}' for column in columns)} |"
    yield "| --- " * (len(columns) + 1) + "|"
    for load in loads:
        yield f"| {load:g} Mb/s | {' | '.join(value(column, load) for column in columns)} |"


def tables(campaign: Path) -> dict[str, str]:
    """All of them by name."""
    found = cells.read(campaign)
    made = {f"{of.__name__}-{size}": of(found, size) for size in SIZES for of in (ea, arrival)}
    made |= {f"cpu-{size}": cpu(campaign, size) for size in SIZES}
    return {name: "\n".join(lines) for name, lines in {**made, "floor": floor(found)}.items()}


if __name__ == "__main__":
    for name, lines in tables(Path(sys.argv[1])).items():
        print(f"\n{name}\n\n{lines}")
    for other in sys.argv[2:]:
        study, cubic = (cells.read(Path(campaign)) for campaign in (sys.argv[1], other))
        print(f"\nboth\n\n{same_congestion_control(study, cubic)}")
