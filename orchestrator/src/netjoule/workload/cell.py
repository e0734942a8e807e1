# SPDX-License-Identifier: Apache-2.0
"""A cell: one combination of the values of all factors but the arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import total_ordering
from typing import Any

import netjoule_contracts as contracts

_SHORT_UNITS = {"byte": "B"}


@total_ordering
class Cell(Mapping[str, Any]):
    """Values by the names of their factors, in the order of plan.csv's columns.

    It can be a key, has an order where the factors are the same, and prints in words; a factor that has its
    default is not worth a word.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Take a copy of `values`."""
        self._values = dict(values)

    def __getitem__(self, factor: str) -> Any:
        return self._values[factor]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._key()))

    def __lt__(self, other: Cell) -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        worth = (
            value_words(name, value)
            for name, value in self._values.items()
            if (contracts.factor(name) or {}).get("default") != value
        )
        return ", ".join(worth)

    def __repr__(self) -> str:
        return f"Cell({self._values!r})"

    def _key(self) -> tuple[tuple[str, Any], ...]:
        return tuple(self._values.items())


def value_name(value: Any) -> str:
    """A factor's value as the name of an arm: ``udp``, ``64``, ``true``, ``rtt_ms 10``.

    Of a document that has a name it is that.
    """
    if isinstance(value, Mapping):
        parts = (f"{key} {value_name(part)}" for key, part in sorted(value.items()))
        return str(value["name"]) if "name" in value else ", ".join(parts)
    if isinstance(value, list):
        return "+".join(map(value_name, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def value_words(name: str, value: Any) -> str:
    """A factor's value in words: ``64 B``, ``pacing spin``, ``GSO trains``, ``path rtt_ms 10``."""
    entry = contracts.factor(name) or {}
    label = str(entry["label"]) if entry.get("name") == name else name
    label = label if label.isupper() or label[1:2].isupper() else label[:1].lower() + label[1:]
    if isinstance(value, bool):
        return label if value else f"no {label}"
    if isinstance(value, int | float):
        unit = entry.get("unit", "1")
        return f"{value:g} {_SHORT_UNITS.get(unit, unit)}" if unit != "1" else f"{label} {value:g}"
    return f"{label} {value}"
