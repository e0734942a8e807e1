# SPDX-License-Identifier: Apache-2.0
"""What analysing the whole table-i shape takes, from raw files: time and peak memory, on a campaign whose
truth is known, and how far what R finds is from that truth.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netjoule.analysis import analysis
from netjoule.core import programs
from netjoule.core.errors import NetjouleError
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.tables import Section, at_least, at_most
from netjoule_synthetic import Cell, Design, cells, table_i, write

MOST_S = 60.0
MOST_MB = 2000.0
QUICK_BLOCKS = 2
_LEAST_FREE_BYTES = 6 * 10**9
_STREAM_BYTES = 6 * 10**9
_LONGEST_S = 7200.0


@dataclass(frozen=True)
class Taken:
    """Wall-clock and CPU seconds of a program, and the most memory that it had at once, in MB."""

    wall_s: float
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True)
class Found:
    """E_A of R against the truth: cells, the greatest relative error of their means, and the share of cells
    whose 95 % interval holds the truth."""

    cells: int
    greatest_error: float
    covered: float


def section(repo: Path, *, quick: bool, device_stream: bool = False) -> Section:
    """Write the campaign, analyse it twice with report, and compare with the truth.

    With `device_stream` the analysis also draws the parameters of each meter's device model.

    Raises:
        RuntimeError: when the disk is too small, or R fails.
    """
    blocks = {"blocks": QUICK_BLOCKS} if quick else {}
    design = table_i(device_stream=device_stream, **blocks)
    least_free = _LEAST_FREE_BYTES + (_STREAM_BYTES if device_stream else 0)
    scratch = repo / ".setup"
    scratch.mkdir(exist_ok=True)
    free = shutil.disk_usage(scratch).free
    if free < least_free:
        wanted = f"{least_free / 1e9:.0f}"
        raise RuntimeError(f"{scratch} has {free / 1e9:.1f} GB free; {wanted} are needed")
    with tempfile.TemporaryDirectory(dir=scratch, prefix="synthetic-") as name:
        folder = Path(name) / "table-i"
        try:
            began = time.monotonic()
            write(folder, design)
            wrote_s = time.monotonic() - began
            first = analysed(folder)
            again = analysed(folder)
        except NetjouleError as error:
            raise RuntimeError(str(error)) from error
        with (folder / "tables" / "ea_summary.csv").open(newline="", encoding="utf-8") as table:
            found = compared(list(csv.DictReader(table)), cells(design))
        size_gb = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9
    return judged(design, wrote_s, size_gb, first=first, again=again, found=found)


def analysed(folder: Path) -> Taken:
    """Run the analysis with report over a campaign.

    Raises:
        RuntimeError: when it fails.
    """
    script = str(analysis.script())
    command = [*programs.rscript(), script, str(folder), "--report", "--json"]
    environment = analysis.environment(os.environ)
    began = time.monotonic()
    with Running(None, command, longest_s=_LONGEST_S, environment=environment) as process:
        ended = process.finish()
    return Taken(time.monotonic() - began, ended.cpu_s, ended.peak_mb)


def compared(rows: Sequence[dict[str, str]], truth: Sequence[Cell]) -> Found:
    """R's table ea_summary against the truth.

    Raises:
        RuntimeError: when a cell has no E_A.
    """
    by_cell = {_key(row): row for row in rows}
    errors, inside = [], 0
    for cell in truth:
        row = by_cell.get((cell.meter_id, cell.transport, cell.payload_bytes, cell.offered_rate_mbps))
        if row is None or not row["ea_j_per_mbit_mean"]:
            raise RuntimeError(f"the analysis has no E_A of {cell}")
        errors.append(abs(float(row["ea_j_per_mbit_mean"]) / cell.ea_j_per_mbit - 1))
        inside += float(row["ea_ci95_low"]) <= cell.ea_j_per_mbit <= float(row["ea_ci95_high"])
    return Found(len(errors), max(errors), inside / len(errors))


def _key(row: dict[str, str]) -> tuple[str, str, int, float]:
    return row["meter_id"], row["transport"], int(row["payload_bytes"]), float(row["offered_rate_mbps"])


def judged(
    design: Design, wrote_s: float, size_gb: float, *, first: Taken, again: Taken, found: Found
) -> Section:
    """The section: what each step took, and the limits."""
    hours = design.runs * design.timing.run_s / 3600
    streams = " and of their device models' terms" if design.device_stream else ""
    case = "with device streams" if design.device_stream else "without device streams"
    rows = [
        ["write the campaign", f"{wrote_s:.0f}", "-", "-"],
        *(
            [name, f"{taken.wall_s:.1f}", f"{taken.cpu_s:.1f}", f"{taken.peak_mb:,.0f}"]
            for name, taken in (("first analysis", first), ("analysis with the per-run pass kept", again))
        ),
    ]
    return Section(
        title="Analysis of a whole table-i campaign from raw files"
        + (", with device streams" if design.device_stream else ""),
        columns=["step", "wall s", "CPU s", "peak MB"],
        rows=rows,
        note=f"Synthetic campaign of {design.runs:,} runs ({'+'.join(design.transports)}), {hours:.0f} h of "
        f"power at 10 Hz from {len(design.meters)} meters{streams}, {size_gb:.1f} GB in files that were just "
        "written. The per-run pass reads run.json, flow.json, intervals.csv and result.json of each run; the "
        "second analysis takes it from tables/.per-run-pass and reads every log of power and radio again. "
        "Both make all tables, figures and the report, and recompute every run. Peak: greatest resident "
        f"memory of R, mapped files included. E_A of {found.cells} cells differs from the truth by "
        f"{100 * found.greatest_error:.2f} % at most; {100 * found.covered:.0f} % of the 95 % intervals hold "
        "it (block effects are common to all cells of a meter, so the intervals miss together).",
        verdicts=[
            at_most(f"analysis {case}: s beyond the first per-run pass", again.wall_s, MOST_S, "{:.1f}"),
            at_most(f"analysis {case}: peak memory beyond it, MB", again.peak_mb, MOST_MB, "{:.0f}"),
            at_most(f"analysis {case}: peak memory with it, MB", first.peak_mb, MOST_MB, "{:.0f}"),
            at_least(f"analysis {case}: share of intervals that hold the true E_A", found.covered, 0.8),
        ],
    )
