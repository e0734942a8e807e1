# SPDX-License-Identifier: Apache-2.0
"""What an exercise is: its campaign, its questions, and what must hold in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import netjoule_contracts as contracts
from netjoule.coursework.cells import OF_FLOWS, Cells
from netjoule.coursework.question import Answer, Number, Question, Right

WITHIN = 0.02
"""How far a number may lie from the campaign's own, as a share: three digits, and the last one wrong."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise.

    Attributes:
        name: folder of its campaign in what is handed in, and section of answers.yaml.
        title: what it is about.
        workload: name of the workload that its campaign is of.
        testbed: topology file of the campaign; empty for the default.
        preset: of the link in that topology; empty of a simulated one.
        told: by question, in order, what is right and what to look at.
        strays: sentences on what does not hold in a campaign though it must in the model: then the host was
            too busy, and the campaign answers nothing. Raises CannotTell.
        cell_factors: what tells cells of an arm apart.
    """

    name: str
    title: str
    workload: str
    testbed: str
    preset: str
    told: Mapping[str, tuple[Callable[[Cells], Right], str]]
    strays: Callable[[Cells], Iterator[str]]
    cell_factors: tuple[str, ...] = OF_FLOWS

    @property
    def questions(self) -> tuple[Question, ...]:
        """Its questions, as the contract of answers asks them."""
        sections = contracts.schema("coursework_answers")["properties"]["exercises"]["properties"]
        fields = sections[self.name]["properties"]
        return tuple(
            Question.of(name, fields[name], look_at, right) for name, (right, look_at) in self.told.items()
        )

    def run_command(self, folder: str) -> str:
        """The command that makes its campaign.

        Args:
            folder: what is handed in.
        """
        testbed = f" --testbed {self.testbed}" if self.testbed else ""
        return f"netjoule run {self.workload}{testbed} --out {folder}/{self.name}"


def always(choice: Answer) -> Callable[[Cells], Right]:
    """A question whose right choice is the same in every campaign that is not refused."""
    return lambda _cells: frozenset({choice})


def mean_of(
    transport: str,
    payload_bytes: int,
    rate_mbps: float,
    name: str,
    *,
    within: float = 0.0,
    least: float | None = None,
) -> Callable[[Cells], Right]:
    """A question for the mean over blocks of one quantity in one cell.

    Args:
        transport, payload_bytes, rate_mbps: the cell.
        name: of the quantity, as in `cells.Run`.
        within: how far an answer may lie from it in its own unit, where that is more than `WITHIN` of it.
        least: what no answer may be below.
    """

    def right(cells: Cells) -> Number:
        return Number(cells.at(transport, payload_bytes, rate_mbps).mean(name), WITHIN, within, least)

    return right
