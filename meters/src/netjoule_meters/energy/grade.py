# SPDX-License-Identifier: Apache-2.0
"""One letter for how far the meter's reading carries.

grade              the meter's accuracy is   u95 / E_A       readings in the window
A                  known                     at most 5 %     10 or more
B                  known                     at most 20 %    10 or more
C                  known or unknown          any             any
below_resolution   any                       P_A - P_I under 3 u: E_A is an upper limit

A grade speaks of metering only, neither of repeatability nor of a device model.
"""

from __future__ import annotations

A_RATIO = 0.05
B_RATIO = 0.20
LEAST_READINGS = 10


def grade_of(
    ea_j_per_mbit: float | None,
    u95_ea_j_per_mbit: float | None,
    *,
    accuracy_known: bool,
    below_resolution: bool,
    readings: int,
) -> str | None:
    """Return "A", "B", "C" or "below_resolution"; None when there is no E_A to grade."""
    if below_resolution and u95_ea_j_per_mbit is not None:
        return "below_resolution"
    if ea_j_per_mbit is None or u95_ea_j_per_mbit is None:
        return None
    if not accuracy_known or readings < LEAST_READINGS:
        return "C"
    if u95_ea_j_per_mbit <= A_RATIO * ea_j_per_mbit:
        return "A"
    return "B" if u95_ea_j_per_mbit <= B_RATIO * ea_j_per_mbit else "C"
