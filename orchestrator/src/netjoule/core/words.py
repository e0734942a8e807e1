# SPDX-License-Identifier: Apache-2.0
"""Numbers with their nouns, for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 run``, ``0 runs``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
