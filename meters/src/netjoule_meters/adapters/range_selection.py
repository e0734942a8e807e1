# SPDX-License-Identifier: Apache-2.0
"""Which fixed range suits what a ranging pass saw.

Autorange leaves holes in the data, so a campaign runs in one range: the least whose rated value lies at
least 10 % above the highest value of the pass. Ranges come in steps, so there may be more head-room than
that; at 20 % above the highest value the next range is never needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from netjoule_meters.errors import UsageError

HEAD_ROOM = 1.1


def with_head_room(highest: float, unit: str) -> float:
    """What a range must hold at least, in ``unit``.

    Raises:
        UsageError: when nothing was seen.
    """
    if not highest:
        raise UsageError(
            f"the ranging pass saw no {unit}: check that the load is on and that the meter shows {unit}, "
            "or set its ranges by hand"
        )
    return HEAD_ROOM * abs(highest)


def least_range(ranges: Sequence[float], highest: float, unit: str) -> float:
    """The least of ``ranges`` (rated values, in ``unit``) that holds ``highest`` with head-room.

    Raises:
        UsageError: when none does, or nothing was seen.
    """
    wanted = with_head_room(highest, unit)
    for candidate in sorted(ranges):
        if candidate >= wanted:
            return candidate
    raise UsageError(
        f"no range holds {highest:g} {unit} with 10 % head-room: the greatest is {max(ranges):g} {unit}; "
        "use another meter or a current transformer"
    )
