# SPDX-License-Identifier: Apache-2.0
"""Energy counters of the processor: RAPL through the kernel's powercap files.

Linux, Documentation/power/powercap/powercap.rst: ``energy_uj`` counts up to ``max_energy_range_uj`` and
starts again at 0; there is no power. It counts the processor package (and, as zones of their own, memory),
never the display, the radio, the disk or the power supply: a laptop at the wall draws more. What is read
here is for a look beside a real meter, not for J/Mb of a host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from netjoule_meters.adapters.base import Semantics
from netjoule_meters.adapters.host_sensors.sysfs_meter import MICRO, SysfsMeter
from netjoule_meters.adapters.polled import Sample
from netjoule_meters.adapters.provisional_checks import Finding
from netjoule_meters.errors import DialogueError, NoAnswer, UsageError
from netjoule_meters.passport import Identification
from netjoule_meters.settings import Setting

_RENEWED = "the counter is taken as renewed about every millisecond, so that polling decides the time"
_PARTS = "memory (dram) is taken as not part of its package; core and uncore are; psys holds everything"
_RENEWED_WITHIN_S = 0.01
_MOST_LOOKS = 20_000


@dataclass(frozen=True, slots=True)
class Zone:
    """One powercap zone: its folder, what the kernel calls it, where its counter starts again (J)."""

    folder: str
    name: str
    range_j: float


class CounterSum:
    """Several counters as one.

    When all start again at the same value, the sum taken modulo that value is a counter again, and needs
    no memory. Otherwise the times each has started again are counted from the first reading on.
    """

    def __init__(self, ranges_j: Sequence[float]) -> None:
        self._ranges_j = tuple(ranges_j)
        self._last_j: tuple[float, ...] | None = None
        self._turned_j = 0.0

    @property
    def modulus_j(self) -> float | None:
        """Where the sum starts again, J; None when it never does."""
        return self._ranges_j[0] if len(set(self._ranges_j)) == 1 else None

    def add(self, counts_j: Sequence[float]) -> float:
        """The sum after the next reading of all counters, J."""
        if self.modulus_j is not None:
            return sum(counts_j) % self.modulus_j
        last_j = self._last_j or tuple(counts_j)
        for before_j, now_j, range_j in zip(last_j, counts_j, self._ranges_j, strict=True):
            self._turned_j += range_j if now_j < before_j else 0.0
        self._last_j = tuple(counts_j)
        return sum(counts_j) + self._turned_j


class Rapl(SysfsMeter):
    """RAPL energy counters of this host's processor, one zone or several added up."""

    name: ClassVar[str] = "rapl"
    make: ClassVar[str] = "Linux powercap"
    model: ClassVar[str] = "RAPL"
    semantics: ClassVar[Semantics] = Semantics.ENERGY_COUNTER
    folder: ClassVar[str] = "class/powercap"
    what: ClassVar[str] = "RAPL zone"
    advice_no_answer: ClassVar[str] = "check that the kernel has intel_rapl_common (modprobe intel_rapl_msr)"
    advice_permission: ClassVar[str] = (
        "the kernel lets only root read energy counters; run the logger as root, or let its group read them "
        "(chgrp GROUP and chmod g+r on the file, after each start of the host)"
    )
    provisional: ClassVar[tuple[str, ...]] = (_RENEWED, _PARTS)
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("update_interval_s", "Time between two looks at the counter.", 0.1),
        Setting("add_zones", "Zones to add to that of the resource, by folder, with commas between.", ""),
        Setting("lag_s", "Lag, when it is known.", None),
    )
    _chosen: tuple[Zone, ...] = ()
    _counters: CounterSum | None = None
    _last: tuple[int, float] | None = None

    @property
    def counter_modulus_j(self) -> float | None:
        """Range of the counter, J; None before ``open`` and for a sum that never starts again."""
        return None if self._counters is None else self._counters.modulus_j

    def _identify_device(self) -> Identification:
        present = {
            folder: self._text(f"{self.folder}/{folder}/name") for folder in self._devices() if ":" in folder
        }
        added = str(self.settings["add_zones"] or "").replace(",", " ").split()
        if self._device_name not in present:
            raise self._missing(f"{folder} ({name})" for folder, name in present.items())
        folders = chosen_zones(present, [self._device_name, *added])
        self._chosen = tuple(
            Zone(folder, present[folder], self._value(f"{self.folder}/{folder}/max_energy_range_uj", MICRO))
            for folder in folders
        )
        if self._counters is None:  # a new connection goes on counting
            self._counters = CounterSum([zone.range_j for zone in self._chosen])
        self._last = None
        self._fetch()
        text = " + ".join(f"{zone.folder} {zone.name}" for zone in self._chosen)
        return Identification(text, self.make, f"RAPL {'+'.join(zone.name for zone in self._chosen)}")

    def _fetch(self) -> Sample:
        assert self._counters is not None, "the zones are found when the meter is opened"
        counts_j = [self._value(f"{self.folder}/{zone.folder}/energy_uj", MICRO) for zone in self._chosen]
        energy_j = self._counters.add(counts_j)
        t_ns = self._clock.monotonic_ns()
        before, self._last = self._last, (t_ns, energy_j)
        return Sample(power_w=self._power_w(before, t_ns, energy_j), energy_j=energy_j)

    def confirm(self, updates: int = 5) -> list[Finding]:
        """Look how often the counter is renewed, ``updates`` times; call after ``open``.

        Raises:
            MeterError: when the counter stands still.
        """
        try:
            changes_ns = self._changes_ns(updates)
        except DialogueError as error:
            raise NoAnswer(f"the counter of {self._device_name} cannot be read any more: {error}") from error
        if len(changes_ns) <= updates:
            raise NoAnswer(
                f"the counter of {self._device_name} stands still, as in a virtual machine or an unused "
                "zone: name another zone"
            )
        renewed_s = (changes_ns[-1] - changes_ns[0]) / 1e9 / updates
        return [
            Finding(_RENEWED, renewed_s <= _RENEWED_WITHIN_S, f"renewed every {1e3 * renewed_s:.2f} ms"),
            Finding(_PARTS, None, "cannot be seen from here"),
        ]

    def _changes_ns(self, updates: int) -> list[int]:
        """When the counter was first seen with each new value, without a pause between looks."""
        changes_ns: list[int] = []
        last_j = self._fetch().energy_j
        for _ in range(_MOST_LOOKS):
            energy_j = self._fetch().energy_j
            if energy_j != last_j:
                last_j = energy_j
                changes_ns.append(self._clock.monotonic_ns())
            if len(changes_ns) > updates:
                break
        return changes_ns

    def _power_w(self, before: tuple[int, float] | None, t_ns: int, energy_j: float) -> float | None:
        """Mean power since the last look; only for people to see, energy is computed from the counter."""
        if before is None or t_ns <= before[0]:
            return None
        gained_j = energy_j - before[1]
        if gained_j < 0 and self.counter_modulus_j is not None:
            gained_j += self.counter_modulus_j
        return gained_j / ((t_ns - before[0]) / 1e9)


def chosen_zones(present: Mapping[str, str], wanted: Sequence[str]) -> list[str]:
    """The folders to add up.

    Args:
        present: name of each zone of this host, by folder (``intel-rapl:0`` -> ``package-0``).
        wanted: folders.

    Raises:
        UsageError: for a zone that is not there, is named twice or is part of another.
    """
    for folder in wanted:
        if folder not in present:
            there = ", ".join(f"{known} ({name})" for known, name in present.items())
            raise UsageError(f"rapl: add_zones names '{folder}', which is not there; there are {there}")
        if wanted.count(folder) > 1:
            raise UsageError(f"rapl: zone {folder} would be counted twice; name it once")
    for folder in wanted:
        for other in wanted:
            if folder.partition(":")[0] != other.partition(":")[0]:
                raise UsageError(
                    f"rapl: {folder} and {other} are two ways to count the same: name one of them"
                )
            inside = folder.startswith(f"{other}:") and present[folder] != "dram"
            whole = present[other] == "psys" and folder != other
            if inside or whole:
                raise UsageError(
                    f"rapl: {folder} ({present[folder]}) is part of {other} ({present[other]}) and would be "
                    "counted twice; name one of the two"
                )
    return list(wanted)
