# SPDX-License-Identifier: Apache-2.0
"""Markdown for a comment or a step's summary: one line of a pass, else the figures and a plot in characters.

GitHub takes 65,536 characters in a comment, and shows no SVG there. Cells beyond `MOST_BYTES` are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from netjoule.core.safe_text import escaped
from netjoule.core.words import counted
from netjoule.gate.outputs import findings
from netjoule.gate.outputs.findings import Cell, Verdict
from netjoule.gate.outputs.interval_bars import bar, scale

MOST_BYTES = 60_000
_MOST_CHARACTERS = 300
"""Of a name or a sentence: what is longer stands whole in verdict.json."""
_MARKUP = {ord(sign): f"&#{ord(sign)};" for sign in "\\`*_[]<>&|~#$!"} | {ord("@"): "@\u200b"}
"""Signs of Markdown as entities; nobody is called by an @ in a name."""


def text(verdict: Verdict) -> str:
    """The page."""
    words = f"**{findings.title(verdict)}:** {_prose(verdict['words'])}"
    if findings.is_quiet(verdict):
        return words + "\n"
    head = "\n".join([words, "", *_about(verdict), ""])
    if not verdict["sessions"]:
        return head
    return "\n".join([head, *_figure(verdict, MOST_BYTES - len(head.encode()))]) + "\n"


def _about(verdict: Verdict) -> Iterator[str]:
    """What was asked, of what, and where."""
    margin, tolerance = verdict["margin_percent"], verdict["tolerance_percent"]
    rows = {
        "asked": f"pass below +{margin:g} %, fail above +{tolerance:g} %",
        "objective": _prose(f"{verdict['objective']} ({verdict['unit']}), power {verdict['power_source']}"),
        "workload": f"{_code(verdict['workload'])} on rig {_code(verdict['rig'])}",
        **{arm["name"]: _source(arm) for arm in verdict["arms"][:4]},
        **{f"{one['role']} session": _session(one) for one in verdict["sessions"][:4]},
        "id": _code(verdict["id"]),
    }
    yield "| | |"
    yield "| --- | --- |"
    yield from (f"| {_prose(name)} | {row} |" for name, row in rows.items() if row)


def _source(arm: Mapping[str, Any]) -> str:
    """What an arm was made from."""
    commit = f", commit {arm['commit'][:12]}" if arm["commit"] else ""
    return f"{_code(arm['text'])} ({arm['kind']}{_prose(commit)})"


def _session(session: Mapping[str, Any]) -> str:
    of_blocks = (
        f"{session['verdict']} after {findings.blocks(session)} of at most {session['blocks_max']} blocks"
    )
    change = findings.percent(session["ratio"])
    return f"{of_blocks}: {change}, interval {findings.range_of_ratio(session)}" if change else of_blocks


def _figure(verdict: Verdict, room: int) -> Iterator[str]:
    """Decision, anchor and as many cells as there is room for (bytes), each with its interval."""
    cells = findings.worst_first(findings.cells(verdict))
    common = findings.in_common(cells)
    margin = verdict["margin_percent"] / 100
    end = scale([verdict, *(cell for cell in cells if cell["method"] == "ratio")], margin)
    drawn = f"-{100 * end:g} % · 0 · +{100 * end:g} %"
    yield f"| cell | {drawn} | change | interval | blocks | |"
    yield "| --- | --- | ---: | --- | ---: | --- |"
    session = findings.deciding(verdict)
    blocks = findings.blocks(session) if session else 0
    yield _ratio_row("**decision**", verdict, bar(verdict, margin, end), str(blocks))
    if verdict["anchor"]:
        yield _ratio_row("**against the anchor**", verdict["anchor"], bar(verdict["anchor"], margin, end), "")
    for number, cell in enumerate(cells):
        row = _cell_row(findings.cell_name(cell, common), cell, bar(cell, margin, end))
        room -= len(row.encode()) + 1
        if room < 0:
            yield from ["", _rest(cells[number:])]
            break
        yield row
    yield ""
    yield (
        f"● in its interval, │ no change, ╎ margin (+{100 * margin:g} %). The decision's interval is"
        " a repeated one; those of cells are 95 % and decide nothing."
    )


def _ratio_row(name: str, part: Mapping[str, Any], drawn: str, blocks: str) -> str:
    figures = f"{findings.percent(part['ratio'])} | {findings.range_of_ratio(part)}"
    return f"| {name} | `{drawn}` | {figures} | {blocks} | {part['verdict']} |"


def _cell_row(name: str, cell: Cell, drawn: str) -> str:
    verdict = cell["verdict"].replace("_", " ")
    words = f"{verdict}: {_prose(cell['reason'])}" if cell["reason"] else verdict
    figures = f"{findings.change(cell)} | {findings.interval(cell)} | {cell['blocks']}"
    return f"| {_code(name)} | `{drawn}` | {figures} | {words} |"


def _rest(cells: list[Cell]) -> str:
    """How many cells there was no room for, by verdict."""
    kinds = Counter(cell["verdict"].replace("_", " ") for cell in cells)
    return f"And {counted(len(cells), 'cell')} more: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}."


def _prose(text_: str) -> str:
    return _short(escaped(text_)).translate(_MARKUP)


def _code(name: str) -> str:
    """A name in code, where nothing in it is markup; a bar would end the table's cell even there."""
    return f"`{_short(escaped(name)).replace('`', 'ˋ').replace('|', '¦')}`" if name else ""


def _short(text_: str) -> str:
    return text_ if len(text_) <= _MOST_CHARACTERS else f"{text_[: _MOST_CHARACTERS - 1]}…"
