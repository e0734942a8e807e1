# SPDX-License-Identifier: Apache-2.0
"""A question, what is right of it in a campaign, and whether an answer is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netjoule.coursework.cells import CannotTell, Cells

Answer = float | int | str | bool
"""What can stand in answers.yaml."""

# What an answer may be off by when the right number was taken for another unit, and what to say then.
_SLIPS = (
    (1000.0, "it is off by a factor of 1000: look at the unit"),
    (0.001, "it is off by a factor of 1000: look at the unit"),
    (8.0, "it is off by a factor of 8: bits or bytes"),
    (0.125, "it is off by a factor of 8: bits or bytes"),
    (100.0, "it is off by a factor of 100: percent or a ratio"),
    (-1.0, "it has the other sign"),
)


@dataclass(frozen=True, slots=True)
class Number:
    """A right number, and how far an answer may lie from it.

    Attributes:
        value: in the unit of the question.
        within_ratio: as a share of the value.
        within: in the unit of the question; the wider of the two holds.
        least: what no answer may be below, whatever it may be off by; None where there is no such number.
    """

    value: float
    within_ratio: float = 0.0
    within: float = 0.0
    least: float | None = None

    def holds(self, answer: Answer) -> bool:
        """Whether an answer is right."""
        if isinstance(answer, (bool, str)) or self._is_too_low(answer):
            return False
        return abs(answer - self.value) <= max(self.within, self.within_ratio * abs(self.value))

    def slip(self, answer: Answer) -> str:
        """What a wrong answer looks like, in words; empty when it looks like nothing known."""
        if isinstance(answer, (bool, str)):
            return ""
        if self._is_too_low(answer):
            return f"it cannot be below {self.least:g}"
        if self.value == 0:
            return ""
        near = (
            words for factor, words in _SLIPS if Number(self.value, self.within_ratio).holds(answer / factor)
        )
        return next(near, "")

    def _is_too_low(self, answer: float) -> bool:
        return self.least is not None and answer < self.least


Right = Number | frozenset[Answer]
"""What is right: a number, or one of some choices; several where there is no clear difference."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of an exercise.

    Attributes:
        name: field of answers.yaml; its end says the unit.
        asks: the question.
        look_at: what to look at when the answer is wrong; never the answer.
        right: what is right in a campaign. Raises CannotTell.
        choices: what may be answered; empty for a number.
        unit: of a number.
    """

    name: str
    asks: str
    look_at: str
    right: Callable[[Cells], Right]
    choices: tuple[Answer, ...] = ()
    unit: str = "1"

    @classmethod
    def of(
        cls, name: str, field: Mapping[str, Any], look_at: str, right: Callable[[Cells], Right]
    ) -> Question:
        """That of a field of the contract of answers, in which null is an open question."""
        choices = (True, False) if "boolean" in field["type"] else field.get("enum", [None])[:-1]
        return cls(name, field["description"], look_at, right, tuple(choices), field.get("unit", "1"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one answer.

    Attributes:
        verdict: ``right``, ``wrong``, ``missing`` (no answer, or no campaign) or ``undecided``.
        words: what to look at or to do; empty when it is right.
    """

    exercise: str
    question: str
    verdict: str
    words: str


def judge(exercise: str, question: Question, answer: Answer | None, cells: Cells) -> Verdict:
    """Compare an answer with what the campaign says."""
    if answer is None:
        return Verdict(exercise, question.name, "missing", question.asks)
    try:
        right = question.right(cells)
    except CannotTell as why:
        return Verdict(exercise, question.name, "undecided", f"this campaign does not tell: {why}")
    if answer in right if isinstance(right, frozenset) else right.holds(answer):
        return Verdict(exercise, question.name, "right", "")
    slip = "" if isinstance(right, frozenset) else right.slip(answer)
    words = f"{slip}; {question.look_at}" if slip else question.look_at
    return Verdict(exercise, question.name, "wrong", words)
