# SPDX-License-Identifier: Apache-2.0
"""Holds the CSV tables and streams of a campaign to their contracts and to time's direction."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import files, yamlfile
from netjoule_contracts import reading
from netjoule_contracts.lift import runs as lift
from netjoule_contracts.reading import Unreadable

_CUSTOM = ("exclusiveMinimum", "pattern", "unique")
# A stream of a long campaign has millions of lines of one writer: its form is checked on the first ones.
_STREAM_LINES_BY_SCHEMA = 200


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that is wrong.

    Attributes:
        file: path relative to the campaign.
        place: line, column or field; empty for the whole file.
        what: one sentence.
    """

    file: str
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}, {self.place}: {self.what}" if self.place else f"{self.file}: {self.what}"


def document(file: str, path: Path, contract: str) -> Generator[Defect, None, dict[str, Any]]:
    """Read a JSON document and hold it to its contract; what is in it, nothing where that does not fit."""
    defects, value = document_and_defects(file, path, contract)
    yield from defects
    return {} if defects else value


def document_and_defects(file: str, path: Path, contract: str) -> tuple[list[Defect], dict[str, Any]]:
    """What breaks a JSON document's contract, and what is in it all the same; nothing where it is none."""
    try:
        value = reading.document(path)
    except FileNotFoundError:
        return [Defect(file, "", "the file is missing")], {}
    except (OSError, Unreadable) as error:
        return [unreadable(file, error)], {}
    return list(against(file, value, contract)), value if isinstance(value, dict) else {}


def unreadable(file: str, error: OSError | Unreadable) -> Defect:
    """What hinders to read a file."""
    if isinstance(error, Unreadable):
        return Defect(file, error.place, error.what)
    return Defect(file, "", f"it cannot be read: {error.strerror}")


def against(file: str, value: Any, contract: str, prefix: str = "") -> Iterator[Defect]:
    """Hold a value to a contract; secrets are never shown."""
    if what := yamlfile.newer(value, contract):
        yield Defect(file, f"field {prefix}schema_version", what)
        return
    held_to = lift.contract_of(contract, value) if isinstance(value, Mapping) else contract
    for place, what in yamlfile.defects(value, held_to):
        field = prefix + ".".join(map(str, place))
        yield Defect(file, f"field {field}" if field else "", what)


def table(file: str, path: Path, name: str) -> Iterator[Defect]:
    """Hold a CSV to its Table Schema: header, types, bounds, patterns, uniqueness, whole last line."""
    try:
        with reading.opened(path) as handle:
            size = handle.seek(0, 2)
            handle.seek(max(0, size - 1))
            if size and handle.read(1) != b"\n":
                yield Defect(
                    file, "last line", "it is cut off, as a crash leaves it; 'netjoule resume' repairs it"
                )
        for text in contracts.table_defects(name, path):
            place, _, what = text.partition(": ")
            yield Defect(file, place, what)
        yield from _custom(file, path, name)
    except (OSError, Unreadable) as error:
        yield unreadable(file, error)


def rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each whole row; nothing from where the file cannot be read."""
    try:
        found = reading.rows(path)
        _, header, _ = next(found, reading.Row(1, []))
        for line, cells, defect in found:
            if not defect and len(cells) == len(header):
                yield line, dict(zip(header, cells, strict=True))
    except (OSError, Unreadable):
        return


def rising(
    file: str, path: Path, column: str, *, by: tuple[str, ...] = (), by_one: bool = False
) -> Iterator[Defect]:
    """Report the first place where ``column`` goes back, for all rows or per values of the columns ``by``.

    With ``by_one`` also where it is not one more than in the row before.
    """
    last: dict[tuple[str, ...], float] = {}
    for line, row in rows(path):
        key = tuple(row.get(name, "") for name in by)
        value = number(row.get(column, ""))
        if value is None:
            continue
        before = last.get(key)
        if before is not None and (value != before + 1 if by_one else value < before):
            why = "a row is missing or doubled" if by_one else "rows are appended in order"
            yield Defect(file, f"line {line}, column {column}", f"{value:g} after {before:g}: {why}")
            return
        last[key] = value


def number(cell: str) -> float | None:
    """A cell as a finite number; None when it is empty or none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def device_stream(file: str, path: Path) -> Iterator[Defect]:
    """Hold a device stream (NDJSON) to its contract and its intervals to follow one another."""
    end_s: float | None = None
    try:
        for line, text in enumerate(reading.lines(path), start=1):
            try:
                sample = reading.value_of(text)
                start_s, stop_s = float(sample["t_start_s"]), float(sample["t_end_s"])
            except (ValueError, KeyError, TypeError) as error:
                what = error.what if isinstance(error, Unreadable) else f"{type(error).__name__} {error}"
                yield Defect(file, f"line {line}", f"no sample of a device: {what}")
                continue
            if line <= _STREAM_LINES_BY_SCHEMA:
                for place, what in yamlfile.defects(sample, "device_stream"):
                    yield Defect(file, f"line {line}, field {'.'.join(map(str, place))}", what)
            if stop_s <= start_s or (end_s is not None and start_s < end_s - 1e-6):
                yield Defect(file, f"line {line}", "its interval does not follow the one before")
                return
            end_s = stop_s
    except (OSError, Unreadable) as error:
        yield unreadable(file, error)


def _custom(file: str, path: Path, name: str) -> Iterator[Defect]:
    """Constraints beyond type, bounds and enum."""
    header = files.header_of(path)
    known = contracts.fields_of(name, header) or contracts.table(name)["fields"]
    fields = [f for f in known if set(_CUSTOM) & set(f.get("constraints", {}))]
    seen: dict[str, set[str]] = {str(f["name"]): set() for f in fields}
    for line, row in rows(path) if fields else ():
        for field in fields:
            column = str(field["name"])
            cell = row.get(column, "")
            what = _breaks(cell, field["constraints"], seen[column])
            if what:
                yield Defect(file, f"line {line}, column {column}", what)
            seen[column].add(cell)


def _breaks(cell: str, rule: Mapping[str, Any], seen: set[str]) -> str:
    value = number(cell)
    if not cell:
        return ""
    if "exclusiveMinimum" in rule and value is not None and value <= rule["exclusiveMinimum"]:
        return f"{cell} must be above {rule['exclusiveMinimum']}"
    if "pattern" in rule and not contracts.has_form(cell, rule["pattern"]):
        return f"{cell!r} does not have the form {rule['pattern']}"
    if rule.get("unique") and cell in seen:
        return f"{cell!r} stands twice"
    return ""
