# SPDX-License-Identifier: Apache-2.0
"""What all emulated instruments have: the power that they are fed, and the supply around it."""

from __future__ import annotations

from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.power_history import PowerHistory, PowerInterval


class Metering:
    """Power in; an instrument decides what it makes of its history."""

    def __init__(self, supply: Supply | None) -> None:
        self._supply = supply or Supply()
        self._history = PowerHistory()

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""
        self._history.append(interval)


def soonest(*moments_s: float | None) -> float | None:
    """The first of those moments that there are."""
    return min((moment_s for moment_s in moments_s if moment_s is not None), default=None)
