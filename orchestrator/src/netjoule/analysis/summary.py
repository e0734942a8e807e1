# SPDX-License-Identifier: Apache-2.0
"""What ``demo`` and ``analyse`` print: E_A and the pacer's verdict from R's tables, grades, warnings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from netjoule.analysis.energy_table import ENERGY_FILE, energy_tables
from netjoule.analysis.excluded_runs import exclusion_line, valid_results
from netjoule.analysis.floor_warnings import FLOOR_WAKE_UPS_DIFFER, floor_warnings, wake_ups_line
from netjoule.core import files
from netjoule.core.console import Output
from netjoule.core.energy_cells import Row, number
from netjoule.core.words import counted
from netjoule.loads import own_tables

VERDICT_FILE = "tables/pacer_verdict.csv"
"""The pacer's verdict, of a campaign that did both spin and sleep."""
FAIRNESS_FILE = "tables/fairness.csv"
"""Fairness per cell, of a campaign with several flows at once."""
ARM_CONTRASTS_FILE = "tables/arm_contrasts.csv"
"""Arms compared over all cells, of a load without a file of its own in R."""
CONTRASTS_FILE = "tables/contrasts.csv"
"""Transports compared over all loads, the main comparisons first, of a campaign with E_A."""

_LIMITS = {
    "wide": "u95 over 5 %",
    "few_readings": "under 10 readings in a window",
    "accuracy_unknown": "accuracy of the meter unknown",
    "accuracy_provisional": "accuracy of the meter provisional",
    "apparent_power": "apparent power, not active",
}
"""What keeps a meter's runs from a better grade, in words; the codes of contract result."""


def tell(campaign: Path, output: Output) -> None:
    """Print E_A of an analysed campaign, what is to be known of it, and its files.

    Args:
        campaign: its folder.
        output: takes words and events.

    Raises:
        InvalidData: when there is no table to tell of.
    """
    if energy := rows_of(campaign, ENERGY_FILE):
        _tell_energy(campaign, energy, output)
    else:
        _tell_own(campaign, own_tables(), output)
    _tell_files(campaign, output)


def _tell_energy(campaign: Path, rows: list[dict[str, str]], output: Output) -> None:
    """Of a load that has no file of its own in R."""
    for table in energy_tables(rows):
        output.show(table)
    if line := exclusion_line(campaign):
        output.error(line)
    for line in grade_lines(campaign):
        output.say(line)
    for row in rows:
        output.event({"event": "energy", **typed(row)})
    for row in rows_of(campaign, ARM_CONTRASTS_FILE):
        output.say(row["words"])
        output.event({"event": "contrast", **typed(row)})


def _tell_own(campaign: Path, own: Any, output: Output) -> None:
    """Of a load with tables of its own: E_A, the pacer's verdict, fairness and contrasts."""
    rows = own.summary_rows(campaign)
    for table in own.summary_tables(rows):
        output.show(table)
    if line := exclusion_line(campaign):
        output.error(line)
    for line in [*own.outside_lines(rows), *grade_lines(campaign)]:
        output.say(line)
    for warning in floor_warnings(campaign):
        if warning["code"] == FLOOR_WAKE_UPS_DIFFER:  # the table has the other
            output.say(wake_ups_line(warning))
        output.event({"event": "warning", **warning})
    verdicts = rows_of(campaign, VERDICT_FILE)
    for words in dict.fromkeys(row["words"] for row in verdicts):
        output.say(words)
    for row in verdicts:
        output.event({"event": "pacer_verdict", **typed(row)})
    for row in rows_of(campaign, FAIRNESS_FILE):
        output.say(own.fairness_line(row))
        output.event({"event": "fairness", **typed(row)})
    for row in rows_of(campaign, CONTRASTS_FILE):
        if row["words"] and row["inference"] != "intervals_only":
            output.say(row["words"])
        output.event({"event": "contrast", **typed(row)})
    for row in rows:
        output.event({"event": "ea", **typed(row)})


def _tell_files(campaign: Path, output: Output) -> None:
    """Name what was made: to people by folder, to machines file by file."""
    made = made_files(campaign)
    if figures := [path for path in made if path.suffix == ".svg"]:
        output.say(f"{counted(len(figures), 'figure')}: {campaign / 'figures'}")
    for path in made:
        if path not in figures:
            output.say(f"report: {path}")
        output.event({"event": "file", "path": str(path)})


def rows_of(campaign: Path, table: str) -> list[dict[str, str]]:
    """Rows of a table that R writes only where it has something to say; none without one."""
    path = campaign / table
    return files.read_rows(path) if path.is_file() else []


def grade_lines(campaign: Path) -> list[str]:
    """How far each meter's readings carry: its runs by grade, and what keeps them from a better one."""
    grades: dict[str, Counter[str]] = {}
    limits: dict[str, Counter[str]] = {}
    folders = {path.name: path for where in ("", "blocks/*/") for path in campaign.glob(f"{where}runs/*")}
    for result in valid_results(campaign, (folders[name] for name in sorted(folders))).values():
        for node in result.nodes:
            if node.grade is not None:
                grades.setdefault(node.meter_id, Counter())[node.grade] += 1
                limits.setdefault(node.meter_id, Counter()).update(node.grade_limits or ())
    return [_grade_line(meter_id, count, limits[meter_id]) for meter_id, count in grades.items()]


def _grade_line(meter_id: str, count: Counter[str], limits: Counter[str]) -> str:
    runs = ", ".join(f"{n} x {grade.replace('_', ' ')}" for grade, n in sorted(count.items()))
    why = ", ".join(_LIMITS.get(name, name.replace("_", " ")) for name, _ in limits.most_common())
    return f"grade of meter {meter_id}: {runs}" + (f"; a better grade is ruled out by: {why}" if why else "")


def typed(row: Row) -> dict[str, str | float | bool | None]:
    """A row for machines: numbers as numbers, empty cells as null."""
    words: dict[str, bool | None] = {"": None, "NA": None}
    words |= {"TRUE": True, "true": True, "FALSE": False, "false": False}

    def value(cell: str) -> str | float | bool | None:
        found = number(cell)
        return words.get(cell, cell if found is None else found)

    return {name: value(cell) for name, cell in row.items()}


def made_files(campaign: Path) -> list[Path]:
    """Figures (SVG) and the report that exist, the report last."""
    figures = sorted((campaign / "figures").glob("*.svg"))
    report = campaign / "report.html"
    return [*figures, *([report] if report.is_file() else [])]
