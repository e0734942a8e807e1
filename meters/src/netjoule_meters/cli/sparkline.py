# SPDX-License-Identifier: Apache-2.0
"""A row of block characters that shows how a reading went. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=*#"
_GAP = " "


def sparkline(values: Sequence[float | None], width: int, *, unicode: bool = True) -> str:
    """The last ``width`` values between their least and greatest; a blank where there was no reading.

    Args:
        values: oldest first; None for a gap.
        width: most characters to return.
        unicode: False where the terminal cannot show block characters.
    """
    shown = list(values)[-width:] if width > 0 else []
    known = [value for value in shown if value is not None]
    if not known:
        return _GAP * len(shown)
    steps = _BLOCKS if unicode else _ASCII
    least, span = min(known), max(known) - min(known)
    return "".join(
        _GAP if value is None else steps[_step(value - least, span, len(steps))] for value in shown
    )


def _step(above: float, span: float, steps: int) -> int:
    """Which of ``steps`` characters; a constant reading lies in the middle."""
    return steps // 2 if span == 0 else min(steps - 1, int(above / span * steps))
