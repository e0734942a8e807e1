# SPDX-License-Identifier: Apache-2.0
"""What is wrong with one emulated instrument: gain and offset, drawn evenly within its specification."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantity:
    """Gain and offset error of one quantity: shown = true * (1 + gain) + offset * range."""

    gain: float = 0.0
    offset: float = 0.0

    def shown(self, true: float, range_value: float) -> float:
        """What the instrument makes of ``true``."""
        return true * (1 + self.gain) + self.offset * range_value


def drawn(seed: int | None, limits: Sequence[tuple[float, float]]) -> tuple[Quantity, ...]:
    """A new instrument for each seed: one `Quantity` per (reading ratio, range ratio) of ``limits``.

    Without errors for None.
    """
    if seed is None:
        return (Quantity(),) * len(limits)
    draw = random.Random(seed)  # noqa: S311 - a seeded model, no secret
    return tuple(
        Quantity(draw.uniform(-reading, reading), draw.uniform(-of_range, of_range))
        for reading, of_range in limits
    )
