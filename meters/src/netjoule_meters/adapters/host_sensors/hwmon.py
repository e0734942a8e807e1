# SPDX-License-Identifier: Apache-2.0
"""Power sensors that the kernel shows under hwmon, such as the INA219, INA226 and INA3221 of single boards.

Linux, Documentation/hwmon/sysfs-interface.rst and ina2xx.rst: ``powerN_input`` or, where a chip has only
its mean, ``powerN_average`` in uW (over ``powerN_average_interval`` ms), ``currN_input`` in mA, ``inN_input``
in mV (counted from 0), ``update_interval`` in ms. A sensor without a power file is read as current times
voltage. The chip averages over its own interval, whose end is not told, so a reading is taken as a spot
value. Its scale rests on the shunt that the kernel was told of: without a calibration its error is unknown.
"""

from __future__ import annotations

from typing import ClassVar

from netjoule_meters.adapters.base import Semantics
from netjoule_meters.adapters.host_sensors.sysfs_meter import MICRO, MILLI, SysfsMeter
from netjoule_meters.adapters.polled import Sample
from netjoule_meters.errors import PortUnavailable, SettingRefused
from netjoule_meters.passport import Identification
from netjoule_meters.settings import Setting


class Hwmon(SysfsMeter):
    """A power sensor of this host, such as an INA226: ``ina226``, ``hwmon2``, ``1-0040``."""

    name: ClassVar[str] = "hwmon"
    make: ClassVar[str] = "Linux hwmon"
    model: ClassVar[str] = "power sensor"
    semantics: ClassVar[Semantics] = Semantics.INSTANTANEOUS
    folder: ClassVar[str] = "class/hwmon"
    what: ClassVar[str] = "hwmon sensor"
    advice_no_answer: ClassVar[str] = "check that the sensor's driver is loaded and its bus works (dmesg)"
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("update_interval_s", "Time between two looks; not less than the sensor's own.", 0.1),
        Setting("channel", "Number of the channel: 1 reads power1, or curr1 times a voltage.", 1),
        Setting("voltage_channel", "Number of its voltage, counted from 0; None: as the channel.", None),
        Setting("lag_s", "Lag, when it is known.", None),
    )
    _place = ""
    _power_file: str | None = None
    _current_file: str | None = None
    _voltage_file: str | None = None

    def _identify_device(self) -> Identification:
        folder, chip = self._find()
        self._place = f"{self.folder}/{folder}"
        files = set(self._names(self._place))
        channel = int(self.settings["channel"])
        told = self.settings["voltage_channel"]
        voltage_channel = channel if told is None else int(told)
        power_files = (f"power{channel}_input", f"power{channel}_average")
        self._power_file = next((name for name in power_files if name in files), None)
        self._current_file = self._present(files, f"curr{channel}_input")
        self._voltage_file = self._present(files, f"in{voltage_channel}_input")
        if self._power_file is None and None in (self._current_file, self._voltage_file):
            raise PortUnavailable(
                f"{chip} ({folder}) tells no power in channel {channel} (it has neither {power_files[0]} nor "
                f"{power_files[1]} nor both curr{channel}_input and in{voltage_channel}_input): "
                "set channel or voltage_channel"
            )
        self._check_own_interval(files, chip)
        self._fetch()
        return Identification(f"{chip} in {folder} channel {channel}", self.make, chip)

    def _find(self) -> tuple[str, str]:
        """Folder and chip of the sensor that the resource names."""
        known: list[tuple[str, str, str]] = []
        for folder in self._devices():
            chip = self._optional_text(f"{self.folder}/{folder}/name") or "unnamed"
            known.append((folder, chip, self._optional_text(f"{self.folder}/{folder}/device@") or ""))
        found = [sensor for sensor in known if self._device_name in sensor]
        if not found:
            raise self._missing(f"{folder} ({chip})" for folder, chip, _ in known)
        if len(found) > 1:
            names = ", ".join(f"{device or folder} ({chip})" for folder, chip, device in found)
            raise PortUnavailable(
                f"several hwmon sensors are called '{self._device_name}': name one by its device, "
                f"as sysfs:DEVICE ({names})"
            )
        return found[0][0], found[0][1]

    @staticmethod
    def _present(files: set[str], name: str) -> str | None:
        return name if name in files else None

    def _check_own_interval(self, files: set[str], chip: str) -> None:
        """The same value read twice would weigh twice."""
        averaged = f"{self._power_file}_interval"
        name = averaged if averaged in files else "update_interval"
        if name not in files:
            return
        own_s = self._value(f"{self._place}/{name}", MILLI)
        if own_s > 1.01 * self.update_interval_s:
            raise SettingRefused(
                f"the {chip} has a new value every {own_s:g} s and update_interval_s is "
                f"{self.update_interval_s:g}: set update_interval_s to {own_s:g} or more, or write fewer "
                f"milliseconds into {self._place}/{name}"
            )

    def _fetch(self) -> Sample:
        current_a = self._optional_value(self._current_file, MILLI)
        voltage_v = self._optional_value(self._voltage_file, MILLI)
        if self._power_file is not None:
            return Sample(self._value(f"{self._place}/{self._power_file}", MICRO), voltage_v, current_a)
        assert current_a is not None and voltage_v is not None, "checked when the meter was opened"
        return Sample(current_a * voltage_v, voltage_v, current_a)

    def _optional_value(self, name: str | None, unit: float) -> float | None:
        return None if name is None else self._value(f"{self._place}/{name}", unit)
