# SPDX-License-Identifier: Apache-2.0
"""The value lists of Yokogawa's WT200 family (IM 760401-01E p. 14-32).

Values are NR3 (``123.45E+00``). ``9.9E+37`` means over-range or overflow, ``9.91E+37`` no data, and the
two are kept apart. The integration time is the trap: it is ``h,m,s``, three fields inside the comma list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import Enum

from netjoule_meters.errors import GarbageReply

# Fixed order of output, whatever the order in which items were switched on.
ITEM_ORDER = (
    *("V", "A", "W", "VA", "VAR", "PF", "DEGR", "VHZ", "AHZ", "WH", "WHP", "WHM", "AH", "AHP", "AHM"),
    *("TIME", "VPK", "APK", "MATH"),
)
OVERRANGE_TEXT = "9.9E+37"
NO_DATA_TEXT = "9.91E+37"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([Ee][+-]?\d{1,3})?")


class Gap(Enum):
    """What stands where a number should be."""

    OVERRANGE = "overrange"
    NO_DATA = "no_data"


Value = float | Gap


def parse_value(field: str) -> float | Gap:
    """One NR3 field; blanks around it are allowed (phase 0 is sent as `` 0.0E+00``).

    Raises:
        GarbageReply: when it is not a number.
    """
    text = field.strip()
    if text.upper() in ("NAN", "INF", "+INF", "-INF"):  # words of the younger WT300 family
        return Gap.NO_DATA if text.upper() == "NAN" else Gap.OVERRANGE
    if not _NUMBER.fullmatch(text):
        raise GarbageReply(f"{field[:40]!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        return Gap.OVERRANGE
    if abs(value) >= 9.905e37:
        return Gap.NO_DATA
    return Gap.OVERRANGE if abs(value) >= 9.8e37 else value


def parse_values(reply: str, items: Sequence[str]) -> dict[str, Value]:
    """The answer to ``MEASURE:NORMAL:VALUE?`` for the items that are switched on, by item; TIME in s.

    Raises:
        GarbageReply: when the number of fields is not what the items need.
    """
    ordered = [item for item in ITEM_ORDER if item in items]
    fields = reply.split(",")
    wanted = len(ordered) + (2 if "TIME" in ordered else 0)
    if len(fields) != wanted:
        raise GarbageReply(f"{reply[:80]!r} has {len(fields)} fields instead of {wanted}")
    values: dict[str, Value] = {}
    position = 0
    for item in ordered:
        if item == "TIME":
            values[item] = _parse_elapsed(fields[position : position + 3])
            position += 3
        else:
            values[item] = parse_value(fields[position])
            position += 1
    return values


def _parse_elapsed(fields: Sequence[str]) -> Value:
    """Integration time, s."""
    first = fields[0].strip()
    if "E" in first.upper():  # no integration yet: NO_DATA in each field
        return parse_value(first)
    if not all(field.strip().isdecimal() and field.strip().isascii() for field in fields):
        raise GarbageReply(f"{','.join(fields)[:40]!r} is not a time h,m,s")
    hours, minutes, seconds = (int(field) for field in fields)
    if minutes > 59 or seconds > 59:
        raise GarbageReply(f"{','.join(fields)!r} is not a time h,m,s")
    return float(3600 * hours + 60 * minutes + seconds)
