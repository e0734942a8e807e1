# SPDX-License-Identifier: Apache-2.0
"""Sentences that people read, held to one file per room: ``sentences.json`` in the room's folder of tests.

Tests of several rooms have one in each room's folder; an empty one (``{}``) begins it.

Tests assert codes, values and states themselves; what is said stands in that file, by test and in order,
where it can be read as a whole. To rewrite it on purpose run the room's tests once with
NETJOULE_REWRITE_GOLDEN=1 and review the difference. Paths and ports of one run have stand-ins.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_STAND_INS = (
    (re.compile(re.escape(str(ROOT)) + r"(?=/)"), "ROOT"),
    (re.compile(r"[^\s'\"(]*/pytest-of-[^/]+/pytest-\d+/(popen-gw\d+/)?[^/\s'\":;,)]+"), "TMP"),
    (re.compile(r"/tmp/tmp\w{8}"), "TMP"),
    (re.compile(r"(127\.0\.0\.1'?[:,] ?|\bport (?=\d{5}\b))\d+"), r"\1PORT"),
    (re.compile(r"/dev/pts/\d+"), "/dev/pts/N"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
)
_said: dict[str, int] = {}
"""How many sentences of the running test were compared already."""


@contextlib.contextmanager
def raises(kind: type[BaseException] | tuple[type[BaseException], ...]) -> Iterator[Any]:
    """As ``pytest.raises``; what is raised says what the golden file has."""
    with pytest.raises(kind) as caught:
        yield caught
    same_sentence(str(caught.value))


def same_sentence(text: str) -> None:
    """Hold the next sentence of the running test to the golden file."""
    file, test = _running_test()
    place = _said.get(test, 0)
    if not place:
        _said.clear()
    _said[test] = place + 1
    for pattern, stand_in in _STAND_INS:
        text = pattern.sub(stand_in, text)
    if os.environ.get("NETJOULE_REWRITE_GOLDEN"):
        _rewrite(file, test, place, text)
        return
    known = _golden(file).get(test, [])
    assert place < len(known), f"{file} has no sentence {place + 1} of {test}: rewrite it on purpose"
    assert text == known[place]


def forgotten_tests(folder: Path) -> list[str]:
    """Tests that the golden file of a folder of tests names and that are there no more."""
    named = [test.partition("::") for test in _golden(folder / "sentences.json")]
    texts = dict.fromkeys((file for file, _, _ in named), "")
    for file in texts:
        with contextlib.suppress(FileNotFoundError):
            texts[file] = (folder / file).read_text(encoding="utf-8")
    return [
        f"{file}::{test}" for file, _, test in named if f"def {test.partition('[')[0]}(" not in texts[file]
    ]


def _running_test() -> tuple[Path, str]:
    """The golden file of the running test's room, and the test by its file there."""
    named, _, test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0].partition("::")
    file = ROOT / named
    tests = next(parent for parent in file.parents if parent.name == "tests")
    of_room = tests / file.relative_to(tests).parts[0]
    folder = of_room if (of_room / "sentences.json").exists() else tests
    return folder / "sentences.json", f"{file.relative_to(folder).as_posix()}::{test}"


@cache
def _golden(file: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def _rewrite(file: Path, test: str, place: int, text: str) -> None:
    """Put one sentence into the file, whatever other processes write there."""
    with file.open("a+", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.seek(0)
        golden = json.loads(opened.read() or "{}")
        golden[test] = [*golden.get(test, [])[:place], text]
        opened.truncate(0)
        opened.write(json.dumps(golden, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
