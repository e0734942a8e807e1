# SPDX-License-Identifier: Apache-2.0
"""The words of every table and figure, from protocols/contracts/glossary.json."""

from __future__ import annotations

import json
from dataclasses import dataclass

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Entry:
    """One word.

    Attributes:
        column: name in tables, empty when the word is no column.
        unit: unit of the column; ``1`` for a ratio or count, empty when it has none.
    """

    term: str
    column: str
    unit: str
    meaning: str


def entries() -> list[Entry]:
    """All words, in the order of the file."""
    document = json.loads((contracts.root() / "glossary.json").read_text(encoding="utf-8"))
    return [Entry(**entry) for entry in document["entries"]]


def lookup(words: list[str]) -> list[Entry]:
    """Entries whose term or column contains one of ``words``; all of them without words.

    Raises:
        UsageError: for a word that no entry has.
    """
    found = []
    for word in words:
        hits = [e for e in entries() if word.lower() in e.term.lower() or word.lower() in e.column.lower()]
        if not hits:
            raise UsageError(
                f"the glossary has no '{word}'", next_step="run 'netjoule glossary' for all words"
            )
        found += [hit for hit in hits if hit not in found]
    return found if words else entries()
