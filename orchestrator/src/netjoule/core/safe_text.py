# SPDX-License-Identifier: Apache-2.0
"""Texts of others, as a terminal and a reader may safely see them."""

from __future__ import annotations


def escaped(text: str) -> str:
    """The same with everything that a terminal would obey written out: control characters, writing order."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "replace").decode()
        for letter in text
    )


def escaped_lines(text: str) -> str:
    """The same of a text that keeps its lines."""
    return "\n".join(map(escaped, text.split("\n")))
