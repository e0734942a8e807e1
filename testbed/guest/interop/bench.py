# SPDX-License-Identifier: Apache-2.0
"""Our stack beside the kernel's DCCP in one guest: saturated goodput, CPU time per packet.

The guest's clock counts instructions (2 ns each), so CPU time here is work done, whatever else the host does;
only ratios mean anything. Kernel work of a veth pair is charged to the sender: both ends are added up.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from cells import CCIDS, ENCAPSULATED, KERNEL, MESSAGE_BYTES, Pair
from guest_run import run_in_guest

RAW = Pair("ours to ours over raw IP", ("--transport", "dccp", "--carrier", "raw"), ("client", "server"))
_PAIRS = (KERNEL, ENCAPSULATED, RAW)
_LOADS = {
    "saturated": {"netem": "", "offered": "1G", "seconds": 3},
    "5 Mb/s, RTT 10 ms": {"netem": "limit 1000 delay 5ms", "offered": "5M", "seconds": 5},
}


@dataclass(frozen=True, slots=True)
class Row:
    """Medians of one pair under one load, and their ratios to the kernel's."""

    load: str
    ccid: int
    pair: str
    goodput_mbps: float
    cpu_us_per_packet: float
    goodput_ratio: float
    cpu_ratio: float


def measure(folder: Path, repeats: int = 3) -> list[Row]:
    """Run the bench in one guest.

    Args:
        folder: new folder for the guest's accounts.
        repeats: flows behind each median.
    """
    cells = list(_cells(repeats))
    run_in_guest(folder, cells)
    return rows({cell["name"]: json.loads((folder / f"{cell['name']}.json").read_text()) for cell in cells})


def _cells(repeats: int) -> Iterator[dict[str, Any]]:
    for repeat, (load, shape), ccid, pair in product(range(repeats), _LOADS.items(), CCIDS, _PAIRS):
        yield {
            "name": _name(load, ccid, pair.name, repeat),
            "options": [*pair.options, "--ccid", str(ccid)],
            "raw_ends": list(pair.raw_ends),
            "ip_version": 4,
            "message_bytes": MESSAGE_BYTES,
            "capture": False,
            "lose": None,
            **shape,
        }


def _name(load: str, ccid: int, pair: str, repeat: int) -> str:
    return "-".join(
        [*load.replace("/", "").replace(",", "").split(), f"ccid{ccid}", *pair.split(), str(repeat)]
    )


def rows(accounts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Medians and ratios; flows that failed are left out, pairs without any flow too."""
    found = []
    for load, ccid in product(_LOADS, CCIDS):
        medians = {}
        for pair in _PAIRS:
            prefix = _name(load, ccid, pair.name, 0)[:-1]
            reports = [a["report"] for name, a in accounts.items() if name.startswith(prefix) and a["report"]]
            if reports:
                medians[pair.name] = _medians(reports)
        base = medians.get(KERNEL.name, ())
        for name, own in medians.items() if base else ():
            ratios = (one / kernels for one, kernels in zip(own, base, strict=True))
            found.append(Row(load, ccid, name, *own, *ratios))
    return found


def _medians(reports: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Goodput in Mb/s and CPU time of both ends in microseconds per packet that arrived."""
    goodputs, costs = [], []
    for report in reports:
        sender, receiver = report["sender"], report["receiver"]
        goodputs.append(receiver["goodput_mbps"])
        costs.append((sender["cpu_s"] + receiver["cpu_s"]) / receiver["messages_received_unique"] * 1e6)
    return statistics.median(goodputs), statistics.median(costs)


def text(found: Sequence[Row]) -> str:
    """A table for people; Markdown."""
    lines = [
        "| load | CCID | pair | goodput Mb/s | of the kernel's | CPU us/packet (both) | of the kernel's |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.load} | {row.ccid} | {row.pair} | {row.goodput_mbps:.1f} | {row.goodput_ratio:.2f} | "
        f"{row.cpu_us_per_packet:.0f} | {row.cpu_ratio:.2f} |"
        for row in found
    ]
    return "\n".join(lines) + "\n"
