# SPDX-License-Identifier: Apache-2.0
"""A new folder to hand in: the sheet for answers, the report to write and, where asked, shipped campaigns."""

from __future__ import annotations

import errno
import shutil
import textwrap
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from netjoule.core import files, programs
from netjoule.core.errors import InvalidData, RunFailed, UsageError, file_errors
from netjoule.coursework.exercise import Exercise
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.handin import ANSWERS
from netjoule.coursework.question import Question

REPORT = "report.Rmd"
_TEMPLATE = "analysis-r/inst/rmarkdown/templates/netjoule-coursework/skeleton/skeleton.Rmd"
_WIDTH = 110
_MORE_SPACE = "free some space, then give the command again"
_WRITABLE = "choose a folder that you may write in"
_ANOTHER = "choose another folder"
# There is no campaign to resume here, and no --out.
_NEXT_BY_ERRNO = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _MORE_SPACE),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _WRITABLE),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR, errno.EISDIR), _ANOTHER),
}


def start(folder: Path, *, golden: bool = False) -> list[Path]:
    """Make the folder.

    Args:
        folder: must not exist, or be empty.
        golden: also unpack the campaigns that the repository ships.

    Returns:
        what was made.

    Raises:
        UsageError: when the folder holds something, or is none.
        HostLacks: when this is not a source tree.
        InvalidData: when a shipped campaign is not what was packed.
        RunFailed: when it cannot be written.
    """
    try:
        return _made(folder, golden=golden)
    except RunFailed as error:
        number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        step = _NEXT_BY_ERRNO.get(number or 0, error.next_step or _ANOTHER)
        raise RunFailed(error.what, where=error.where, next_step=step, code=error.code) from error


def _made(folder: Path, *, golden: bool) -> list[Path]:
    with file_errors("create", folder):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is not a folder", next_step=_ANOTHER)
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(f"{folder} exists and is not empty", next_step=_ANOTHER)
    template = programs.shipped(_TEMPLATE)
    bundles = {name: golden_bundle(exercise) for name, exercise in EXERCISES.items()} if golden else {}
    there = folder.exists()
    try:
        files.write_atomic(folder / ANSWERS, answer_sheet())
        with file_errors("write", folder / REPORT):
            shutil.copyfile(template, folder / REPORT)
        for name, bundle in bundles.items():
            unpack(bundle, folder / name)
    except BaseException:
        _undo(folder, keep=there)
        raise
    return [folder / name for name in (ANSWERS, REPORT, *bundles)]


def _undo(folder: Path, *, keep: bool) -> None:
    """Remove what was made in a folder that had nothing in it, and the folder unless it was there."""
    with suppress(OSError):  # what went wrong first is told
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        if not keep:
            folder.rmdir()


def golden_bundle(exercise: Exercise) -> Path:
    """The shipped campaign of an exercise, as `netjoule publish` packed it."""
    return programs.shipped(f"results/golden/{exercise.workload}.zip")


def unpack(bundle: Path, folder: Path) -> None:
    """Unpack a published campaign as a folder of another name.

    Args:
        bundle: a ZIP file with one folder in it.
        folder: where; must not exist, or be empty.

    Raises:
        InvalidData: when the bundle holds anything else.
        RunFailed: when it cannot be read or written, or the folder exists.
    """
    with file_errors("unpack", bundle):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as place:
            try:
                with zipfile.ZipFile(bundle) as packed:
                    packed.extractall(place)
            except zipfile.BadZipFile as error:
                raise InvalidData("not a ZIP file", where=str(bundle), next_step="restore it") from error
            inside = list(Path(place).iterdir())
            if len(inside) != 1 or not inside[0].is_dir():
                raise InvalidData("it does not hold one folder", where=str(bundle), next_step="restore it")
            inside[0].rename(folder)


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
    wanted = "A number" if question.unit == "1" else f"In {question.unit}"
    if question.choices:
        # As YAML has them.
        words = (str(one).lower() if isinstance(one, bool) else str(one) for one in question.choices)
        wanted = f"One of: {', '.join(words)}"
    yield from textwrap.wrap(
        f"{number}. {question.asks} {wanted}.",
        _WIDTH,
        initial_indent="    # ",
        subsequent_indent="    # ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield f"    {question.name}: null"
