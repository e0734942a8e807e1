# SPDX-License-Identifier: Apache-2.0
"""Texts as `netjoule publish` masks them, without a campaign."""

from __future__ import annotations

from netjoule.publishing.identifiers import Kind
from netjoule.publishing.masking import Books, Collector, Masker


def masked(*texts: str, kept: tuple[Kind, ...] = (), **fields: str) -> list[str]:
    """Running texts after all of them, and the fields, were met; then the fields."""
    books = Books(frozenset(kept))
    collector = Collector(books)
    given_texts = [("", text) for text in texts] + list(fields.items())
    for field, text in given_texts:
        collector.text(field, text)
    books.freeze()
    masker = Masker(books)
    return [masker.text(field, text) for field, text in given_texts]
