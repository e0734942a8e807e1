# SPDX-License-Identifier: Apache-2.0
"""Joulescope DC energy analysers (JS110, JS220, JS320) through the maker's library.

Statistics documentation of the joulescope package: each update holds the mean, over the window
``time.range``, of current, voltage and power. The analyser computes them from all its samples, so nothing
between two updates is lost. It measures DC between a supply and a device, not at the wall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from netjoule_meters.adapters.base import Meter, Semantics
from netjoule_meters.errors import ConnectionLost, GarbageReply, SettingRefused
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting
from netjoule_meters.transports.joulescope import Joulescope

_FREQUENCIES_HZ = (1, 2, 4, 5, 10, 20, 50, 100)


class JoulescopeMeter(Meter):
    """A Joulescope between supply and device: ``joulescope:SERIAL``."""

    name: ClassVar[str] = "joulescope"
    make: ClassVar[str] = "Jetperch"
    model: ClassVar[str] = "Joulescope"
    interfaces: ClassVar[tuple[str, ...]] = ("joulescope",)
    semantics: ClassVar[Semantics] = Semantics.INTERVAL_MEAN
    advice_no_answer: ClassVar[str] = "unplug it and plug it in again, and update its firmware"
    provisional: ClassVar[tuple[str, ...]] = (
        "tested with a stand-in for the library, not with an instrument",
        "it chooses its current range itself, which its maker says leaves no hole",
        "from the end of a window to the call of the library no time is assumed unless lag_s says so",
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "update_interval_s",
            "Window of the statistics; a JS110 has 0.5 s only.",
            0.5,
            tuple(sorted(1 / frequency for frequency in _FREQUENCIES_HZ)),
        ),
        Setting("voltage_range_v", "Fixed voltage range.", 15.0, (2.0, 5.0, 15.0)),
        Setting("lag_s", "Lag, when it is known.", 0.0),
    )

    _transport: Joulescope

    @property
    def measuring_range(self) -> MeasuringRange:
        """Voltage is fixed; current is ranged by the instrument."""
        return MeasuringRange(self.settings["voltage_range_v"], None, None)

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """No specification is at hand."""
        return Accuracy(None, None, "unknown: no specification of the Joulescope is at hand")

    def _identify(self) -> Identification:
        text = self._transport.identification
        model, _, serial = text.rpartition("-")
        return Identification(text, self.make, model or self.model, serial or None)

    def _set_up(self) -> None:
        """Ranges and window; one window is looked at, since a JS110 keeps its own."""
        frequency_hz = round(1 / self.update_interval_s)
        voltage_range = f"{self.settings['voltage_range_v']:g}V"
        for name, value in (
            ("i_range", "auto"),
            ("v_range", voltage_range),
            ("reduction_frequency", f"{frequency_hz} Hz"),
        ):
            try:
                self._transport.set(name, value)
            except ConnectionLost as error:
                raise SettingRefused(f"{error}; check the setting against the instrument's manual") from error
        self._transport.drain(0.0)
        self._transport.next_statistics(3.0)  # the window in which the setting changed
        _, statistics = self._transport.next_statistics(3.0)
        window_s = _number(statistics, "time", "delta")
        if window_s is None or abs(window_s - self.update_interval_s) > 0.02 * self.update_interval_s:
            raise SettingRefused(
                f"the Joulescope on {self._transport.resource} sends windows of {window_s} s where "
                f"update_interval_s={self.update_interval_s:g} was set: set update_interval_s to that"
            )

    def _read_update(self) -> Reading:
        t_ns, statistics = self._transport.next_statistics(self.gap_s)
        return reading_of(t_ns, statistics)


def reading_of(t_ns: int, statistics: Mapping[str, Any]) -> Reading:
    """A reading from the library's statistics; NaN stands for samples that were lost.

    Raises:
        GarbageReply: when the statistics hold no power.
    """
    power_w = _number(statistics, "signals", "power", "µ")
    voltage_v = _number(statistics, "signals", "voltage", "µ")
    current_a = _number(statistics, "signals", "current", "µ")
    if power_w is None:
        return Reading(t_ns, None, voltage_v, current_a, flag=Flag.NO_DATA)
    return Reading(t_ns, power_w, voltage_v, current_a)


def _number(statistics: Mapping[str, Any], *path: str) -> float | None:
    """The number at ``path``, None when it is not finite."""
    place: Any = statistics
    try:
        for key in (*path, "value"):
            place = place[key]
        value = float(place)
    except (KeyError, TypeError, ValueError) as error:
        raise GarbageReply(f"statistics without {'.'.join(path)}") from error
    return value if math.isfinite(value) else None
