# SPDX-License-Identifier: Apache-2.0
"""The host's own battery while it feeds the host (power_supply class of the kernel).

Linux, Documentation/ABI/testing/sysfs-class-power: ``power_now`` in uW, or ``current_now`` in uA (negative
while discharging, with some drivers positive) and ``voltage_now`` in uV, both spot values. While the
battery charges, or is full beside a mains supply, they say nothing of the host: such rows carry no number.
Nor do those of 0 W: a host that runs on its battery draws some, so the driver does not know.
How often the battery's own meter renews its value is not told; many do so only every few seconds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from netjoule_meters.adapters.base import Semantics
from netjoule_meters.adapters.host_sensors.sysfs_meter import MICRO, SysfsMeter
from netjoule_meters.adapters.polled import Sample, number
from netjoule_meters.adapters.provisional_checks import Finding, sample_updates
from netjoule_meters.errors import PortUnavailable, WrongMode
from netjoule_meters.passport import Identification
from netjoule_meters.settings import Setting

_DISCHARGING = "Discharging"
_SIGN = "the sign of current_now differs between drivers and is dropped while the status is Discharging"
_RENEWED = "how often the battery's meter renews its value, and over what time it averages, is not known"


class Battery(SysfsMeter):
    """The battery that feeds this host: ``sysfs:BAT0``."""

    name: ClassVar[str] = "battery"
    make: ClassVar[str] = "Linux power_supply"
    model: ClassVar[str] = "battery"
    semantics: ClassVar[Semantics] = Semantics.INSTANTANEOUS
    folder: ClassVar[str] = "class/power_supply"
    what: ClassVar[str] = "battery"
    advice_no_answer: ClassVar[str] = "check that the battery is fitted and the kernel shows it (acpi -b)"
    provisional: ClassVar[tuple[str, ...]] = (_SIGN, _RENEWED)
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("update_interval_s", "Time between two looks.", 1.0),
        Setting("lag_s", "Lag, when it is known.", None),
    )
    _place = ""
    _has_power = False
    _status = _DISCHARGING
    _told_of_zero = False

    def _identify_device(self) -> Identification:
        supplies = self._devices()
        if self._device_name not in supplies:
            raise self._missing(supplies)
        self._place = f"{self.folder}/{self._device_name}"
        files = set(self._names(self._place))
        kind = self._optional_text(f"{self._place}/type") or "unknown"
        if kind != "Battery":
            types = {name: self._optional_text(f"{self.folder}/{name}/type") for name in supplies}
            batteries = ", ".join(name for name, its in types.items() if its == "Battery")
            raise PortUnavailable(
                f"{self._device_name} is of type {kind}, not a battery: "
                + (f"name one of {batteries}" if batteries else "this host has none, so use another meter")
            )
        if self._optional_text(f"{self._place}/present") == "0":
            raise PortUnavailable(f"the bay of {self._device_name} is empty: fit the battery")
        self._has_power = "power_now" in files
        if not self._has_power and not {"current_now", "voltage_now"} <= files:
            raise PortUnavailable(
                f"{self._device_name} tells neither power_now nor current_now and voltage_now: "
                "its driver does not measure power, so use another meter"
            )
        self._check_discharging()
        make, model = (
            self._optional_text(f"{self._place}/{name}") for name in ("manufacturer", "model_name")
        )
        serial = self._optional_text(f"{self._place}/serial_number")
        text = " ".join(part for part in (self._device_name, make, model) if part)
        return Identification(text, make or self.make, model or self.model, serial)

    def _check_discharging(self) -> None:
        self._status = self._text(f"{self._place}/status")
        if self._status != _DISCHARGING:
            raise WrongMode(
                f"the battery {self._device_name} says '{self._status}', so its power is not the host's: "
                f"unplug the mains supply and wait until it says {_DISCHARGING}"
            )

    def _fetch(self) -> Sample:
        status = self._text(f"{self._place}/status")
        if status != self._status:
            self._notify(f"the battery says '{status}' after '{self._status}'")
            self._status = status
        if status != _DISCHARGING:
            return Sample()
        voltage_v = self._known(f"{self._place}/voltage_now")
        name = "power_now" if self._has_power else "current_now"
        drawn = abs(self._value(f"{self._place}/{name}", MICRO))
        if not drawn:
            self._tell_of_zero(name)
            return Sample(voltage_v=voltage_v)
        if self._has_power:
            return Sample(power_w=drawn, voltage_v=voltage_v)
        power_w = None if voltage_v is None else drawn * voltage_v
        return Sample(power_w=power_w, voltage_v=voltage_v, current_a=drawn)

    def _tell_of_zero(self, name: str) -> None:
        """Once: a row without a number is seen in the log."""
        if not self._told_of_zero:
            self._notify(f"the battery is {_DISCHARGING} and {name} is 0: its driver does not know the power")
        self._told_of_zero = True

    def confirm(self, updates: int = 5) -> list[Finding]:
        """Look how often the value moves in ``updates`` looks; call after ``open``.

        Raises:
            MeterError: when the battery tells nothing any more.
        """
        readings = sample_updates(self._read_update, updates, self._transport.resource)
        moved = sum(later.power_w != earlier.power_w for earlier, later in pairwise(readings))
        looks = f"moved {moved} times in {len(readings)} looks, one every {self.update_interval_s:g} s"
        if self._has_power:
            sign = "the driver tells power_now"
        else:
            sign = f"current_now is {self._text(f'{self._place}/current_now')} while discharging"
        return [Finding(_SIGN, None, sign), Finding(_RENEWED, None, looks)]

    def _known(self, path: str) -> float | None:
        """A value that need not be there."""
        text = self._optional_text(path)
        return None if text is None else number(text, path) * MICRO
