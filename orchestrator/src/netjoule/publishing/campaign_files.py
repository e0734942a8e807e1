# SPDX-License-Identifier: Apache-2.0
"""The files of a campaign that a bundle holds, each read and written with its texts passed through a visitor.

Only files that a contract describes go into a bundle. What R makes of them is made again by one command, and
captures hold addresses, so they take part only where these are kept.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import InvalidData, file_errors
from netjoule.publishing.masking import Visitor, transformed
from netjoule_contracts import reading


class Form(Enum):
    """How a file is read."""

    JSON = "json"
    TABLE = "table"
    STREAM = "stream"
    CAPTURE = "capture"


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the campaign.

    Attributes:
        name: path relative to the campaign.
        table: contract of a table.
    """

    name: str
    form: Form
    table: str = ""


# In the order in which they are read: what campaign.json names comes first.
_PATTERNS = (
    ("campaign.json", Form.JSON, ""),
    ("plan.csv", Form.TABLE, "plan"),
    ("status.csv", Form.TABLE, "status"),
    ("clocks.csv", Form.TABLE, "clocks"),
    ("meters/*.csv", Form.TABLE, "meters"),
    ("radio/*.csv", Form.TABLE, "radio"),
    ("devices/*.ndjson", Form.STREAM, ""),
    ("runs/*/run.json", Form.JSON, ""),
    *((f"runs/*/{load}.json", Form.JSON, "") for load in contracts.loads()),
    ("runs/*/flows/*.json", Form.JSON, ""),
    ("runs/*/result.json", Form.JSON, ""),
    ("runs/*/intervals.csv", Form.TABLE, "intervals"),
    ("runs/*/events.csv", Form.TABLE, "events"),
    ("runs/*/power.csv", Form.TABLE, "power"),
    ("runs/*/routers.csv", Form.TABLE, "routers"),
    # Of a simulated block.
    ("runs.ndjson", Form.STREAM, ""),
    *((f"{load}.ndjson", Form.STREAM, "") for load in contracts.loads()),
    ("results.ndjson", Form.STREAM, ""),
    ("intervals.csv", Form.TABLE, "block_intervals"),
    ("events.csv", Form.TABLE, "block_events"),
    ("routers.csv", Form.TABLE, "block_routers"),
    ("runs/*/*.pcapng", Form.CAPTURE, ""),
    ("runs/*/*.pcap", Form.CAPTURE, ""),
)
_MADE_AGAIN = ("datapackage.json", "report.html", "tables", "figures")
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_MOST_FORMS = 1000  # of the lines of one stream; one writer has a few
_NUMBER = re.compile(rb"(?<=[:,\[ ])-?\d[\d.eE+-]*")


def parts(campaign: Path) -> list[Part]:
    """Every file of a campaign that a contract describes, in a fixed order."""
    return [
        Part(path.relative_to(campaign).as_posix(), form, table)
        for where in ("", "blocks/*/")
        for pattern, form, table in _PATTERNS
        for path in sorted(campaign.glob(where + pattern))
        if path.is_file()
    ]


def left_out(campaign: Path, taken: list[Part]) -> list[str]:
    """Files that no contract describes and no command makes again; hidden ones belong to this machine."""
    names = {part.name for part in taken}
    found = []
    for path in sorted(campaign.rglob("*")):
        place = path.relative_to(campaign)
        hidden = any(step.startswith(".") for step in place.parts)
        if (
            path.is_file()
            and not hidden
            and place.parts[0] not in _MADE_AGAIN
            and place.as_posix() not in names
        ):
            found.append(place.as_posix())
    return found


def name_in_bundle(part: Part, visitor: Visitor) -> str:
    """Where a part stands in the bundle: its name with stand-ins, safe on every system.

    Raises:
        InvalidData: when it is not.
    """
    place = PurePosixPath(part.name)
    field = "host" if part.table == "radio" else ""
    of_run = place.parts[-3:-2] == ("runs",) or place.parts[:-2] == ("blocks",)
    own = of_run and part.form is not Form.CAPTURE
    name = place.name if own else visitor.text(field, place.stem) + place.suffix
    steps = [*place.parts[:-1], name]
    if not all(_SAFE.fullmatch(step) for step in steps):
        raise InvalidData("not a name that a file can have everywhere", where=part.name)
    return "/".join(steps)


def holds_texts(part: Part) -> bool:
    """Whether a part may hold any text: not so a capture, and a table of numbers and choices."""
    return part.form in (Form.JSON, Form.STREAM) or (part.form is Form.TABLE and bool(_texts(part.table)))


def visit(campaign: Path, part: Part, visitor: Visitor) -> None:
    """Show every text of a part to a visitor; captures have none to show."""
    path = campaign / part.name
    with file_errors("read", path):
        if part.form is Form.JSON:
            transformed(visitor, files.read_json(path))
        elif part.form is Form.TABLE:
            for _ in _rows(path, part.table, visitor):
                pass
        elif part.form is Form.STREAM:
            for _ in _lines(path, visitor):
                pass


def write(campaign: Path, part: Part, visitor: Visitor, target: Path) -> None:
    """Write a part with the visitor's texts; a file in which nothing changes stays as it is."""
    path = campaign / part.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if part.form is Form.JSON:
        before = files.read_json(path)
        after = transformed(visitor, before)
        if after != before:
            target.write_bytes(_json(after))
            return
    elif part.form is Form.TABLE and holds_texts(part):
        with target.open("w", newline="", encoding="utf-8") as table:
            csv.writer(table, lineterminator="\n").writerows(_rows(path, part.table, visitor))
        return
    elif part.form is Form.STREAM:
        with target.open("wb") as handle:
            handle.writelines(_lines(path, visitor))
        return
    shutil.copyfile(path, target)


def _json(document: Any) -> bytes:
    """A document as netjoule writes it; halves of a pair of code units, which UTF-8 has not, stay escaped."""
    try:
        return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _texts(table: str, header: Sequence[str] = ()) -> frozenset[str]:
    """Columns of a table that may hold any text: neither numbers nor choices."""
    return frozenset(
        str(field["name"])
        for field in contracts.fields_of(table, header) or contracts.table(table)["fields"]
        if field["type"] == "string" and "enum" not in field.get("constraints", {})
    )


def _rows(path: Path, table: str, visitor: Visitor) -> Iterator[list[str]]:
    """Rows with their texts visited, the header first; nothing of a table that holds none."""
    texts: frozenset[str] = frozenset()
    header: list[str] | None = None
    for line, cells, defect in reading.rows(path):
        if defect or len(cells) != len(header or cells):
            raise reading.Unreadable(f"line {line}", defect or "not as many cells as the header has")
        yield [
            visitor.text(name, cell) if header and name in texts else cell
            for name, cell in zip(header or cells, cells, strict=True)
        ]
        if header is None:
            header, texts = cells, _texts(table, cells)
            if not texts:
                return


def _lines(path: Path, visitor: Visitor) -> Iterator[bytes]:
    """Lines of a stream of JSON documents with their texts visited.

    A stream has millions of lines that differ in numbers alone, so a line without text goes through as it is
    once one of its form was looked at.
    """
    plain: set[bytes] = set()
    for line in reading.lines(path):
        form = _NUMBER.sub(b"", line)
        if form in plain:
            yield line
            continue
        before = reading.value_of(line)
        after = transformed(visitor, before)
        if after == before:
            if len(plain) < _MOST_FORMS and b'"' not in re.sub(rb'"[^"\\]*"\s*:', b"", form):
                plain.add(form)
            yield line
        else:
            yield json.dumps(after, ensure_ascii=False).encode() + b"\n"
