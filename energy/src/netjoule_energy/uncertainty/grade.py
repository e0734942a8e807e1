# SPDX-License-Identifier: Apache-2.0
"""One letter for how far the meter's reading carries.

grade              accuracy and quantity of the meter        u95 / E         readings in the window
A                  known, active power                       at most 5 %     10 or more
B                  known or provisional, active power        at most 20 %    10 or more
C                  any                                       any             any
below_resolution   any                                       P_A - P_I under 3 u: E is an upper limit

Provisional is an accuracy that no document at hand confirms.

A grade speaks of metering only, neither of repeatability nor of a device model. What keeps a result from a
better grade is listed beside it (`grade_limits`).
"""

from __future__ import annotations

from dataclasses import dataclass

A_RATIO = 0.05
B_RATIO = 0.20
LEAST_READINGS = 10
AT_MOST_C = frozenset({"accuracy_unknown", "apparent_power", "few_readings"})


@dataclass(frozen=True, slots=True)
class Grade:
    """A letter (below_resolution; None without energy per work) and words against a better one.

    limits: accuracy_unknown, apparent_power, few_readings (each at most C), accuracy_provisional (at most
    B), wide (u95 over 5 % of E_A).
    """

    letter: str | None
    limits: tuple[str, ...]


def grade_of(
    energy_per_work_j: float | None,
    u95_energy_per_work_j: float | None,
    *,
    accuracy_known: bool,
    below_resolution: bool,
    readings: int,
    apparent_power: bool = False,
    accuracy_provisional: bool = False,
) -> Grade:
    """Return the grade of one result."""
    found = {
        "accuracy_unknown": not accuracy_known,
        "apparent_power": apparent_power,
        "few_readings": readings < LEAST_READINGS,
        "accuracy_provisional": accuracy_provisional,
    }
    limits = tuple(word for word, true in found.items() if true)
    if below_resolution and (u95_energy_per_work_j is not None or energy_per_work_j is not None):
        return Grade("below_resolution", limits)
    if energy_per_work_j is None or u95_energy_per_work_j is None:
        return Grade(None, ())
    ratio = u95_energy_per_work_j / energy_per_work_j if energy_per_work_j > 0 else float("inf")
    if ratio > A_RATIO:
        limits = (*limits, "wide")
    if ratio > B_RATIO or set(limits) & AT_MOST_C:
        return Grade("C", limits)
    return Grade("B" if limits else "A", limits)
