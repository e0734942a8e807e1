# SPDX-License-Identifier: Apache-2.0
"""Faults that an emulated instrument has when it is asked to: what happens to its cable, bytes and display.

Sans-IO: requests, bytes and power go in, bytes and power come out, the time is an argument. An instrument
knows nothing of it; faults that only one kind of instrument has are its own (``take_fault``).

==========  =========================  ==============================================================
fault       with                       what happens
==========  =========================  ==============================================================
disconnect  seconds (2)                the cable is out: the port is gone, then back under its name
silence     seconds (2)                it hears nothing and says nothing, the port stays
freeze      seconds (5)                the display stands still: the last power is measured on and on
garbage     bytes (24), with_answer    a burst of random bytes on the line, at once (0) or ahead of the
            (0)                        next answer (1: for ports that only answer)
split       seconds (5), gap_s (0.02)  what it says comes in pieces of 1 to 5 bytes
drop        count (1)                  its next answers are lost
==========  =========================  ==============================================================
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, Protocol, runtime_checkable

from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.errors import UsageError

FAULTS: Mapping[str, Mapping[str, float]] = {
    "disconnect": {"seconds": 2.0},
    "silence": {"seconds": 2.0},
    "freeze": {"seconds": 5.0},
    "garbage": {"bytes": 24, "with_answer": 0},
    "split": {"seconds": 5.0, "gap_s": 0.02},
    "drop": {"count": 1},
}
_LARGEST = {"seconds": 86400.0, "bytes": 4096, "with_answer": 1, "gap_s": 1.0, "count": 10000}
_LONGEST_PIECE = 5
_NEVER = -math.inf


@runtime_checkable
class TakesFaults(Protocol):
    """An instrument with faults of its own."""

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """Have the fault ``name``; False when this instrument knows none of that name."""


def parse_request(data: bytes) -> dict[str, Any]:
    """The request in one datagram, a JSON object with the key ``fault``.

    Raises:
        UsageError: when it is none.
    """
    try:
        request = json.loads(data)
    except ValueError as error:
        raise UsageError(f"a fault is asked for as JSON, not {data[:60]!r} ({error})") from None
    if not isinstance(request, dict) or not isinstance(request.get("fault"), str):
        raise UsageError(f'a fault is asked for as {{"fault": NAME, ...}}, not {data[:60]!r}')
    return request


class Faults:
    """What goes wrong with one instrument now. Times are campaign seconds; ``seed`` draws the bytes."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)  # noqa: S311 - line noise, not a secret
        self._until_s = dict.fromkeys(("disconnect", "silence", "freeze", "split"), _NEVER)
        self._gap_s = 0.0
        self._noise = b""
        self._noise_waits = False
        self._to_drop = 0
        self._frozen_w: float | None = None
        self._pieces: deque[bytes] = deque()
        self._next_piece_s = _NEVER

    def request(self, request: Mapping[str, Any], now_s: float) -> None:
        """Have a fault from now on.

        Raises:
            UsageError: for an unknown fault or argument.
        """
        name = request["fault"]
        if name not in FAULTS:
            raise UsageError(f"no fault '{name}': there are {', '.join(FAULTS)}")
        values = _arguments(name, request)
        if name in self._until_s:
            self._until_s[name] = now_s + values["seconds"]
            self._gap_s = values.get("gap_s", self._gap_s)
            if name in ("disconnect", "silence"):
                self._pieces.clear()
        elif name == "garbage":
            self._noise += self._random.randbytes(int(values["bytes"]))
            self._noise_waits = values["with_answer"] > 0
        else:
            self._to_drop += int(values["count"])

    def plugged(self, now_s: float) -> bool:
        """Whether the cable is in."""
        return now_s >= self._until_s["disconnect"]

    def filter_power(self, interval: PowerInterval, now_s: float) -> PowerInterval:
        """Power as the instrument takes it in."""
        if now_s >= self._until_s["freeze"]:
            self._frozen_w = None
            return interval
        if self._frozen_w is None:
            self._frozen_w = interval.power_w
        return replace(interval, power_w=self._frozen_w)

    def filter_input(self, data: bytes, now_s: float) -> bytes:
        """Bytes from clients as the instrument hears them."""
        return data if self._talks(now_s) else b""

    def queue_output(self, data: bytes, now_s: float) -> None:
        """Bytes that the instrument says; `due` gives them back."""
        if not self._talks(now_s):
            self._noise = b""
            return
        if data and self._to_drop > 0:
            self._to_drop -= 1
            data = b""
        if data or not self._noise_waits:
            data, self._noise = self._noise + data, b""
        if not data:
            return
        if self._pieces or now_s < self._until_s["split"]:
            self._pieces.extend(self._split(data))
            self._next_piece_s = max(self._next_piece_s, now_s)
        else:
            self._pieces.append(data)

    def output_due(self, now_s: float) -> list[tuple[bytes, bool]]:
        """What reaches the line now, each with whether more of it follows later."""
        found = []
        while self._pieces and now_s >= self._next_piece_s:
            found.append((self._pieces.popleft(), bool(self._pieces)))
            if now_s < self._until_s["split"]:
                self._next_piece_s = now_s + self._gap_s
        return found

    def wake_s(self, now_s: float) -> float | None:
        """When the next thing of its own happens."""
        moments = [self._until_s["disconnect"]]
        if self._pieces:
            moments.append(self._next_piece_s)
        return min((moment_s for moment_s in moments if moment_s > now_s), default=None)

    def _talks(self, now_s: float) -> bool:
        return self.plugged(now_s) and now_s >= self._until_s["silence"]

    def _split(self, data: bytes) -> list[bytes]:
        pieces = []
        while data:
            length = self._random.randint(1, _LONGEST_PIECE)
            pieces.append(data[:length])
            data = data[length:]
        return pieces


def _arguments(name: str, request: Mapping[str, Any]) -> dict[str, float]:
    """Values of a request over their defaults."""
    values = dict(FAULTS[name])
    for key, value in request.items():
        if key == "fault":
            continue
        if key not in values:
            raise UsageError(f"the fault '{name}' has no '{key}': it takes {', '.join(values)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST[key]:
            raise UsageError(f"'{key}' of the fault '{name}' is a number from 0 to {_LARGEST[key]:g}")
        values[key] = float(value)
    return values
