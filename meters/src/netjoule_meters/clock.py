# SPDX-License-Identifier: Apache-2.0
"""The only place that reads a clock. Everything else is given a ``Clock`` or a time."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Protocol


class Clock(Protocol):
    """Source of monotonic time."""

    def monotonic_ns(self) -> int:
        """Nanoseconds on CLOCK_MONOTONIC."""


class SystemClock:
    """CLOCK_MONOTONIC of this host."""

    def monotonic_ns(self) -> int:
        """Nanoseconds on CLOCK_MONOTONIC."""
        return time.monotonic_ns()


def campaign_time_s(t_ns: int, origin_ns: int) -> float:
    """Campaign time in s of the monotonic instant ``t_ns``, for a session that began at ``origin_ns``."""
    return (t_ns - origin_ns) / 1e9


def today() -> date:
    """Today's date in UTC; only compared with calibration dates."""
    return datetime.now(UTC).date()
