# SPDX-License-Identifier: Apache-2.0
"""How great a part of E_A the floor is."""

from __future__ import annotations

GREATEST_FLOOR_RATIO = 0.2
"""A floor over this share of P_A - P_I is warned of: much of E_A is then the generator's own."""


def floor_ratio(floor_w: float | None, delta_w: float | None) -> float | None:
    """Return the floor's share of P_A - P_I; None without a floor or without power above idle."""
    return floor_w / delta_w if floor_w is not None and delta_w is not None and delta_w > 0 else None
