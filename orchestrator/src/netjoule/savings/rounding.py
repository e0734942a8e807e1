# SPDX-License-Identifier: Apache-2.0
"""Printed digits against exact numbers: what was rounded, cut off, or carried on from fewer digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor

ROUNDED = "rounded"
TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a printed number stands to the exact one.

    Attributes:
        printed: as the publication prints it.
        exact: the exact number, to a few more digits than printed.
        rounded: what rounding to the printed digits gives.
        truncated: what cutting them off gives.
        before: the printed number of the step before; empty where there is none.
        from_printed: what that leads to, in the digits of this one.
        is_exact: whether nothing was lost in printing.
    """

    printed: str
    exact: str
    rounded: str
    truncated: str
    before: str
    from_printed: str
    is_exact: bool

    @property
    def words(self) -> str:
        """The judgement in a sentence, without what is printed."""
        if self.is_exact:
            found = "exact"
        elif self.printed == self.rounded:
            found = f"{self.exact} computed, rounded"
        elif self.printed == self.truncated:
            found = f"{self.exact} computed, cut off: rounding gives {self.rounded}"
        else:
            found = f"{self.exact} computed, which gives {self.rounded}"
        if self.from_printed and self.from_printed != self.printed:
            found += f"; from the printed {self.before} it would be {self.from_printed}"
        return found


def judge(values: Sequence[Fraction], printed: Sequence[str], place: int, cut: str) -> Judgement:
    """Hold the printed number at ``place`` of a chain to the exact ones.

    Args:
        values: exact results of the chain, above 0, each a multiple of the one before.
        printed: what is printed for each.
        place: which one, from 0.
        cut: how the publication shortens it, for `from_printed`.
    """
    value, text = values[place], printed[place]
    before = printed[place - 1] if place else ""
    carried = Fraction(Decimal(before)) * value / values[place - 1] if before else value
    return Judgement(
        printed=text,
        exact=f"{float(value):.7g}",
        rounded=cut_to(value, text, ROUNDED),
        truncated=cut_to(value, text, TRUNCATED),
        before=before,
        from_printed=cut_to(carried, text, cut) if before else "",
        is_exact=Fraction(Decimal(text)) == value,
    )


def cut_to(value: Fraction, like: str, cut: str) -> str:
    """A number in as many digits, and in the same form, as a printed one.

    Args:
        value: at least 0.
        like: a printed number, such as ``78.15`` or ``6.513e11``; its digits decide, its value does not.
        cut: ``rounded`` (half up) or ``truncated``.
    """
    exponent = Decimal(like).as_tuple().exponent
    assert isinstance(exponent, int), like
    scaled = value / Fraction(10) ** exponent
    whole = floor(scaled + Fraction(1, 2)) if cut == ROUNDED else floor(scaled)
    number = Decimal(whole).scaleb(exponent)
    if "e" not in like:
        return f"{number:f}"
    decimals = len(like.partition("e")[0].partition(".")[2])
    mantissa, _, power = f"{number:.{decimals}e}".partition("e")
    return f"{mantissa}e{int(power)}"
