# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule measure``: what a program costs, from a command line, and the workload it is."""

from __future__ import annotations

import math
import re
import shlex
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule.cli import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netjoule.design.timeline import MeterPace


_LEAST_TAIL_S = 1.0  # of a few readings more or less would be a large part


def measure(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="Program and arguments, behind --.")],
    server: Annotated[str | None, typer.Option(metavar="CMD", help="A program on the server.")] = None,
    server_ready: Annotated[
        str | None, typer.Option(metavar="REGEX", help="What it prints once it is up.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=V1,V2", help="Values of a variable, compared.")
    ] = None,
    work_regex: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Its last match in stdout is the work."),
    ] = None,
    work_json: Annotated[
        str | None, typer.Option(metavar="PATH", help="Place of the work in stdout, JSON.")
    ] = None,
    unit: Annotated[str | None, typer.Option(metavar="U", help="Unit of the work.")] = None,
    blocks: typed.Blocks = 3,
    time_s: Annotated[
        float, typer.Option("-t", "--time", metavar="S", min=0.1, help="Short work is repeated so long.")
    ] = 5.0,
    testbed: typed.Testbed = None,
    out: typed.Out = None,
    json: typed.Json = False,
) -> None:
    """Measure what a program costs until it ends: table, report, workload file.

    Example: netjoule measure --env LEVEL=1,9 -- sh -c 'seq 9999 | gzip -$LEVEL'
    """
    from netjoule.core.console import Output, duration_text
    from netjoule.core.words import counted

    settings = _settings(command, server, server_ready, _work(work_regex, work_json), unit)

    code, _ = typed.start(
        "measure",
        partial(document, settings, variables(env or ()), blocks=blocks, time_s=time_s),
        lambda size: (
            f"{counted(size.runs, 'run')} until the command ends, {duration_text(size.duration_s)} or more"
        ),
        explained_by="docs/measure.md",
        testbed=testbed,
        out=out,
        output=Output(json_lines=json),
    )
    raise typer.Exit(code)


def variables(asked: Sequence[str]) -> dict[str, list[str]]:
    """Values of environment variables, each given as NAME=V1,V2.

    Raises:
        UsageError: for what has another form.
    """
    from netjoule.core.errors import UsageError

    found: dict[str, list[str]] = {}
    for text in asked:
        name, sign, values = text.partition("=")
        if not sign or not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", name) or name in found:
            raise UsageError(
                f"'{text}' is no variable with its values, or is given twice",
                where="--env",
                next_step="say for example --env THREADS=1,2,4; its name is in capitals",
            )
        found[name] = values.split(",")
    return found


def document(
    settings: Mapping[str, Any],
    env: Mapping[str, Sequence[str]],
    *,
    blocks: int,
    time_s: float,
    seed: int,
    meters: Sequence[MeterPace],
) -> dict[str, Any]:
    """The workload of a command line, with idle windows that the meters resolve; nothing is checked yet.

    The first variable with several values is the arm: its values are compared inside a mini-block.
    """
    arm = next((name for name, values in env.items() if len(values) > 1), None)
    return {
        "schema_version": 2,
        "name": "measure",
        "load": "command",
        **({"arm": arm} if arm else {}),
        "factors": {name: list(values) for name, values in env.items()},
        "command": dict(settings),
        "blocks": blocks,
        "timing": {
            **typed.guards(meters),
            "warm_up_s": 0,
            "measure_s": time_s,
            "tail_s": math.ceil(1e3 * max(_LEAST_TAIL_S, typed.least_window_s(meters))) / 1e3,
        },
        "seed": seed,
    }


def _settings(
    command: Sequence[str],
    server: str | None,
    server_ready: str | None,
    work: Mapping[str, str],
    unit: str | None,
) -> dict[str, Any]:
    """Settings of the load, those alone that were asked for."""
    found: dict[str, Any] = {"run": list(command)}
    if server is not None:
        found["server"] = shlex.split(server)
    if server_ready is not None:
        found["server_ready"] = server_ready
    if work:
        found["work_from"] = dict(work)
    if unit is not None:
        found["work_unit"] = unit
    return found


def _work(regex: str | None, path: str | None) -> dict[str, str]:
    from netjoule.core.errors import UsageError

    if regex is not None and path is not None:
        raise UsageError(
            "the work is in a text or in a JSON document", next_step="use --work-regex or --work-json"
        )
    return {"regex": regex} if regex is not None else {"json": path} if path is not None else {}
