# SPDX-License-Identifier: Apache-2.0
"""An emulated Yokogawa with constant power until told otherwise, and a clock that is turned by hand."""

from __future__ import annotations

from typing import Any

from netjoule_meters.emulated.power_analysers.wt310 import EmulatedWT310
from netjoule_meters.emulated.power_history import PowerInterval

ITEMS = ":NUM:NORM:ITEM1 U,1;ITEM2 I,1;ITEM3 P,1;ITEM4 URANGE,1;ITEM5 IRANGE,1;ITEM6 WH,1;ITEM7 TIME,1"


class Bench:
    """One instrument of ``kind``; on 300 V and 0.5 A unless ``ranges`` is False."""

    def __init__(self, kind: Any, power_w: float = 22.95, ranges: bool = True, **options: Any) -> None:
        self.instrument = kind(update_interval_s=0.1, **options)
        self.power_w = power_w
        self.now_s = 0.0
        prefix = ":INP" if kind is EmulatedWT310 else ":CONF"
        self.ask(":COMM:HEAD OFF;:STAT:QMES ON;:STAT:FILT1 FALL")
        if ranges:
            self.ask(f"{prefix}:VOLT:RANG 300;:{prefix[1:]}:CURR:RANG 0.5")
        if kind is EmulatedWT310:
            self.ask(ITEMS + ";:NUM:NORM:NUM 5")
        if "extra" not in options or options["extra"].baud_rate is None:
            assert self.ask(":STAT:ERR?") == '0,"No error"'

    def ask(self, line: str) -> str:
        """Send a line; what the instrument answers at once."""
        self.instrument.receive(line.encode() + b"\n")
        return str(self.instrument.step(self.now_s).decode().strip())

    def advance(self, updates: int = 1) -> str:
        """Let so many tenths of a second pass; what it sends meanwhile."""
        output = b""
        for _ in range(updates):
            self.instrument.feed(PowerInterval(self.now_s, self.now_s + 0.1, self.power_w))
            self.now_s = round(self.now_s + 0.1, 6)
            output += self.instrument.step(self.now_s)
        return output.decode().strip()
