# SPDX-License-Identifier: Apache-2.0
"""A JSON document that anyone may have written, read with the place of every part. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from netjoule_contracts.reading import MOST_DIGITS, Unreadable

__all__ = ["MOST_INTEGER", "Node", "Unreadable", "documents"]

MOST_INTEGER = 2**53 - 1  # JSON integers of the contracts
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a document with its path, such as end.sum_sent.bytes. All readers raise Unreadable."""

    value: Any
    path: str = ""

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"field {self.path}" if self.path else ""

    def at(self, *keys: str) -> Node:
        """A part that must be there."""
        node = self
        for key in keys:
            found = node.get(key)
            if found is None:
                raise Unreadable(_joined(node.path, key, "field "), "it is missing")
            node = found
        return node

    def get(self, key: str) -> Node | None:
        """A part, None where it is missing or null."""
        if not isinstance(self.value, dict):
            raise Unreadable(self.place, "it is no object")
        value = self.value.get(key)
        return None if value is None else Node(value, _joined(self.path, key))

    def items(self) -> Iterator[Node]:
        """The parts of a list."""
        if not isinstance(self.value, list):
            raise Unreadable(self.place, "it is no list")
        for index, value in enumerate(self.value):
            yield Node(value, _joined(self.path, str(index)))

    def number(self, least: float = 0.0, most: float = MOST_INTEGER) -> float:
        """A finite number within bounds."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise Unreadable(self.place, "it is no number")
        if not least <= self.value <= most:  # NaN is in no bounds
            raise Unreadable(self.place, f"{_short(self.value)} is not between {least:g} and {most:g}")
        return float(self.value)

    def integer(self, least: int = 0, most: int = MOST_INTEGER) -> int:
        """A whole number; one with an exponent or a decimal point counts, as long as it is whole."""
        value = self.number(least, most)
        if value != math.floor(value):
            raise Unreadable(self.place, f"{_short(self.value)} is no whole number")
        return int(self.value)

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise Unreadable(self.place, "it is no text")
        return self.value

    def flag(self) -> bool:
        """A truth value, also as 0 or 1."""
        if self.value not in (True, False, 0, 1):
            raise Unreadable(self.place, "it is neither true nor false")
        return bool(self.value)


def documents(text: str) -> Iterator[tuple[int, Any]]:
    """The JSON values of a text one after another, each with the line that it begins on.

    Raises:
        Unreadable: naming the line where no JSON follows, or where a value is not whole.
    """
    decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)
    at, line, counted = 0, 1, 0
    while True:
        while at < len(text) and text[at] in _BLANK:
            at += 1
        line += text.count("\n", counted, at)
        counted = at
        if at == len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            cut = error.pos >= len(text.rstrip(_BLANK))
            what = "it is cut off in the middle of a JSON value" if cut else f"it is no JSON: {error.msg}"
            raise Unreadable(f"line {error.lineno}", what) from error
        except RecursionError:
            raise Unreadable(f"line {line}", "its JSON is nested too deeply") from None
        except Unreadable as error:
            raise Unreadable(f"line {line}", error.what) from None
        except ValueError as error:  # a constant
            raise Unreadable(f"line {line}", f"its JSON holds what is no number: {error}") from error
        yield line, value


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Unreadable("", f"a number of {len(text)} digits; {MOST_DIGITS} are the most")
    return int(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _joined(path: str, key: str, before: str = "") -> str:
    return f"{before}{path}.{key}" if path else f"{before}{key}"


def _short(value: float) -> str:
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
