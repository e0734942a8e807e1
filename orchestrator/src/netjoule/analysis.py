# SPDX-License-Identifier: Apache-2.0
"""Starts the R analysis of a campaign and passes on what it says. All statistics are R's (analysis-r)."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import netjoule_contracts as contracts
from netjoule import programs
from netjoule.errors import HostLacks, InvalidData, NetjouleError, RunFailed, UsageError

__all__ = ["environment", "require_r", "run_analysis", "script"]

Verb = Literal["analyse", "report"]
EventSink = Callable[[Mapping[str, Any]], None]

_SCRIPT = "analysis-r/exec/analyse.R"
_BY_EXIT: dict[int, type[NetjouleError]] = {2: UsageError, 3: HostLacks, 4: InvalidData}


def script() -> Path:
    """The R program.

    Raises:
        HostLacks: when this is not a source tree.
    """
    return programs.shipped(_SCRIPT)


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """``base`` with the folders of the R library and the contracts that the R program needs."""
    env = dict(base)
    env.setdefault("NETJOULE_CONTRACTS", str(contracts.root()))
    root = programs.checkout()
    if root:
        env.setdefault("NETJOULE_R_LIBRARY", str(root / ".r-library"))
    return env


def require_r() -> None:
    """Try R and our package in it, so that a long campaign does not end without its analysis.

    Raises:
        HostLacks: naming what is missing and how to get it.
    """
    answer = subprocess.run(
        [programs.find("Rscript"), "--vanilla", str(script()), "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(os.environ),
        check=False,
    )
    if answer.returncode != 0:
        said = (answer.stderr.strip().splitlines() or ["Rscript does not run"])[-1]
        raise HostLacks(
            said.rstrip("."), where="R", next_step="run 'make setup'; 'netjoule run' works without R"
        )


def run_analysis(verb: Verb, campaign: Path, sink: EventSink, *, rscript: str | None = None) -> None:
    """Run ``analyse`` (tables and figures) or ``report`` (these and report.html) over a campaign.

    Args:
        verb: what R should do.
        campaign: folder of the campaign.
        sink: gets each NDJSON line of the R program as it comes.
        rscript: program to use instead of the one found.

    Raises:
        HostLacks: without R or one of its packages.
        InvalidData: when the campaign cannot be analysed.
        RunFailed: when R fails otherwise.
    """
    command = [
        rscript or programs.find("Rscript"),
        "--vanilla",
        str(script()),
        str(campaign.resolve()),
        "--json",
    ]
    if verb == "report":
        command.append("--report")
    # Warnings go to a file: a full pipe that nobody reads yet would stop R.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as chatter:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=chatter,
            text=True,
            env=environment(os.environ),
        )
        with process:
            assert process.stdout is not None
            message = _stream(process.stdout, sink)
            code = process.wait()
        chatter.seek(0)
        tail = chatter.read().strip().splitlines()
    if code != 0:
        raise _failure(verb, code, message or (tail[-1] if tail else ""))


def _stream(lines: Any, sink: EventSink) -> str:
    """Pass NDJSON lines on; returns the message of the last error event."""
    message = ""
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # not for machines
        if isinstance(event, dict):
            if event.get("event") == "error":
                message = str(event.get("message", ""))
            sink(event)
    return message


def _failure(verb: str, code: int, message: str) -> NetjouleError:
    kind = HostLacks if "is not installed" in message else _BY_EXIT.get(code, RunFailed)
    next_step = "'netjoule check' names the defects of the campaign" if kind is InvalidData else ""
    what = message.rstrip(".") or f"the R program ended with exit code {code}"
    return kind(what, where=verb, next_step=next_step)
