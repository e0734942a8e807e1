# SPDX-License-Identifier: Apache-2.0
"""Whether the radios sent at the rates that the topology limits them to (wifi.rates). Pure.

No command of the kernel reads a rate mask back: what the radio's log has is held to it. Every mask leaves the
legacy rates open, which have no MCS; those, and what a reader does not tell, count as allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netjoule.core.words import counted
from netjoule.radio import RadioRecord

_GUARD_NS = {"long": 800, "short": 400}


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What both ends may send at; without any limit everything.

    Attributes:
        mcs: indices; empty: all.
        streams: exactly so many, or at most so many; None: any number.
    """

    mcs: frozenset[int] = frozenset()
    streams: int | None = None
    exactly: bool = False
    guard_interval_ns: int | None = None

    @classmethod
    def of(cls, wifi: Mapping[str, Any]) -> RateLimits:
        """From the topology's section `wifi`, checked; empty where there is none."""
        told = wifi.get("rates", "automatic")
        if not isinstance(told, Mapping):
            return cls()
        mcs = frozenset(int(index) for index in told.get("mcs") or ())
        streams = told.get("streams")
        return cls(
            mcs=mcs,
            streams=int(streams) if streams is not None else None,
            # As the mask is made (netjoule_radio.rate_mask): an index of 802.11n has its streams in it.
            exactly=bool(mcs) and wifi.get("mode") == "11ac",
            guard_interval_ns=_GUARD_NS.get(str(told.get("guard_interval"))),
        )

    def outside(self, record: RadioRecord) -> str:
        """Which rate of a record is not allowed, for people; empty when both are."""
        sent = self._outside(record.mcs, record.streams, record.guard_interval_ns)
        received = self._outside(record.rx_mcs, record.rx_streams, record.rx_guard_interval_ns)
        return f"sent at {sent}" if sent else f"received at {received}" if received else ""

    def _outside(self, mcs: int | None, streams: int | None, guard_interval_ns: int | None) -> str:
        if mcs is None and streams is None:
            return ""
        if mcs is not None and self.mcs and mcs not in self.mcs:
            return f"MCS {mcs}"
        if streams is not None and self.streams is not None:
            fits = streams == self.streams if self.exactly else streams <= self.streams
            if not fits:
                return counted(streams, "stream")
        if guard_interval_ns is not None and self.guard_interval_ns not in (None, guard_interval_ns):
            return f"a guard interval of {guard_interval_ns} ns"
        return ""
