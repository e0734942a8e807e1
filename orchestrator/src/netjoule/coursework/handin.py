# SPDX-License-Identifier: Apache-2.0
"""Reads what was handed in, which anybody may have made.

No link is followed, nothing but plain files is opened, sizes are bounded, and what cannot be printed is
written out. Only answers.yaml and the campaigns' folders are looked at; whatever else lies there is not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netjoule.core import yamlfile
from netjoule.core.errors import InvalidData, NetjouleError, UsageError
from netjoule.core.safe_text import escaped
from netjoule.store.folder_limits import walk
from netjoule_contracts import reading

ANSWERS = "answers.yaml"
_CONTRACT = "coursework_answers"
_MOST_ANSWER_BYTES = 100_000
_MOST_DOCUMENT_BYTES = 1_000_000
# Of one campaign with its figures and report; those of the exercises have about a tenth of it.
_MOST_FILE_BYTES = 32_000_000
_MOST_BYTES = 256_000_000
_MOST_FILES = 20_000
_MOST_LEVELS = 6
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
    here = campaign.lstat()
    if not stat.S_ISDIR(here.st_mode):
        what = f"{_kind(here)} stands where a folder belongs"
        raise InvalidData(what, where=str(campaign), next_step=_RESTORE)
    with _ours(campaign):
        _require_small(campaign)


def _require_small(campaign: Path) -> None:
    files, total = 0, 0
    for place, found, level in walk(campaign, _MOST_LEVELS, _MOST_FILES):
        where = str(place)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise InvalidData(f"{_kind(found)} has no place in a campaign", where=where, next_step=_RESTORE)
        files, total = files + 1, total + found.st_size
        if level > _MOST_LEVELS:
            raise InvalidData("its folders lie too deep", where=where, next_step=_RESTORE)
        if stat.S_ISREG(found.st_mode) and found.st_size > _MOST_FILE_BYTES:
            size = f"{found.st_size / 1e6:.0f} MB"
            raise InvalidData(f"{size} are too much for one file", where=where, next_step=_RESTORE)
        if files > _MOST_FILES or total > _MOST_BYTES:
            most = f"{_MOST_FILES} files or {_MOST_BYTES // 10**6} MB"
            what = f"over {most}: this is not the campaign of an exercise"
            raise InvalidData(what, where=str(campaign), next_step=_RESTORE)


def _kind(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    if stat.S_ISREG(found.st_mode):
        return "a file"
    return "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, a socket or a device"


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
