# SPDX-License-Identifier: Apache-2.0
"""The mains around an emulated device: emulated instruments are fed with power only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Supply:
    """Constant voltage (V), power factor, crest factor of the current, frequency (Hz)."""

    voltage_v: float = 230.0
    power_factor: float = 1.0
    current_crest_factor: float = 2**0.5
    frequency_hz: float = 50.0

    def current_a(self, power_w: float) -> float:
        """Current of a device of this power, A."""
        return abs(power_w) / (self.voltage_v * self.power_factor)
