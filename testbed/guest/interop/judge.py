# SPDX-License-Identifier: Apache-2.0
"""What a flow must show, and what the flows of one path must show beside each other."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from captures import Dissection
from cells import FROM_KERNEL, KERNEL, TO_KERNEL, Cell

LEAST_RATIO = 0.8
MOST_RATIO = 1.25
"""Above this the faster side needs an explanation (explanations.py): it may be taking more than its share."""


def goodput_mbps(outcome: Mapping[str, Any]) -> float | None:
    """Payload bits of first copies per second at the receiver, 10^6."""
    report = outcome.get("report")
    return float(report["receiver"]["goodput_mbps"]) if report else None


def defects(
    outcome: Mapping[str, Any],
    seen: Dissection,
    *,
    ours: bool = True,
    lossy: bool = False,
    unseen: bool = False,
) -> list[str]:
    """What is wrong with one flow; the flow's own report and its capture are judged.

    Args:
        outcome: the guest's account.
        seen: the capture.
        ours: an end is our stack. What the kernel does when it closes towards itself is no defect of ours:
            when Close and CloseReq cross, its client sends a second Close into a connection that is gone.
        lossy: packets are lost after the capture saw them: when that is the Reset 'Closed', the Close is
            repeated into a connection that is gone.
        unseen: packets are lost before the capture sees them: it may lack that Reset altogether.
    """
    found = []
    report = outcome.get("report")
    if outcome["exit_code"] != 0 or report is None:
        found.append(f"exit {outcome['exit_code']}: {outcome['stderr'][-300:]}")
    else:
        if not report["reconciles"]:
            found.append("the books do not balance")
        if report["end_reason"] != "duration":
            found.append(f"ended by {report['end_reason']}")
        if report["receiver"]["messages_received_unique"] == 0:
            found.append("nothing arrived")
    if seen.packets == 0:
        found.append("no DCCP in the capture")
    if seen.bad_checksums:
        found.append(f"{seen.bad_checksums} bad checksums")
    if seen.undecodable:
        found.append(f"{seen.undecodable} undecodable packets")
    return found + (_bad_close(seen, lossy, unseen) if ours else [])


def _bad_close(seen: Dissection, lossy: bool, unseen: bool) -> list[str]:
    repeated = unseen or (lossy and "Closed" in seen.resets)
    fine = {"Closed", "No Connection"} if repeated else {"Closed"}
    found = [f"{count} Reset {name!r}" for name, count in seen.resets.items() if name not in fine]
    if not seen.types.keys() & {"Close", "CloseReq"}:
        found.append("no Close")
    if "Closed" not in seen.resets and not unseen:
        found.append("no Reset 'Closed' answered the Close")
    return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """Median goodputs on one path; ``None`` where no flow succeeded.

    Attributes:
        counts: flows behind each median, by pair.
        ratios: each direction of ours over kernel to kernel, by pair.
    """

    ccid: int
    ip_version: int
    loss_percent: int
    medians_mbps: dict[str, float | None]
    counts: dict[str, int]
    ratios: dict[str, float | None]

    def low(self) -> list[str]:
        """Pairs that are slower than they may be."""
        return [pair for pair, ratio in self.ratios.items() if ratio is None or ratio < LEAST_RATIO]

    def high(self) -> list[str]:
        """Pairs that are so fast that it needs a reason."""
        return [pair for pair, ratio in self.ratios.items() if ratio is not None and ratio > MOST_RATIO]


def compare(goodputs_mbps: Mapping[Cell, float | None]) -> list[Comparison]:
    """One comparison per path that has a kernel-to-kernel flow, in the order of the cells."""
    regular = {cell: goodput for cell, goodput in goodputs_mbps.items() if not cell.random}
    paths = dict.fromkeys(cell.path for cell in regular if cell.pair == KERNEL.name)
    return [_comparison(path, regular) for path in paths]


def _comparison(path: tuple[int, int, int], goodputs_mbps: Mapping[Cell, float | None]) -> Comparison:
    values: dict[str, list[float | None]] = {}
    for cell, goodput in goodputs_mbps.items():
        if cell.path == path and cell.pair in (KERNEL.name, TO_KERNEL.name, FROM_KERNEL.name):
            values.setdefault(cell.pair, []).append(goodput)
    medians = {pair: _median(goodputs) for pair, goodputs in values.items()}
    base = medians.get(KERNEL.name)
    ratios = {
        pair: median / base if median is not None and base else None
        for pair, median in medians.items()
        if pair != KERNEL.name
    }
    counts = {pair: len(goodputs) for pair, goodputs in values.items()}
    return Comparison(*path, medians, counts, ratios)


def _median(values: Iterable[float | None]) -> float | None:
    """A flow that failed counts as nothing delivered."""
    known = [value if value is not None else 0.0 for value in values]
    return statistics.median(known) if known else None
