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


@dataclass(frozen=True, slots=True)
class Reading:
    """Means over one update interval, or the note that there is none.

    Attributes:
        t_ns: CLOCK_MONOTONIC at the midpoint of the query, ns.
        power_w: active power, W; None when the instrument gave no number.
        voltage_v: voltage, V.
        current_a: current, A.
        flag: empty for a good reading.
    """

    t_ns: int
    power_w: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    flag: Flag = Flag.GOOD
