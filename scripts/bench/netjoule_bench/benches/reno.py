# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel's Reno over a router of the running link fares as the simulator says."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_bench.repeats import shown
from netjoule_bench.tables import Section, Verdict, at_most

RUNS = 5
MOST_RATE_MBPS, MOST_RATE_FAST_MBPS = 0.3, 0.6
"""Of the mean service rate; the second where the router is asked as often as a round trip takes."""
MOST_POINTS = 3.0
_FAST = ("rtt-10", "practra-10")
_PATHS, _WAYS = ("rtt-10", "rtt-100"), ("practra-10", "practra-1000")
_KERNEL, _MODEL, _DELAYED = "kernel", "model", "delayed"
_SIMULATED = {"delayed_acks": False, "initial_window": 10, "interval_s": 20}
_TWO_MODELS = ("simulated", "delayed")
# Linux counts segments: what is held to the limits acknowledges each. Yet its receiver delays them.
_OF_FLOW: dict[str, dict[str, Any]] = {
    _KERNEL: {},
    _MODEL: {"simulated": _SIMULATED},
    _DELAYED: {"simulated": _SIMULATED | {"delayed_acks": True}},
}


@dataclass(frozen=True)
class Fared:
    """Mean service rate, Mb/s, and goodput's difference from no scaling, %."""

    rate_mbps: float
    difference_percent: float


def section(repo: Path, *, quick: bool) -> Section:
    """Campaigns of one workload, on the emulated link and in simulated time."""
    runs = 2 if quick else RUNS
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)
        found = {
            which: _campaign(repo, which, Path(name), runs if which == _KERNEL else 2 * RUNS, quick=quick)
            for which in (_MODEL, _DELAYED, _KERNEL)
        }
    cells = sorted(found[_KERNEL])
    rows = [
        [
            ", ".join(cell),
            *(shown(found[which][cell].rate_mbps) for which in _OF_FLOW),
            *(shown(found[which][cell].difference_percent, ".1f") for which in _OF_FLOW),
        ]
        for cell in cells
    ]
    return Section(
        "The kernel's Reno over a router of the running link, and the simulator's",
        ["path, scaling", "rate Mb/s", *_TWO_MODELS, "goodput %", *_TWO_MODELS],
        rows,
        f"{runs} flows each, 20 to 120 s; goodput: difference from no scaling in the same mini-block. The "
        "link is a model, the kernel real; offloads are off. Linux' Reno counts segments: the simulator "
        "acknowledges each, and the limits are for that; but Linux' receiver delays acknowledgements, as the "
        "simulator's does in the other column.",
        verdicts=[v for cell in cells for v in _verdicts(cell, found[_KERNEL][cell], found[_MODEL][cell])],
    )


def _verdicts(cell: tuple[str, str], kernel: Fared, model: Fared) -> list[Verdict]:
    most = MOST_RATE_FAST_MBPS if cell == _FAST else MOST_RATE_MBPS
    name = ", ".join(cell)
    points = abs(kernel.difference_percent - model.difference_percent)
    return [
        at_most(f"service rate apart, Mb/s: {name}", abs(kernel.rate_mbps - model.rate_mbps), most),
        at_most(f"goodput's difference apart, points: {name}", points, MOST_POINTS),
    ]


def _campaign(
    repo: Path, which: str, folder: Path, blocks: int, *, quick: bool
) -> dict[tuple[str, str], Fared]:
    """By path and way of scaling. Raises CalledProcessError when the campaign fails."""
    is_real = which == _KERNEL
    workload = {
        "schema_version": 2,
        "name": "reno",
        "load": "flow",
        "arm": "scaling",
        "control": False,
        "factors": {
            "scaling": ["none", *_WAYS],
            "path": list(_PATHS),
            "transport": "tcp",
            "payload_bytes": 1460,
            "offered_rate_mbps": 20,
        },
        "blocks": blocks,
        "timing": {
            "idle_s": 1,
            "settle_s": 0.2,
            "warm_up_s": 20,
            "tail_s": 0.3,
            "measure_s": 20 if quick and is_real else 100,
        },
        "flow": {"transport_options": {"tcp": {"congestion_control": "reno"}}} | _OF_FLOW[which],
    }
    file, out = folder / f"{which}.yaml", folder / which
    file.write_text(json.dumps(workload))  # JSON is YAML, too
    name = "troubled-marriage" if is_real else "troubled-marriage-simulated"
    where = repo / "testbed" / "topologies" / f"{name}.yaml"
    argv = [sys.executable, "-m", "netjoule", "run", str(file), "--testbed", str(where), "--out", str(out)]
    # Flows of 10 Mb/s mostly wait: several at once take no time from each other.
    argv += ["--seed", "2016", *(["--rigs", str(min(blocks, RUNS))] if is_real else [])]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rates = {_cell(row): float(row["service_rate_mbps"]) for row in _table(out, "energy_summary")}
    goodput = {
        _cell(row): float(row["difference_percent"])
        for row in _table(out, "measure_contrasts")
        if row["measure"] == "t_a_mbps"
    }
    return {cell: Fared(rates[cell], percent) for cell, percent in goodput.items()}


def _cell(row: Mapping[str, str]) -> tuple[str, str]:
    return row["path"], row.get("scaling") or row["arm"]


def _table(campaign: Path, name: str) -> list[dict[str, str]]:
    with (campaign / "tables" / f"{name}.csv").open(newline="") as table:
        return list(csv.DictReader(table))
