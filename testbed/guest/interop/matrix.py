# SPDX-License-Identifier: Apache-2.0
"""A whole matrix: run, compared, run again where chance decides, written down."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cells import Cell, compared
from guest_run import Flow, run_cells
from host_programs import commit
from judge import Comparison, compare
from table import document, page, verdict

RunCells = Callable[[Sequence[Cell], Path], list[Flow]]

_MORE = 4
"""Flows added to each pair of a path whose ratio is outside its limits, before it is judged."""


def run_matrix(
    cells: Sequence[Cell], folder: Path, run: RunCells = run_cells
) -> tuple[list[Flow], list[Comparison]]:
    """All cells; paths where a pair is below or above its limit get four more flows of each pair.

    Args:
        cells: what to run.
        folder: new folder for accounts and captures.
        run: runs a list of cells in one guest.
    """
    flows = run(cells, folder / "first")
    comparisons = compare({flow.cell: flow.goodput_mbps for flow in flows})
    more = [cell for comparison in comparisons if _undecided(comparison) for cell in _added(comparison)]
    if more:
        flows += run(more, folder / "more")
        comparisons = compare({flow.cell: flow.goodput_mbps for flow in flows})
    return flows, comparisons


def _undecided(comparison: Comparison) -> bool:
    return bool(comparison.low() or comparison.high())


def _added(comparison: Comparison) -> list[Cell]:
    path = (comparison.ip_version, comparison.ccid, comparison.loss_percent)
    return list(compared(*path, _MORE, first=max(comparison.counts.values())))


def write(flows: Sequence[Flow], comparisons: Sequence[Comparison], text: Path, data: Path) -> list[str]:
    """Write the page and the JSON document; what is not as it must be."""
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "host": _host(),
        "kernel": flows[0].kernel,
    }
    text.write_text(page(flows, comparisons, about))
    data.write_text(json.dumps(document(flows, comparisons, about), indent=1) + "\n")
    return verdict(flows, comparisons)


def _host() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"host {found[1] if found else platform.machine()}, Linux {platform.release()}"
