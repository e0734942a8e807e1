# SPDX-License-Identifier: Apache-2.0
"""A bench's outcome as text for the terminal and as Markdown for the docs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """One table with its title and note; ``passed`` is None where no limit is set."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str
    passed: bool | None = None


def text(section: Section) -> str:
    """The section with aligned columns."""
    table = [section.columns, *section.rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(section.columns))]
    lines = ["", section.title]
    for row in table:
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells))
    lines.append(section.note)
    return "\n".join(lines + _verdict(section))


HEAD = """# Benchmarks

Written by `make bench`. Ratios of one run are what counts; absolute figures belong to the machine and commit
that each table names.
"""


def markdown(sections: list[Section], host: str, page: str = "") -> str:
    """The page docs/benchmarks.md: ``page`` with ``sections`` put in their places, new ones at the end."""
    blocks = {part.split("\n", 1)[0]: part.strip() for part in page.split("\n## ")[1:]}
    blocks |= {section.title: _block(section, host) for section in sections}
    return HEAD + "".join(f"\n## {block}\n" for block in blocks.values())


def _block(section: Section, host: str) -> str:
    lines = [section.title, "", "| " + " | ".join(section.columns) + " |"]
    lines.append("|" + " --- |" * len(section.columns))
    lines += ["| " + " | ".join(row) + " |" for row in section.rows]
    return "\n".join([*lines, "", section.note, *_verdict(section), "", host])


def _verdict(section: Section) -> list[str]:
    if section.passed is None:
        return []
    return ["All rows are within the limit." if section.passed else "NOT all rows are within the limit."]
