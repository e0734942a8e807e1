# SPDX-License-Identifier: Apache-2.0
"""How a radio is asked: the interface of all sources, what can go wrong, how a tool of the host is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from netjoule_radio.snapshot import Snapshot

_ADMIN_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"  # not on the search path of an ordinary user over SSH
_TOOL_LIMIT_S = 5.0


class SourceMissing(Exception):
    """This host cannot be asked this way; the text says what is missing."""


class ReadFailed(Exception):
    """This reading did not succeed; the next one may."""


class InterfaceGone(ReadFailed):
    """There is no such interface (any more)."""


class CompletedTool(NamedTuple):
    """A program that ended: exit code, stdout, stderr."""

    status: int
    out: str
    err: str


Run = Callable[[Sequence[str]], CompletedTool]


class Source(Protocol):
    """One way of asking one interface."""

    name: str
    version: str

    def snapshot(self) -> Snapshot:
        """Ask now. Raises ReadFailed."""

    def close(self) -> None:
        """Let go of what was opened."""


def find_tool(name: str) -> str:
    """Path of a program, administrators' folders included. Raises SourceMissing."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_ADMIN_FOLDERS}")
    if path is None:
        raise SourceMissing(f"{name} is not installed")
    return path


def run_tool(argv: Sequence[str]) -> CompletedTool:
    """Run a program to its end, without translation of its words. Raises ReadFailed."""
    try:
        ended = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TOOL_LIMIT_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise ReadFailed(f"{argv[0]} did not answer within {_TOOL_LIMIT_S:g} s") from None
    except OSError as error:
        raise ReadFailed(f"{argv[0]} cannot be run: {error.strerror or error}") from None
    return CompletedTool(
        ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace")
    )
