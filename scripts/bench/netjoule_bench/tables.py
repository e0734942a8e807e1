# SPDX-License-Identifier: Apache-2.0
"""A bench's outcome as text for the terminal and as Markdown for the docs; which of its limits hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

T = TypeVar("T")

_VERDICT_COLUMNS = ["what", "target", "measured", "verdict"]
_SUMMARY = "What must hold"


@dataclass(frozen=True)
class Verdict:
    """One limit and what was measured; ``passed`` None: it cannot be judged (``measured`` says why),
    which counts as a miss."""

    what: str
    limit: str
    measured: str
    passed: bool | None

    @property
    def word(self) -> str:
        """met, NOT met or "not judged"."""
        return {True: "met", False: "NOT met", None: "not judged"}[self.passed]


def told(absent: Mapping[str, str]) -> str:
    """A sentence for each generator that did not take part."""
    return "".join(f" No {name}: {why}." for name, why in absent.items())


def at_most(what: str, value: float | None, limit: float, form: str = "{:.2f}") -> Verdict:
    """A figure that may not exceed ``limit``."""
    return _judged(what, value, f"<= {form.format(limit)}", form, lambda known: known <= limit)


def at_least(what: str, value: float | None, limit: float, form: str = "{:.2f}") -> Verdict:
    """A figure that may not fall below ``limit``."""
    return _judged(what, value, f">= {form.format(limit)}", form, lambda known: known >= limit)


def _judged(what: str, value: float | None, limit: str, form: str, good: Callable[[float], bool]) -> Verdict:
    if value is None:
        return Verdict(what, limit, "not told", None)
    return Verdict(what, limit, form.format(value), good(value))


@dataclass(frozen=True)
class Section:
    """One table with its title, its note and the limits it is held to.

    ``passed`` is for a bench whose rows all have one limit: None where none is set.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str
    passed: bool | None = None
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def missed(self) -> bool:
        """Whether a limit does not hold, or a figure that has one is missing."""
        return self.passed is False or any(verdict.passed is not True for verdict in self.verdicts)

    def with_absent(self, absent: Mapping[str, str]) -> Section:
        """The section with an empty row for each generator that did not take part, and why."""
        empty = ["-"] * (len(self.columns) - 1)
        rows = [[name, *empty] for name in absent]
        return replace(self, rows=[*self.rows, *rows], note=self.note + told(absent))


def by_arm(
    title: str,
    taken: Mapping[str, T],
    columns: Mapping[str, Callable[[T], str]],
    *,
    note: str,
    arms: str = "generator",
    passed: bool | None = None,
    verdicts: Iterable[Verdict] = (),
) -> Section:
    """A section with a row per arm: under each head of ``columns`` what that shows of the arm's rounds."""
    rows = [[name, *(show(rounds) for show in columns.values())] for name, rounds in taken.items()]
    return Section(title, [arms, *columns], rows, note, passed, list(verdicts))


def text(section: Section) -> str:
    """The section with aligned columns."""
    lines = ["", section.title, *_aligned([section.columns, *section.rows]), section.note]
    if section.verdicts:
        lines += _aligned([_VERDICT_COLUMNS, *map(_cells, section.verdicts)])
    return "\n".join(lines + _verdict_of_all(section))


def _aligned(table: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]


HEAD = """# Benchmarks

Written by `make bench`. Ratios of one run are what counts; absolute figures belong to the machine and commit
that each table names.

At a window of 50 us the sender is held to a bare loop over two alarms and to the fewest wake-ups, no longer
to 0.9 of iperf3's CPU, which a virtual machine's timer puts out of reach; against iperf3 it is held where
both are equally late (p99 on the wire, iperf3 3.18), with GSO and without.
"""


def markdown(sections: list[Section], host: str, page: str = "") -> str:
    """The page docs/benchmarks.md: ``page`` with ``sections`` put in their places, new ones at the end.

    The table of all limits stands first. It is made from the page's own tables, so it says what they say.
    """
    return _page(_blocks(page) | {section.title: _block(section, host) for section in sections})


def pruned(page: str, titles: Collection[str]) -> str:
    """The page without tables of other titles: benches that there are no longer."""
    return _page({title: block for title, block in _blocks(page).items() if title in titles})


def _blocks(page: str) -> dict[str, str]:
    """Tables of the page by title, without that of all limits."""
    blocks = {part.split("\n", 1)[0]: part.strip() for part in page.split("\n## ")[1:]}
    blocks.pop(_SUMMARY, None)
    return blocks


def _page(blocks: Mapping[str, str]) -> str:
    return HEAD + "".join(f"\n## {block}\n" for block in [*_summary(blocks.values()), *blocks.values()])


def _block(section: Section, host: str) -> str:
    lines = [section.title, "", *_table(section.columns, section.rows), "", section.note]
    if section.verdicts:
        lines += ["", *_table(_VERDICT_COLUMNS, map(_cells, section.verdicts))]
    return "\n".join([*lines, *_verdict_of_all(section), "", host])


def _table(columns: list[str], rows: Iterable[list[str]]) -> list[str]:
    ruler = "|" + " --- |" * len(columns)
    return [_row(columns), ruler, *(_row(row) for row in rows)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(verdict: Verdict) -> list[str]:
    return [verdict.what, verdict.limit, verdict.measured, verdict.word]


def _summary(blocks: Iterable[str]) -> list[str]:
    rows = [row for block in blocks for row in _verdict_rows(block)]
    return ["\n".join([_SUMMARY, "", *_table(_VERDICT_COLUMNS, rows)])] if rows else []


def _verdict_rows(block: str) -> list[list[str]]:
    """Rows of the table of limits in a section's Markdown."""
    head = re.escape("\n".join(_table(_VERDICT_COLUMNS, [])))
    found = re.search(rf"{head}\n((?:\|.*\|\n?)*)", block)
    lines = found.group(1).splitlines() if found else []
    return [line.strip("| ").split(" | ") for line in lines]


def _verdict_of_all(section: Section) -> list[str]:
    if section.passed is None:
        return []
    return ["All rows are within the limit." if section.passed else "NOT all rows are within the limit."]
