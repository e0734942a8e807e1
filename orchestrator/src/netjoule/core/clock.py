# SPDX-License-Identifier: Apache-2.0
"""Time as an argument: the one place where the orchestrator reads clocks or sleeps.

Everything is measured on CLOCK_MONOTONIC; campaign time `t_s` is seconds since the campaign's start on
the controller's clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol


class Clock(Protocol):
    """What the runner needs of time; tests give it one that jumps."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC of this host, nanoseconds."""

    def utc_now(self) -> datetime:
        """Wall-clock time, aware, UTC."""

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return when `monotonic_ns()` has reached `deadline_ns`; at once when it is past."""


class SystemClock:
    """The host's clocks."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC, nanoseconds."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def utc_now(self) -> datetime:
        """Wall-clock time, aware, UTC."""
        return datetime.now(UTC)

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        """Sleep once, without polling; asyncio's timer may wake up to a clock tick early."""
        import asyncio

        while (left_ns := deadline_ns - self.monotonic_ns()) > 0:
            await asyncio.sleep(left_ns / 1e9)


@dataclass(frozen=True)
class CampaignTime:
    """Maps this host's CLOCK_MONOTONIC to campaign time and back."""

    clock: Clock
    origin_ns: int

    def now_s(self) -> float:
        """Campaign time now, seconds."""
        return self.from_ns(self.clock.monotonic_ns())

    def from_ns(self, monotonic_ns: int) -> float:
        """Campaign time in seconds of a CLOCK_MONOTONIC reading in nanoseconds."""
        return (monotonic_ns - self.origin_ns) / 1e9

    async def sleep_until(self, t_s: float) -> None:
        """Return at campaign time `t_s` seconds."""
        await self.clock.sleep_until_ns(self.origin_ns + round(t_s * 1e9))


def offset_ns_at(row: Mapping[str, Any], t_s: float) -> int:
    """A host's clock minus the controller's at campaign time `t_s`, nanoseconds, by its row of clocks.csv.

    The row's drift is carried on; without one the offset stays.
    """
    drift_ppm = row["drift_ppm"] or 0.0
    return round(1e9 * float(row["offset_s"]) + 1e3 * float(drift_ppm) * (t_s - float(row["t_s"])))


def boot_id() -> str:
    """Identity of this host's running kernel: equal ids mean one and the same CLOCK_MONOTONIC."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def wall_and_monotonic_ns(clock: Clock) -> tuple[int, int]:
    """Wall clock (ns since 1970) and CLOCK_MONOTONIC (ns), read together."""
    return round(clock.utc_now().timestamp() * 1e6) * 1000, clock.monotonic_ns()
