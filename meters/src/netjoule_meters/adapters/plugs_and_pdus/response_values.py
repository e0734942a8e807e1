# SPDX-License-Identifier: Apache-2.0
"""Finding a value in the answer of a networked socket. Pure.

==========================  ============================================================================
format                      what a path is
==========================  ============================================================================
json                        a JSON Pointer (RFC 6901): ``/Outputs/0/Load``
csv                         the name of a column of the first line, or its number counted from 1; the
                            value is in the last line (RFC 4180, other separators by setting)
text                        the name or number of a group of the pattern
snmp                        an object identifier
modbus                      a register, ``input:ADDRESS:TYPE`` or ``holding:ADDRESS:TYPE``
==========================  ============================================================================
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from typing import Any

from netjoule_meters.errors import GarbageReply

Find = Callable[[str], Any]
"""From a path to the value there; raises NotThere."""
_SHOWN = 60


class NotThere(GarbageReply):
    """An answer that can be read and does not have the value: another device, or a wrong mapping."""


class ListTooShort(NotThere):
    """A list of the answer has fewer entries than the path wants."""

    def __init__(self, path: str, wanted: int, entries: int) -> None:
        """`wanted` counts from 0, as the path does."""
        super().__init__(f"only {entries} entries where {path} wants number {wanted} (counted from 0)")
        self.wanted = wanted
        self.entries = entries


def finder(form: str, answer: bytes, pattern: str, separator: str) -> Find:
    """How to find values in ``answer``.

    Raises:
        GarbageReply: when it is not in the format ``form``.
    """
    if form == "csv":
        return _in_csv(_text(answer), separator)
    if form == "text":
        return _in_text(_text(answer), pattern)
    document = _json(answer)
    return _at_key(document) if form in ("snmp", "modbus") else _at_pointer(document)


def _text(answer: bytes) -> str:
    try:
        return answer.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GarbageReply(f"the answer is not text: {answer[:_SHOWN]!r}") from None


def _json(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        raise GarbageReply(f"the answer is not JSON: {answer[:_SHOWN]!r}") from None


def _at_key(document: Any) -> Find:
    def find(path: str) -> Any:
        if path not in document:
            raise NotThere(f"the device has no {path}")
        return document[path]

    return find


def _at_pointer(document: Any) -> Find:
    def find(path: str) -> Any:
        place = document
        for step in path.split("/")[1:]:
            place = _member(place, step.replace("~1", "/").replace("~0", "~"), path)
        if isinstance(place, dict | list):
            raise NotThere(f"{path} is not one value")
        return place

    return find


def _member(place: Any, name: str, path: str) -> Any:
    if isinstance(place, dict):
        if name in place:
            return place[name]
        there = ", ".join(map(str, list(place)[:8])) or "nothing"
        raise NotThere(f"no '{name}' for {path} in the answer (there: {there})")
    if isinstance(place, list) and name.isdecimal():
        if int(name) < len(place):
            return place[int(name)]
        raise ListTooShort(path, int(name), len(place))
    raise NotThere(f"no '{name}' for {path} in the answer (there: one value)")


def _in_csv(text: str, separator: str) -> Find:
    try:
        rows = [row for row in csv.reader(text.splitlines(), delimiter=separator, strict=True) if row]
    except csv.Error as error:
        raise GarbageReply(f"the answer is not CSV ({error}): {text[:_SHOWN]!r}") from None
    if not rows:
        raise GarbageReply("the answer is empty")
    header, last = [name.strip() for name in rows[0]], rows[-1]

    def find(path: str) -> Any:
        if path.isdecimal():
            column = int(path) - 1
        elif path in header:
            column = header.index(path)
        else:
            raise NotThere(f"no column '{path}' in the answer (there: {', '.join(header[:8])})")
        if not 0 <= column < len(last):
            raise NotThere(f"only {len(last)} columns where number {column + 1} is wanted")
        return last[column].strip()

    return find


def _in_text(text: str, pattern: str) -> Find:
    found = re.search(pattern, text)
    if found is None:
        raise NotThere(f"the text does not match {pattern!r}: {text[:_SHOWN]!r}")

    def find(path: str) -> Any:
        return found.group(int(path) if path.isdecimal() else path)

    return find
