# SPDX-License-Identifier: Apache-2.0
"""Why a pair is faster than 1.25 times kernel to kernel, where that was looked into."""

from __future__ import annotations

__all__ = ["explanation"]

_KNOWN: dict[tuple[str, int, int], str] = {}
"""(pair, CCID, loss percent) to the reason."""


def explanation(pair: str, ccid: int, loss_percent: int) -> str:
    """The reason, empty when none is known."""
    return _KNOWN.get((pair, ccid, loss_percent), "")
