# SPDX-License-Identifier: Apache-2.0
"""``netjoule coursework``: what was typed, handed to the part that does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from netjoule.core.console import Output
    from netjoule.core.errors import NetjouleError
    from netjoule.coursework.question import Verdict

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that is handed in.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout.")]


@app.callback()
def _coursework() -> None:
    """Five exercises on a laptop, and answers checked (docs/coursework.md).

    Example: netjoule coursework check results/coursework
    """


@app.command("start")
def start_folder(
    folder: _Folder,
    golden: Annotated[
        bool, typer.Option("--golden", help="With the shipped campaigns, for a host that cannot run its own.")
    ] = False,
    json: _Json = False,
) -> None:
    """Make a folder with a sheet for answers and a report to write.

    Example: netjoule coursework start results/coursework
    """
    from netjoule.core.console import Output
    from netjoule.coursework.start import start

    output = Output(json_lines=json)
    for path in start(folder, golden=golden):
        output.say(str(path))
        output.event({"event": "file", "path": str(path)})


@app.command("check")
def check_answers(
    folder: _Folder,
    exercise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="envelope, floor, congestion, scaling or transfers alone; repeatable."
        ),
    ] = None,
    json: _Json = False,
) -> None:
    """Compare the answers with the campaigns beside them; executes nothing from DIR.

    Exit codes: 0 all right, 1 some are not, 4 not a coursework, a campaign is refused or decides nothing.

    Example: netjoule coursework check results/coursework --exercise envelope
    """
    from netjoule.core.console import Output
    from netjoule.coursework.check import check

    verdicts, refused = check(folder, _known(exercise or []))
    output = Output(json_lines=json)
    for verdict in verdicts:
        _tell(verdict, output)
    for name, error in refused.items():
        output.event({"event": "refused", "exercise": name, "detail": str(error)})
    _end(folder, verdicts, list(refused.values()), output)


def _known(names: list[str]) -> list[str]:
    from netjoule.core.errors import UsageError
    from netjoule.coursework.exercises import EXERCISES

    for name in names:
        if name not in EXERCISES:
            raise UsageError(f"no exercise '{name}'", next_step=f"there are {', '.join(EXERCISES)}")
    return list(dict.fromkeys(names))


def _tell(verdict: Verdict, output: Output) -> None:
    from dataclasses import asdict

    words = f"  {verdict.words}" if verdict.words else ""
    output.say(f"{verdict.verdict:<9}  {verdict.exercise}.{verdict.question}{words}")
    output.event({"event": "answer", **asdict(verdict)})


def _end(folder: Path, verdicts: list[Verdict], refused: list[NetjouleError], output: Output) -> None:
    """Count, and raise what the exit code follows from."""
    from netjoule.core.console import describe_error
    from netjoule.core.errors import InvalidData, RunFailed

    found = [verdict.verdict for verdict in verdicts]
    of = {name: found.count(name) for name in ("right", "wrong", "missing", "undecided")}
    output.event({"event": "coursework", "folder": str(folder), **of})
    if refused:
        *others, last = refused
        for error in others:
            output.error(next(describe_error(error)))
        raise last
    if of["wrong"] or of["missing"]:
        raise RunFailed(
            f"{of['right']} of {len(found)} answers are right, {of['wrong']} wrong, {of['missing']} missing",
            where=str(folder),
            next_step="look where each line says, then check again",
        )
    if of["undecided"]:
        raise InvalidData(
            f"{of['undecided']} of {len(found)} questions cannot be decided by these campaigns",
            where=str(folder),
            next_step="run those exercises again on an idle host",
        )
    output.say(f"{folder}: all {of['right']} answers are right")
