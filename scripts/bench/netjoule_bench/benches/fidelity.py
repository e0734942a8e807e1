# SPDX-License-Identifier: Apache-2.0
"""Sent against scheduled messages over the whole sweep of a campaign, for every transport."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product

from netjoule_bench.generators.contest import Contest
from netjoule_bench.generators.flow import Flow
from netjoule_bench.tables import Section, Verdict, told

RATES_MBPS = [0.031, 0.049, 0.25, 0.5, 1, 2, 4, 8, 12, 18, 24, 30]  # the span of table-i
QUICK_RATES_MBPS = [0.031, 1, 10, 30]
SIZES_BYTES = [64, 1440]
# Over a raw pair whose round trip takes microseconds no congestion window limits 30 Mb/s; DCCP's CCIDs do at
# their begin, and are printed without being held to the limit.
HELD = ("udp", "tcp", "quic", "quic-datagram", "null")
FREE = ("dccp",)
MOST_SHARE = 0.002
SIDE_BY_SIDE_PPS = 5_000.0  # of one flow: below it the flows of all transports run at once


@dataclass(frozen=True)
class Cell:
    """One transport or generator at one size and rate; ``sent`` None: it cannot send this."""

    flow: Flow
    who: str
    scheduled: float
    sent: int | None

    @property
    def good(self) -> bool:
        """Whether what was sent is within the limit of what was scheduled."""
        return self.sent is not None and abs(self.sent - self.scheduled) <= allowed(self.scheduled)


def allowed(scheduled: float) -> float:
    """Messages by which sent and scheduled may differ."""
    return max(1.0, MOST_SHARE * scheduled)


def section(contest: Contest, *, quick: bool) -> Section:
    """One row per size and rate, one column per transport and generator."""
    flows = product(SIZES_BYTES, QUICK_RATES_MBPS if quick else RATES_MBPS, [contest.seconds])
    cells = [cell for flow in flows for cell in _cells(contest, Flow(*flow))]
    return judged(cells, contest.seconds, told(contest.absent))


def judged(cells: Sequence[Cell], seconds: float, note: str = "") -> Section:
    """The section from all cells; pure."""
    names = list(dict.fromkeys(cell.who for cell in cells))
    by_flow: dict[Flow, dict[str, Cell]] = {}
    for cell in cells:
        by_flow.setdefault(cell.flow, {})[cell.who] = cell
    rows = [
        [f"{flow.payload_bytes}", f"{flow.rate_mbps:g}", f"{next(iter(found.values())).scheduled:,.0f}"]
        + [_difference(found.get(name)) for name in names]
        for flow, found in by_flow.items()
    ]
    return Section(
        title=f"Sent against scheduled messages over {seconds:g} s",
        columns=["payload B", "Mb/s", "scheduled", *names],
        rows=rows,
        note="Sent minus scheduled messages (other generators: minus asked). Flows below "
        f"{SIDE_BY_SIDE_PPS:,.0f} messages per second run side by side. NetPerfMeter sends up to a second "
        "longer than it is told." + note,
        verdicts=[_verdict(name, [cell for cell in cells if cell.who == name]) for name in HELD],
    )


def _cells(contest: Contest, flow: Flow) -> list[Cell]:
    arms = {name: partial(contest.ours.run, flow, transport=name) for name in (*HELD, *FREE)}
    together = flow.messages / flow.seconds < SIDE_BY_SIDE_PPS
    # The other generators have ports of their own choice: one at a time, below.
    with ThreadPoolExecutor(max_workers=len(arms) if together else 1) as pool:
        outcomes = list(pool.map(lambda arm: arm(), arms.values()))
    ended = zip(arms, outcomes, strict=True)
    cells = [Cell(flow, name, outcome.scheduled, outcome.sent) for name, outcome in ended]
    others = contest.others(flow).items()
    return cells + [Cell(flow, name, flow.messages, run().sent) for name, run in others]


def _difference(cell: Cell | None) -> str:
    if cell is None or cell.sent is None:
        return "-"
    return f"{cell.sent - cell.scheduled:+,.0f}{'' if cell.good else ' !'}"


def _verdict(name: str, cells: Sequence[Cell]) -> Verdict:
    what, limit = f"sent against scheduled, {name}", "within max(1 message, 0.2 %)"
    if not cells:
        return Verdict(what, limit, "did not run", None)
    bad = [cell for cell in cells if not cell.good]
    measured = f"{len(cells) - len(bad)} of {len(cells)} flows"
    if bad:
        worst = max(bad, key=lambda cell: abs((cell.sent or 0) - cell.scheduled) / cell.scheduled)
        size, rate = worst.flow.payload_bytes, worst.flow.rate_mbps
        measured += f"; {size} B at {rate:g} Mb/s: {_difference(worst)}"
    return Verdict(what, limit, measured, not bad)
