# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal, pure: nothing in them is ever cut.

Where the terminal is too narrow, headings fold at their spaces, then columns are stacked: parts below each
other, each beginning with the columns that name a row. Where not even one column fits beside these, a row
becomes lines of its own. Without a width (a pipe, a file) a table is as wide as it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

_GAP = "  "
_LEAST_TEXT = 12
"""Characters that a column of words keeps before columns are stacked."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: its heading.
        right: figures, at the right edge.
        key: names the row, so that it stands in every part.
        text: words, which may fold.
    """

    name: str
    right: bool = True
    key: bool = False
    text: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a row without cells is an empty line between groups."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    title: str = ""
    caption: str = ""


def lines(table: Table, width: int | None) -> Iterator[str]:
    """The table, line by line, of at most `width` characters where its longest cell is shorter.

    Args:
        table: to be printed.
        width: of the terminal, in characters; None where there is none.
    """
    yield from _wrapped(table.title, width)
    if width is None or _least(table, range(len(table.columns)), folded=False) <= width:
        yield from _grid(table, range(len(table.columns)), width, folded=False)
    elif parts := _parts(table, width):
        for number, part in enumerate(parts):
            yield from [""] * (number > 0)
            yield from _grid(table, part, width, folded=True)
    else:
        yield from _records(table, width)
    yield from _wrapped(table.caption, width)


def _parts(table: Table, width: int) -> list[list[int]]:
    """Columns by part, those that name a row in each; none when a part cannot hold even one more."""
    keys = [place for place, column in enumerate(table.columns) if column.key]
    parts: list[list[int]] = []
    for place, column in enumerate(table.columns):
        if column.key:
            continue
        if parts and _least(table, [*parts[-1], place], folded=True) <= width:
            parts[-1].append(place)
        elif _least(table, [*keys, place], folded=True) <= width:
            parts.append([*keys, place])
        else:
            return []
    return parts


def _needs(table: Table, place: int, *, folded: bool) -> int:
    """Characters of a column's longest line; a heading that folds needs its longest word."""
    name = table.columns[place].name
    cells = [row[place] for row in table.rows if row]
    return max(map(cell_len, [*(name.split() if folded else [name]), *cells]), default=0)


def _may_shrink_to(table: Table, place: int, *, folded: bool) -> int:
    """Characters that a column keeps: all of figures, the longest word of words."""
    needed = _needs(table, place, folded=folded)
    if not table.columns[place].text:
        return needed
    longest = max((cell_len(word) for row in table.rows if row for word in row[place].split()), default=0)
    return min(needed, max(longest, _LEAST_TEXT))


def _least(table: Table, places: Sequence[int], *, folded: bool) -> int:
    """Characters that columns need side by side, words folded as far as they may be."""
    least = [_may_shrink_to(table, place, folded=folded) for place in places]
    return sum(least) + len(_GAP) * (len(least) - 1)


def _grid(table: Table, places: Sequence[int], width: int | None, *, folded: bool) -> Iterator[str]:
    columns = [table.columns[place] for place in places]
    widths = [_needs(table, place, folded=folded) for place in places]
    excess = 0 if width is None else sum(widths) + len(_GAP) * (len(widths) - 1) - width
    for index, place in enumerate(places):
        if excess > 0:
            kept = max(_may_shrink_to(table, place, folded=folded), widths[index] - excess)
            excess -= widths[index] - kept
            widths[index] = kept
    headings = [_folded(column.name, wide) for column, wide in zip(columns, widths, strict=True)]
    deepest = max(map(len, headings))
    yield from _side_by_side([[""] * (deepest - len(one)) + one for one in headings], columns, widths)
    yield "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    for row in table.rows:
        if row:
            cells = [_folded(row[place], wide) for place, wide in zip(places, widths, strict=True)]
            yield from _side_by_side(cells, columns, widths)
        else:
            yield ""


def _folded(cell: str, width: int) -> list[str]:
    return [cell] if cell_len(cell) <= width else _wrapped(cell, width)


def _side_by_side(
    cells: Sequence[Sequence[str]], columns: Sequence[Column], widths: Sequence[int]
) -> Iterator[str]:
    """The lines of a row whose cells have several."""
    for number in range(max(map(len, cells))):
        line = []
        for cell, column, width in zip(cells, columns, widths, strict=True):
            text = cell[number] if number < len(cell) else ""
            space = " " * (width - cell_len(text))
            line.append(space + text if column.right else text + space)
        yield _GAP.join(line).rstrip()


def _records(table: Table, width: int) -> Iterator[str]:
    """Each row as lines ``heading: cell``."""
    for number, row in enumerate(row for row in table.rows if row):
        yield from [""] * (number > 0)
        for column, cell in zip(table.columns, row, strict=True):
            yield from _wrapped(f"{column.name}: {cell}", width)


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text] if text else []
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False)
