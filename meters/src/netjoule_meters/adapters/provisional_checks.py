# SPDX-License-Identifier: Apache-2.0
"""What a look at a real instrument says about a statement that no document confirms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from netjoule_meters.errors import ConnectionLost, GarbageReply, NoAnswer, ReplyTimeout, UsageError
from netjoule_meters.reading import Flag, Reading


class Finding(NamedTuple):
    """One provisional statement after looking.

    Attributes:
        statement: what the adapter takes for granted, as in its ``provisional``.
        holds: whether what was seen agrees with it; None when nothing seen decides it.
        seen: what was seen, in words.
    """

    statement: str
    holds: bool | None
    seen: str


def sample_updates(read_update: Callable[[], Reading], updates: int, where: str) -> list[Reading]:
    """So many good readings; missed and damaged ones are passed over, up to as many again.

    Raises:
        UsageError: for less than 2.
        NoAnswer: when the instrument on ``where`` falls silent.
    """
    if updates < 2:
        raise UsageError("at least 2 readings are needed to see how often they come")
    readings: list[Reading] = []
    for _ in range(2 * updates):
        try:
            reading = read_update()
        except (ReplyTimeout, GarbageReply):
            continue
        except ConnectionLost as error:
            raise NoAnswer(f"the instrument on {where} went away ({error}): plug it in again") from error
        if reading.flag in (Flag.GOOD, Flag.OVERRANGE):
            readings.append(reading)
        if len(readings) == updates:
            return readings
    raise NoAnswer(
        f"the instrument on {where} gave {len(readings)} of {updates} readings: check that it shows a power"
    )


def spacing_s(readings: Sequence[Reading]) -> float:
    """Median time between two readings, s."""
    return median(later.t_ns - earlier.t_ns for earlier, later in pairwise(readings)) / 1e9
