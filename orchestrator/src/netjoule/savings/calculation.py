# SPDX-License-Identifier: Apache-2.0
"""The calculation from a difference of E_A to energy and households, in exact arithmetic.

Minutes of calls times bit rate are megabits, times J/Mb joules, over what a household uses households. Every
step is a product with exact constants, so an uncertainty of the difference goes through it as a factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

_S_PER_MINUTE = 60
_J_PER_KWH = 3_600_000
_S_PER_DAY = 86_400
LEAST, MOST = 1e-12, 1e18
"""Bounds of the size of every number of the chain but 0: all minutes that mankind has in a year are 4e15."""


def exact(number: float | int | str) -> Fraction:
    """A number as it is written, not as binary floating point holds it: 0.1 is one tenth."""
    return Fraction(str(number))


def is_in_bounds(number: float) -> bool:
    """Whether the chain can take a number: 0, or of a size from LEAST to MOST."""
    return number == 0 or LEAST <= abs(number) <= MOST


@dataclass(frozen=True, slots=True)
class Question:
    """What the difference is multiplied with.

    Attributes:
        minutes: minutes of calls in a year.
        bit_rate_kbps: bit rate of a call in one direction, 10^3 bit per second.
        household_kwh: electricity that one household uses in a year, kWh.
    """

    minutes: Fraction
    bit_rate_kbps: Fraction
    household_kwh: Fraction

    @property
    def megabits(self) -> Fraction:
        """Payload of all calls in one direction, Mb = 10^6 bit."""
        return self.minutes * _S_PER_MINUTE * self.bit_rate_kbps / 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One result of the chain.

    Attributes:
        step: name in reference.schema.json.
        unit: its unit.
        value: exact.
        u95: 95 % half-width in the same unit; None when that of the difference is unknown. Minutes, bit
            rate and household are taken as exact.
    """

    step: str
    unit: str
    value: Fraction
    u95: Fraction | None


@dataclass(frozen=True, slots=True)
class Calculation:
    """The chain for one difference of E_A.

    Attributes:
        question: what it is multiplied with.
        saved: what a megabit takes less than over UDP, J/Mb: minus the difference of E_A, so below 0 where
            the other transport costs more.
        u95_saved: its 95 % half-width, J/Mb; None when unknown.
    """

    question: Question
    saved: Fraction
    u95_saved: Fraction | None

    @property
    def energy_j(self) -> Fraction:
        """Energy saved in the year, J."""
        return self.question.megabits * self.saved

    def steps(self) -> Iterator[Step]:
        """Results in the order of the publication: Mb, TJ, GWh, households."""
        yield Step("megabits", "Mb", self.question.megabits, Fraction(0))
        j_per_unit = {
            ("energy_tj", "TJ"): Fraction(10**12),
            ("energy_gwh", "GWh"): Fraction(_J_PER_KWH * 10**6),
            ("homes", "homes"): _J_PER_KWH * self.question.household_kwh,
        }
        for (name, unit), joules in j_per_unit.items():
            per_saved = self.question.megabits / joules
            u95 = None if self.u95_saved is None else per_saved * self.u95_saved
            yield Step(name, unit, per_saved * self.saved, u95)


def mean_power_w(chain: Calculation, days: int) -> Fraction:
    """Mean power of the energy over a year of so many days, W."""
    return chain.energy_j / (days * _S_PER_DAY)
