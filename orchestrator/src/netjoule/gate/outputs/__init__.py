# SPDX-License-Identifier: Apache-2.0
"""What a gate tells: one pure writer per format, from a verdict document (gate_verdict.schema.json) to text.

`write` puts the wanted formats into files; `terminal.tell` is for people.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from netjoule.core import files
from netjoule.core.errors import NetjouleError, RunFailed, UsageError, refused

FORMATS = {
    "junit": "junit",
    "markdown": "markdown",
    "annotations": "github_annotations",
    "openmetrics": "openmetrics",
    "benchstat": "benchstat",
    "bencher": "bencher",
}
"""The module of each format, which has a function `text`."""
SUMMARY = "GITHUB_STEP_SUMMARY"
"""Where GitHub names the file of a step's summary, to which Markdown is appended."""


def text(verdict: Mapping[str, Any], format_: str) -> str:
    """The verdict in one of `FORMATS`."""
    written: str = importlib.import_module(f"{__name__}.{FORMATS[format_]}").text(verdict)
    return written


def distinct(wanted: Mapping[str, Path]) -> Mapping[str, Path]:
    """The same. Raises UsageError where one file is to hold two formats."""
    of: dict[Path, str] = {}
    for format_, path in wanted.items():
        other = of.setdefault(path.resolve(), format_)
        if other != format_:
            raise UsageError(f"--{other} and --{format_} name one file: {path}", next_step="name two")
    return wanted


def write(
    verdict: Mapping[str, Any], wanted: Mapping[str, Path], environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Put the verdict into each wanted file, and into GitHub's summary where there is one.

    Args:
        verdict: a document of gate_verdict.schema.json.
        wanted: files by format, of `FORMATS`.
        environment: in which `SUMMARY` is looked for.

    Returns:
        A sentence for each file that could not be written; the others are.
    """
    return list(_write(verdict, wanted, environment.get(SUMMARY)))


def _write(verdict: Mapping[str, Any], wanted: Mapping[str, Path], summary: str | None) -> Iterator[str]:
    for format_, path in wanted.items():
        try:
            _replace(path, text(verdict, format_))
        except NetjouleError as error:
            yield f"{error.what}; the verdict is the same without this file"
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as opened:
                opened.write(text(verdict, "markdown") + "\n")
        except OSError as error:
            yield f"{refused('append to', summary, error).what}; the verdict is the same without this file"


def _replace(path: Path, written: str) -> None:
    """Write a file by renaming; one behind a link stays there, a device or pipe is left alone."""
    place = path.resolve()
    if place.exists() and not place.is_file():
        raise RunFailed(f"cannot write {path}: it is no file")
    files.write_atomic(place, written)
