# SPDX-License-Identifier: Apache-2.0
"""Where a command writes: text for people, NDJSON for machines. Every text passes the secrets' redaction."""

from __future__ import annotations

import codecs
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from rich.console import Console

from netjoule.core import tables
from netjoule.core.errors import NetjouleError
from netjoule.core.safe_text import escaped, escaped_lines
from netjoule.core.secrets import redact
from netjoule.core.words import counted

_IN_ASCII = "netjoule-ascii"
_SIGNS = {"±": "+/-", "─": "-", "–": "-", "−": "-", "×": "x", "·": "*", "…": "...", "°": "^",
          "\u00a0": " ", "\u202f": " "}  # fmt: skip


class Output:
    """Where a command writes: people's text or machines' NDJSON on stdout, progress and errors on stderr."""

    def __init__(self, *, json_lines: bool = False) -> None:
        self.json_lines = json_lines
        # Rich leaves bold and italics on with NO_COLOR; without a colour system it sets no style at all.
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self.errors = Console(stderr=True, highlight=False, soft_wrap=True, color_system=colours)

    def say(self, text: str = "") -> None:
        """One line for people; nothing with --json."""
        if not self.json_lines:
            sys.stdout.write(escaped_lines(redact(text)) + "\n")
            sys.stdout.flush()

    def show(self, table: tables.Table) -> None:
        """A table for people, as wide as a terminal allows; nothing with --json."""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in tables.lines(_writable_table(table), width):
            self.say(line)

    def event(self, document: Mapping[str, Any]) -> None:
        """One NDJSON line for machines; nothing without --json."""
        if self.json_lines:
            sys.stdout.write(_encodable(redact(json.dumps(document, ensure_ascii=False, default=str))) + "\n")
            sys.stdout.flush()

    def error(self, text: str) -> None:
        """One line on stderr."""
        sys.stderr.write(escaped(redact(text).replace("\n", " ")) + "\n")
        sys.stderr.flush()


def write_what_can_be_written() -> None:
    """Let a text leave in the signs that the encoding (PYTHONIOENCODING) has, in ASCII's or as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_IN_ASCII)


def _as_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written for the first character that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    if sign in _SIGNS:
        return _SIGNS[sign], error.start + 1
    one = UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, error.reason)
    return codecs.backslashreplace_errors(one)


codecs.register_error(_IN_ASCII, _as_ascii)


def _writable_table(table: tables.Table) -> tables.Table:
    """The same in signs that stdout has, so that its columns are as wide as what is written."""
    encoding = sys.stdout.encoding or "utf-8"

    def written(text: str) -> str:
        return text.encode(encoding, _IN_ASCII).decode(encoding)

    columns = [replace(column, name=written(column.name)) for column in table.columns]
    rows = [[written(cell) for cell in row] for row in table.rows]
    return replace(
        table, columns=columns, rows=rows, title=written(table.title), caption=written(table.caption)
    )


def _encodable(line: str) -> str:
    """A line of JSON as stdout's encoding can have it; outside ASCII only texts have anything."""
    try:
        line.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "".join(sign if sign.isascii() else json.dumps(sign)[1:-1] for sign in line)
    return line


def describe_error(error: BaseException, *, chain: bool = False) -> Iterator[str]:
    """The one line of an error; with ``chain`` also what caused it, innermost last."""
    report = "this is a defect of netjoule, run it again with -v and report it"
    known = isinstance(error, NetjouleError)
    yield f"netjoule: {error}" if known else f"netjoule: {type(error).__name__}: {error}; {report}"
    cause = error.__cause__ or error.__context__
    while chain and cause is not None:
        yield f"  caused by {type(cause).__name__}: {cause}"
        cause = cause.__cause__ or cause.__context__


def duration_text(seconds: float) -> str:
    """A length of time for people: ``45 s``, ``6 min 30 s``, ``3 h 20 min``, ``12 days 4 h``."""
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{counted(days, 'day')} {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
