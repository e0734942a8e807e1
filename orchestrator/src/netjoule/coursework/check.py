# SPDX-License-Identifier: Apache-2.0
"""Every answer of what is handed in, judged; executes nothing from it and reads nothing outside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from netjoule.core.errors import NetjouleError
from netjoule.core.safe_text import escaped
from netjoule.coursework import handin
from netjoule.coursework.campaign import campaign_cells
from netjoule.coursework.exercise import Exercise
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.question import Verdict, judge


def check(folder: Path, names: Sequence[str] = ()) -> tuple[list[Verdict], dict[str, NetjouleError]]:
    """Judge the answers of a folder.

    Args:
        folder: what is handed in: answers.yaml and a campaign per exercise.
        names: exercises, all unless told.

    Returns:
        verdicts, and by exercise why its campaign is refused: not safe to read, not sound or not the
        exercise's. No sentence holds anything that a terminal would obey.

    Raises:
        UsageError: when there is no such folder.
        InvalidData: when it is no coursework, or its answers are not safe to read.
    """
    try:
        handin.require_folder(folder)
        answers = handin.read_answers(folder)
    except NetjouleError as error:
        told = handin.safe(error)
    else:
        return _judged(folder, names or list(EXERCISES), answers)
    # Outside the handler: -v prints the causes of an error, and those quote what was handed in.
    raise told


def _judged(
    folder: Path, names: Sequence[str], answers: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Verdict], dict[str, NetjouleError]]:
    verdicts: list[Verdict] = []
    refused: dict[str, NetjouleError] = {}
    for name in names:
        try:
            verdicts += _of_exercise(folder, EXERCISES[name], answers.get(name, {}))
        except NetjouleError as error:
            refused[name] = handin.safe(error)
    return verdicts, refused


def _of_exercise(folder: Path, exercise: Exercise, answers: Mapping[str, Any]) -> Iterator[Verdict]:
    if not os.path.lexists(folder / exercise.name):
        words = f"there is no campaign yet: {exercise.run_command(escaped(str(folder)))}"
        for question in exercise.questions:
            yield Verdict(exercise.name, question.name, "missing", words)
        return
    cells = campaign_cells(folder, exercise)
    for question in exercise.questions:
        yield judge(exercise.name, question, answers.get(question.name), cells)
