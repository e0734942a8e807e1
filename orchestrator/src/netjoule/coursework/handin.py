# SPDX-License-Identifier: Apache-2.0
"""Reads what was handed in, which anybody may have made.

No link is followed, nothing but plain files is opened, sizes are bounded, and what cannot be printed is
written out. Only answers.yaml and the campaigns' folders are looked at; whatever else lies there is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netjoule.core import yamlfile
from netjoule.core.errors import InvalidData, NetjouleError, UsageError
from netjoule.core.safe_text import escaped
from netjoule.store import folder_limits
from netjoule_contracts import reading

ANSWERS = "answers.yaml"
_CONTRACT = "coursework_answers"
_MOST_ANSWER_BYTES = 100_000
_MOST_DOCUMENT_BYTES = 1_000_000
_RESTORE = "hand in the folder as 'netjoule coursework start' and 'netjoule run' made it"


def require_folder(folder: Path) -> None:
    """Refuse what is no folder of a coursework.

    Raises:
        UsageError: when there is no such folder.
        InvalidData: when it has no answers.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", next_step="name the folder that is handed in")
    if not os.path.lexists(folder / ANSWERS):
        raise InvalidData(
            f"it is not a coursework: it has no {ANSWERS}",
            where=str(folder),
            next_step="'netjoule coursework start DIR' makes one",
        )


def read_answers(folder: Path) -> dict[str, dict[str, Any]]:
    """What was answered, by exercise and question; None, or nothing, where a question is left open.

    An exercise that is left open as a whole has no questions.

    Raises:
        InvalidData: when answers.yaml is not what its contract asks for, or not safe to read.
    """
    path = folder / ANSWERS
    with _ours(path):
        content = reading.content(path, _MOST_ANSWER_BYTES, follow=False)
    try:
        document = yamlfile.parse(yamlfile.decoded(content, path), path)
        yamlfile.hold(document, _CONTRACT)
    except UsageError as error:
        raise InvalidData(error.what, where=error.where, next_step=error.next_step) from error
    return {name: answers or {} for name, answers in document.value["exercises"].items()}


def read_document(path: Path) -> dict[str, Any]:
    """A JSON object of a campaign.

    Raises:
        InvalidData: when it is none, or not safe to read.
    """
    with _ours(path):
        document = reading.document(path, _MOST_DOCUMENT_BYTES, follow=False)
    if not isinstance(document, dict):
        raise InvalidData("not a JSON object", where=str(path), next_step=_RESTORE)
    return document


def require_plain(campaign: Path) -> None:
    """Refuse a campaign's folder that holds anything but folders and plain files of a sensible size.

    Raises:
        InvalidData: naming the first thing that has no place there.
    """
    if campaign.is_symlink() or not campaign.is_dir():
        what = "a link, a file or a pipe stands where a folder belongs"
        raise InvalidData(what, where=str(campaign), next_step=_RESTORE)
    try:
        with _ours(campaign):
            folder_limits.require_readable(campaign)
    except InvalidData as error:
        raise InvalidData(error.what, where=error.where, next_step=_RESTORE) from error


@contextmanager
def _ours(path: Path) -> Iterator[None]:
    """What hinders to read a file of the hand-in is the hand-in's fault; a link or a pipe is not opened."""
    try:
        yield
    except OSError as error:
        if path.is_symlink():
            what, step = "a symbolic link has no place here", "hand in the file itself"
            raise InvalidData(what, where=str(path), next_step=step) from error
        what = f"it cannot be read: {error.strerror}"
        raise InvalidData(what, where=str(path), next_step=_RESTORE) from error
    except reading.Unreadable as error:
        where = f"{path}, {error.place}" if error.place else str(path)
        raise InvalidData(error.what, where=where, next_step=_RESTORE) from error


def safe(error: NetjouleError) -> NetjouleError:
    """The same error with nothing in it that a terminal would obey."""
    where, step = escaped(error.where), escaped(error.next_step)
    return type(error)(escaped(error.what), where=where, next_step=step, code=error.code)
