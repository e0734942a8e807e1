# SPDX-License-Identifier: Apache-2.0
"""A verdict for the terminal: one line of a pass; else each session, too, and the table of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from netjoule.core.safe_text import escaped
from netjoule.core.tables import Column, Table
from netjoule.gate.outputs import findings
from netjoule.gate.outputs.findings import Cell, Verdict

if TYPE_CHECKING:
    from netjoule.core.console import Output


def tell(verdict: Verdict, output: Output) -> None:
    """Say it: lines, then its table."""
    for line in lines(verdict):
        output.say(line)
    table = ranking(verdict) if verdict["pilot"] else cells(verdict)
    if table:
        output.say()
        output.show(table)


def lines(verdict: Verdict) -> Iterator[str]:
    """The verdict in one sentence, and unless it is a pass by which sessions."""
    yield escaped(verdict["words"])
    if findings.is_quiet(verdict):
        return
    for session in verdict["sessions"]:
        yield (
            f"{session['role']} session ({session['campaign']}): {session['verdict']} after"
            f" {findings.blocks(session)} of at most {session['blocks_max']} blocks{_ratio(session)}"
        )
    if verdict["anchor"]:
        yield f"anchor: {escaped(verdict['anchor']['words'])}"


def _ratio(session: Mapping[str, Any]) -> str:
    change = findings.percent(session["ratio"])
    return f", {change} ({findings.range_of_ratio(session)})" if change else ""


def cells(verdict: Verdict) -> Table | None:
    """Cells of the session that decided; none of a pass."""
    found = findings.cells(verdict)
    if findings.is_quiet(verdict) or not found:
        return None
    title = f"Cells: {verdict['objective']} of the head against the base, power {verdict['power_source']}"
    return cell_table(found, title)


def cell_table(found: Sequence[Cell], title: str) -> Table:
    """Cells with their change, as any comparison of two arms has them.

    Args:
        found: cells as gate_verdict.schema.json has them.
        title: of the table.
    """
    common = findings.in_common(found)
    return Table(
        [
            Column("cell", right=False, key=True),
            Column("change"),
            Column("95 % interval"),
            Column("p (Holm)"),
            Column("blocks"),
            Column("", right=False, text=True),
        ],
        [
            [
                findings.cell_name(cell, common),
                findings.change(cell),
                findings.interval(cell),
                "" if cell["p_holm"] is None else f"{cell['p_holm']:.2g}",
                str(cell["blocks"]),
                escaped(cell["reason"]) or cell["verdict"].replace("_", " "),
            ]
            for cell in found
        ],
        title=title,
        caption="Shown, not decided upon.",
    )


def ranking(verdict: Verdict) -> Table | None:
    """Cells and windows of a pilot by how soon a gate over each alone would be done."""
    found = verdict["pilot"]["ranking"]
    if not found:
        return None
    common = findings.in_common(found)
    return Table(
        [
            Column("cell", right=False, key=True),
            Column("window"),
            Column("sd of a block"),
            Column("blocks needed"),
            Column("time"),
        ],
        [
            [
                findings.cell_name(cell, common),
                "until done" if cell["measure_s"] is None else f"{cell['measure_s']:g} s",
                "" if cell["log_ratio_sd"] is None else f"{100 * cell['log_ratio_sd']:.1f} %",
                "over 1000" if cell["blocks_needed"] is None else str(cell["blocks_needed"]),
                "" if cell["seconds_needed"] is None else f"{cell['seconds_needed'] / 60:.0f} min",
            ]
            for cell in found
        ],
        title=f"Cells and windows by how soon a gate at +{verdict['margin_percent']:g} % of each alone ends",
    )
