# SPDX-License-Identifier: Apache-2.0
"""A new folder to hand in: the sheet for answers, the report to write and, where asked, shipped campaigns."""

from __future__ import annotations

import shutil
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from netjoule import files, programs
from netjoule.coursework.exercise import Exercise
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.handin import ANSWERS
from netjoule.coursework.question import Answer, Question
from netjoule.errors import InvalidData, UsageError, file_errors

__all__ = ["REPORT", "answer_sheet", "golden_bundle", "start"]

REPORT = "report.Rmd"
_TEMPLATE = "analysis-r/inst/rmarkdown/templates/netjoule-coursework/skeleton/skeleton.Rmd"
_WIDTH = 110


def start(folder: Path, *, golden: bool = False) -> list[Path]:
    """Make the folder.

    Args:
        folder: must not exist, or be empty.
        golden: also unpack the campaigns that the repository ships.

    Returns:
        what was made.

    Raises:
        UsageError: when the folder holds something.
        HostLacks: when this is not a source tree.
        RunFailed: when it cannot be written.
    """
    with file_errors("create", folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} exists and is not empty", next_step="choose another folder")
    template = programs.shipped(_TEMPLATE)
    bundles = [golden_bundle(exercise) for exercise in EXERCISES.values()] if golden else []
    files.write_atomic(folder / ANSWERS, answer_sheet())
    with file_errors("write", folder / REPORT):
        shutil.copyfile(template, folder / REPORT)
    made = [folder / ANSWERS, folder / REPORT]
    for exercise, bundle in zip(EXERCISES.values(), bundles, strict=False):
        unpack(bundle, folder / exercise.name)
        made.append(folder / exercise.name)
    return made


def golden_bundle(exercise: Exercise) -> Path:
    """The shipped campaign of an exercise, as `netjoule publish` packed it."""
    return programs.shipped(f"results/golden/{exercise.workload}.zip")


def unpack(bundle: Path, folder: Path) -> None:
    """Unpack a published campaign as a folder of another name.

    Args:
        bundle: a ZIP file with one folder in it.
        folder: where; must not exist.

    Raises:
        InvalidData: when the bundle holds anything else.
        RunFailed: when it cannot be read or written.
    """
    with file_errors("unpack", bundle):
        try:
            with zipfile.ZipFile(bundle) as packed:
                for entry in packed.infolist():
                    place = _inside(PurePosixPath(entry.filename), bundle)
                    if entry.is_dir():
                        continue
                    target = folder / place
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(packed.read(entry))
        except zipfile.BadZipFile as error:
            raise InvalidData("not a ZIP file", where=str(bundle), next_step="restore it") from error


def _inside(name: PurePosixPath, bundle: Path) -> PurePosixPath:
    """A path without the bundle's own folder."""
    _, *rest = name.parts or ("",)
    if name.is_absolute() or ".." in name.parts or not rest:
        raise InvalidData(f"it holds {str(name)!r}", where=str(bundle), next_step="restore it")
    return PurePosixPath(*rest)


def answer_sheet() -> str:
    """answers.yaml with every question and no answer."""
    lines = [
        "# Answers to docs/coursework.md. Put each answer in the place of null: numbers as the tables have",
        "# them, with three digits or more; choices as they stand here. Then:",
        "# netjoule coursework check DIR",
        "schema_version: 1",
        "kind: coursework_answers",
        "exercises:",
    ]
    for exercise in EXERCISES.values():
        lines += ["", f"  # {exercise.title}: {exercise.run_command('DIR')}", f"  {exercise.name}:"]
        for number, question in enumerate(exercise.questions, start=1):
            lines += _asked(number, question)
    return "\n".join(lines) + "\n"


def _asked(number: int, question: Question) -> Iterator[str]:
    wanted = f"One of: {', '.join(map(_word, question.choices))}" if question.choices else _unit(question)
    yield from textwrap.wrap(
        f"{number}. {question.asks} {wanted}.",
        _WIDTH,
        initial_indent="    # ",
        subsequent_indent="    # ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield f"    {question.name}: null"


def _unit(question: Question) -> str:
    return "A number" if question.unit == "1" else f"In {question.unit}"


def _word(choice: Answer) -> str:
    """A choice as YAML has it."""
    return str(choice).lower() if isinstance(choice, bool) else str(choice)
