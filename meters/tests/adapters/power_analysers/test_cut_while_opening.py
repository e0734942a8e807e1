# SPDX-License-Identifier: Apache-2.0
"""An instrument that goes away, falls silent or sends noise at any moment of its set-up: one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from meter_dialogue import SILENCE, Dialogue

from netjoule_meters.adapters.base import Meter
from netjoule_meters.adapters.power_analysers.hm8115 import HM8115
from netjoule_meters.adapters.power_analysers.ptd import Ptd
from netjoule_meters.adapters.power_analysers.wt210 import WT210
from netjoule_meters.adapters.power_analysers.wt310 import WT310
from netjoule_meters.errors import ConnectionLost, DialogueError, GarbageReply, MeterError, ReplyTimeout

from . import test_hm8115_dialogue, test_ptd, test_wt210_dialogue, test_wt310_dialogue

OPENINGS: list[tuple[type[Meter], Any]] = [
    (HM8115, test_hm8115_dialogue),
    (Ptd, test_ptd),
    (WT210, test_wt210_dialogue),
    (WT310, test_wt310_dialogue),
]


class Cut:
    """A dialogue whose line fails at its operation ``at``; later ones find an instrument that is silent."""

    def __init__(self, entries: list[Any], at: int, error: type[DialogueError]) -> None:
        self.resource = "dialogue"
        self.first_byte_ns = 0
        self.left = at
        self.closed = False
        self._inner = Dialogue([*entries, *[(None, SILENCE)] * 100])
        self._error = error

    def open(self) -> None:
        self._inner.open()

    def close(self) -> None:
        self.closed = True

    def cancel(self) -> None:
        self._inner.cancel()

    def write_line(self, line: bytes) -> None:
        self._count()
        if self.left > 0:
            self._inner.write_line(line)

    def read_line(self, timeout_s: float) -> bytes:
        self._count()
        if self.left <= 0:
            raise ReplyTimeout(f"no answer within {timeout_s:g} s")
        return self._inner.read_line(timeout_s)

    def drain(self, quiet_s: float) -> None:
        self._count()
        self._inner.drain(quiet_s)

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self._error("cut")


@pytest.mark.parametrize("error", [ConnectionLost, ReplyTimeout, GarbageReply])
@pytest.mark.parametrize(("kind", "pinned"), OPENINGS, ids=[kind.name for kind, _ in OPENINGS])
def test_a_line_that_fails_at_any_moment_of_opening_is_one_sentence(clock, kind, pinned, error):
    at, whole = 0, False
    while not whole:
        at += 1
        line = Cut(pinned.OPEN, at, error)
        meter = kind(line, pinned.SETTINGS, clock=clock)
        try:
            meter.open()
            whole = line.left > 0
            assert whole, f"opened although its line failed at operation {at}"
        except MeterError as told:
            assert "\n" not in str(told) and line.closed
    assert at > len(pinned.OPEN), "every question and every answer was one of these moments"
