# SPDX-License-Identifier: Apache-2.0
"""Meters without a beat that can be heard: they are asked at times of our own, evenly spaced.

The times lie on a grid that starts at the first question, so that a slow answer delays nothing after it;
a question whose time has passed is left out and never made up for. A device that answers without measuring
any more is noticed by the stale rule: the same values too many times.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from netjoule_meters.adapters.base import Meter
from netjoule_meters.errors import GarbageReply
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.transports.base import Source


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer in SI units.

    Attributes:
        mark: changes with each update of the device, where it tells (a time, a count).
        flag: why this is no reading, when the answer itself says so.
    """

    power_w: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    energy_j: float | None = None
    mark: str | None = None
    flag: Flag = Flag.GOOD


class PolledMeter(Meter):
    """A meter that is asked every ``update_interval_s``."""

    _transport: Source
    _first_ns: int | None = None
    _shown: object = None
    _unchanged = 0

    @abstractmethod
    def _fetch(self) -> Sample:
        """Ask once; may raise any ``DialogueError``."""

    @property
    def stale_after_updates(self) -> int | None:
        """So many answers without any change are a device that measures no more; None: no such rule."""
        return None

    def _read_update(self) -> Reading:
        self._wait_for_turn()
        before_ns = self._clock.monotonic_ns()
        sample = self._fetch()
        t_ns = (before_ns + self._clock.monotonic_ns()) // 2
        if sample.flag is Flag.GOOD and sample.power_w is None and sample.energy_j is None:
            return Reading(t_ns, None, sample.voltage_v, sample.current_a, None, Flag.NO_DATA)
        flag = sample.flag if sample.flag is not Flag.GOOD else self._news(sample)
        return Reading(t_ns, sample.power_w, sample.voltage_v, sample.current_a, sample.energy_j, flag)

    def _news(self, sample: Sample) -> Flag:
        """Whether an answer is a new reading, the one before again, or one of a device that stands still."""
        shown: object = sample.mark
        if shown is None:
            shown = (sample.power_w, sample.voltage_v, sample.current_a, sample.energy_j)
        repeated, self._shown = shown == self._shown, shown
        self._unchanged = self._unchanged + 1 if repeated else 0
        limit = self.stale_after_updates
        if limit is not None and self._unchanged >= limit:
            if self._unchanged == limit:
                self._notify(f"the same values {limit + 1} times: the device measures no more")
            return Flag.STALE
        return Flag.DUPLICATE if repeated and sample.mark is not None else Flag.GOOD

    def _wait_for_turn(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if self._first_ns is None:
            self._first_ns = now_ns
            return
        interval_ns = round(self.update_interval_s * 1e9)
        turn = (now_ns - self._first_ns) // interval_ns + 1
        self._transport.pause((self._first_ns + turn * interval_ns - now_ns) / 1e9)


def number(text: object, what: str) -> float:
    """A finite number from an answer.

    Raises:
        GarbageReply: naming ``what`` when it is none.
    """
    try:
        value = float(str(text))
    except ValueError:
        raise GarbageReply(f"{what} is {str(text)[:40]!r}, not a number") from None
    if not math.isfinite(value):
        raise GarbageReply(f"{what} is {text}")
    return value
