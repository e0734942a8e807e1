# SPDX-License-Identifier: Apache-2.0
"""The ranging pass: the instrument chooses its ranges under the heaviest load, then the fitting one is held.

Autorange leaves holes in the data, so a campaign runs in one range. A setting of the kind ``voltage_range_v``
may say ``auto`` in a topology; it stands for "found by a ranging pass", never for autorange during a run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from netjoule_meters.adapters import adapter
from netjoule_meters.adapters.base import Meter
from netjoule_meters.clock import Clock
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import DialogueError, MeterUnavailable, UsageError
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting

AUTO = "auto"
MIN_READINGS = 3
"""Fewer readings of a pass are an accident, not a load."""


@dataclass(frozen=True, slots=True)
class RangingResult:
    """What a pass saw and the settings that follow from it.

    Attributes:
        settings: of the least ranges that hold it with head-room, for example ``current_range_a``.
        most_v: highest voltage, V; most_a: highest current, A; most_w: highest power, W; 0 where the
            instrument shows none.
        readings: good readings that it rests on.
        over: readings that were over a range or a peak while the instrument was choosing.
    """

    settings: dict[str, Any]
    most_v: float
    most_a: float
    most_w: float
    readings: int
    over: int

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def range_settings(kind: type[Meter]) -> tuple[Setting, ...]:
    """Settings of an instrument that choose a range; empty when it has one range only."""
    return tuple(
        setting
        for setting in kind.settings_declared
        if "_range_" in setting.name and setting.choices is not None
    )


def wants_ranging(config: MeterConfig) -> bool:
    """Whether a range is left to a ranging pass."""
    return any(
        config.settings.get(setting.name) == AUTO for setting in range_settings(adapter(config.adapter))
    )


def widest(config: MeterConfig) -> MeterConfig:
    """The same meter with its widest range for each range that is ``auto`` or not told."""
    kind = adapter(config.adapter)
    open_ones = [
        setting for setting in range_settings(kind) if config.settings.get(setting.name, AUTO) == AUTO
    ]
    wide = {setting.name: max(setting.choices or ()) for setting in open_ones}
    return replace(config, settings={**config.settings, **wide})


def require_fixed(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse ``auto`` where readings are to be used.

    Raises:
        UsageError: naming the setting and the pass that finds it.
    """
    for setting in range_settings(adapter(name)):
        if settings.get(setting.name) == AUTO:
            raise UsageError(
                f"{name}: {setting.name} is 'auto', and autorange leaves holes in the data: find the range "
                f"with 'netjoule-meters range {name} --port ...' under the heaviest load and set it"
            )


def ranging_pass(meter: Meter, seconds: float, clock: Clock, stop: threading.Event) -> RangingResult:
    """Watch an open meter for ``seconds`` while the load is at its heaviest; its own ranges come back after.

    Raises:
        UsageError: when the instrument has one range only, or none that holds the load.
        MeterUnavailable: when there were too few readings, or it stopped answering.
    """
    _switch_autorange(meter, True)
    try:
        seen = list(_until(meter.readings(stop), clock, seconds))
    finally:
        _switch_autorange(meter, False)
    return chosen(meter, seen)


def _switch_autorange(meter: Meter, on: bool) -> None:
    try:
        meter.autorange(on)
    except DialogueError as error:
        raise MeterUnavailable(
            f"the {meter.model} stopped answering while its autorange was switched {'on' if on else 'off'} "
            f"({error}): check it, then make the ranging pass again"
        ) from error


def chosen(meter: Meter, seen: Iterable[Reading]) -> RangingResult:
    """The ranges for what a pass saw; readings taken while a range changed count for nothing.

    Raises:
        UsageError: when no range holds it.
        MeterUnavailable: when there were too few readings.
    """
    rows = list(seen)
    good = [reading for reading in rows if not reading.flag]
    if len(good) < MIN_READINGS:
        raise MeterUnavailable(
            f"the ranging pass of the {meter.model} got {len(good)} of the {MIN_READINGS} readings that it "
            "takes: make it longer, and check the meter with 'netjoule-meters read --watch'"
        )
    most_v, most_a, most_w = (
        max((abs(value) for value in values if value is not None), default=0.0)
        for values in (
            [reading.voltage_v for reading in good],
            [reading.current_a for reading in good],
            [reading.power_w for reading in good],
        )
    )
    over = sum(reading.flag in (Flag.OVERRANGE, Flag.PEAK_OVER) for reading in rows)
    settings = meter.choose_range(most_v, most_a, most_w)
    return RangingResult(settings, most_v, most_a, most_w, len(good), over)


def _until(readings: Iterable[Reading], clock: Clock, seconds: float) -> Iterable[Reading]:
    end_ns = clock.monotonic_ns() + round(seconds * 1e9)
    for reading in readings:
        yield reading
        if clock.monotonic_ns() >= end_ns:
            return
