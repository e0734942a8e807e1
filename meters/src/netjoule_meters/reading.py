# SPDX-License-Identifier: Apache-2.0
"""One reading of a power meter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Flag(StrEnum):
    """Why a row is not a good reading (contract ``meters.table.json``)."""

    GOOD = ""
    OVERRANGE = "overrange"
    NO_DATA = "no_data"
    TIMEOUT = "timeout"
    RECONNECT = "reconnect"
    GARBAGE = "garbage"
    PEAK_OVER = "peak_over"
    DUPLICATE = "duplicate"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the instrument showed at one update, or the note that it showed nothing.

    Attributes:
        t_ns: CLOCK_MONOTONIC at the midpoint of the query, or of the first byte of a pushed message, ns.
        power_w: power, W (which: the passport's ``quantity``); None when the instrument gave no number.
        voltage_v: voltage, V.
        current_a: current, A.
        energy_j: energy counter, J, as counted by the instrument; only counters have it.
        flag: empty for a good reading.
    """

    t_ns: int
    power_w: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    energy_j: float | None = None
    flag: Flag = Flag.GOOD
