# SPDX-License-Identifier: Apache-2.0
"""What an emulated networked socket measures, whatever protocol it speaks. Pure, seeded.

It takes the mean over its own update interval, shows it one interval later and counts energy from what it
shows. Makers of sockets state no accuracy: the limits here (1 % of power, 0.5 % of voltage) are an
assumption of the emulation, within which each seed draws another device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from netjoule_meters.emulated.instrument_errors import drawn
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.metering import Metering
from netjoule_meters.emulated.update_grid import UpdateGrid

POWER_LIMITS, VOLTAGE_LIMITS = (0.01, 0.0), (0.005, 0.0)


@dataclass(frozen=True, slots=True)
class DisplayedValues:
    """What the device has to tell.

    Attributes:
        power_w: None when it has no value.
        energy_j: counted since it was switched on.
        updates: number of this update.
        t_s: when it was shown, campaign time.
    """

    power_w: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    energy_j: float = 0.0
    updates: int = 0
    t_s: float = 0.0


class SocketMeasurement(Metering):
    """Power in, `DisplayedValues` out; times are campaign seconds."""

    def __init__(self, interval_s: float, supply: Supply, seed: int | None) -> None:
        self._power, self._voltage = drawn(seed, (POWER_LIMITS, VOLTAGE_LIMITS))
        super().__init__(supply)
        self._grid = UpdateGrid(interval_s, self._history)
        self._stuck_until_s = 0.0
        self.shown = DisplayedValues()

    def stick(self, until_s: float) -> None:
        """Show the same value until then, as a device does whose metering chip has hung up."""
        self._stuck_until_s = until_s

    def advance(self, now_s: float) -> None:
        """Take over the updates that are due."""
        while (update := self._grid.take(now_s)) is not None:
            if now_s >= self._stuck_until_s:
                self._show(update.mean_w, now_s)

    def wake_s(self, now_s: float) -> float | None:
        """When ``advance`` is worth calling."""
        return self._grid.wake_s(now_s)

    def _show(self, mean_w: float | None, now_s: float) -> None:
        voltage_v = self._voltage.shown(self._supply.voltage_v, 0.0)
        updates = self.shown.updates + 1
        if mean_w is None:
            self.shown = DisplayedValues(None, voltage_v, None, self.shown.energy_j, updates, now_s)
            return
        power_w = self._power.shown(mean_w, 0.0)
        current_a = abs(power_w) / (voltage_v * self._supply.power_factor)
        energy_j = self.shown.energy_j + max(0.0, power_w) * self._grid.interval_s
        self.shown = replace(self.shown, power_w=power_w, voltage_v=voltage_v, current_a=current_a)
        self.shown = replace(self.shown, energy_j=energy_j, updates=updates, t_s=now_s)
