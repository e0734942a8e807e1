# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule gate``: does a change cost energy? And its pilot: can this rig tell?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from netjoule.cli import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netjoule.core.console import Output
    from netjoule.gate.gate_run import Length

Objective = Literal["energy", "throughput", "cpu_time", "p99_delay"]
File = Annotated[Path | None, typer.Option(metavar="FILE")]

_TOPOLOGY = "testbed/topologies/one-cpu.yaml"
"""The emulated testbed that scatters least."""
_SECONDS = 3600.0


def gate(
    base: Annotated[
        str,
        typer.Option(metavar="X", help="Git ref (with --build), folder, binary, NAME=VALUE, transport=udp."),
    ],
    workload: Annotated[str, typer.Option(metavar="W", help="A workload file, or a name from workloads/.")],
    head: Annotated[
        str | None, typer.Option(metavar="Y", help="What must not cost more; written like --base.")
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="CMD", help="Builds a git ref, in its own worktree.")
    ] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="TAG", help="A release; the head must not cost more than it either.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="TAG", help="What stays [default: what is installed].")
    ] = None,
    pilot: Annotated[
        bool, typer.Option("--pilot", help="Build the base twice and measure how much the rig scatters.")
    ] = False,
    margin: Annotated[
        float, typer.Option(metavar="PERCENT", help="PASS: an increase of this size is ruled out.")
    ] = 3.0,
    tolerance: Annotated[
        float, typer.Option(metavar="PERCENT", help="FAIL: an increase of this size is shown, twice.")
    ] = 1.0,
    objective: Annotated[Objective, typer.Option(help="What must not get worse.")] = "energy",
    max_blocks: Annotated[int | None, typer.Option(metavar="N", min=4, help="Refuse a longer gate.")] = None,
    max_time: Annotated[
        float | None, typer.Option(metavar="S", min=1, help="Refuse a session that may take longer.")
    ] = None,
    wait: Annotated[
        float, typer.Option(metavar="S", min=0, help="Wait so long for a rig in use.")
    ] = _SECONDS,
    warn_only: Annotated[
        bool, typer.Option("--warn-only", help="End with 0 after a regression, too.")
    ] = False,
    testbed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Topology file of the rig [default: emulated, on one CPU]."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder of the gate [default: results/gate-UTC].")
    ] = None,
    history: Annotated[
        str | None, typer.Option(metavar="URL", help="Database [default: results/history.sqlite].")
    ] = None,
    junit: File = None,
    markdown: File = None,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Print GitHub annotations, at most 10.")
    ] = False,
    openmetrics: File = None,
    benchstat: File = None,
    bencher: File = None,
    json: typed.Json = False,
) -> None:
    """Say whether a change costs energy: 0 no, 1 a regression seen in two sessions, 4 not decided.

    Base and head run interleaved on one rig. The rig needs a pilot first.

    Example: netjoule gate --pilot --base main --build 'cargo build --release' --workload gate
    """
    from functools import partial

    from netjoule.cli import launch
    from netjoule.core import programs
    from netjoule.core.clock import SystemClock
    from netjoule.core.console import Output
    from netjoule.core.errors import UsageError
    from netjoule.gate import command, outputs
    from netjoule.gate.command import Asked, Told
    from netjoule.gate.settings import Rule
    from netjoule.gate.verdict import no_regression_by_failure

    if pilot == (head is not None):
        raise UsageError(
            "a pilot has a base alone, and a gate has a head", next_step="use --pilot, or name --head"
        )
    if not 0 <= tolerance < margin < 100:
        raise UsageError(f"tolerance {tolerance:g} % and margin {margin:g} % do not rise from 0 to 100 %")
    output = Output(json_lines=json)
    clock = SystemClock()
    asked = Asked(
        base=base,
        head=base if head is None else head,
        anchor=anchor,
        reference=reference,
        build=build,
        workload=workload,
        pilot=pilot,
        rule=Rule(objective, margin, tolerance),
        testbed=testbed or programs.shipped(_TOPOLOGY),
        folder=out or launch.default_out("gate", clock.utc_now()),
        history=history,
        max_blocks=max_blocks,
        max_time_s=max_time,
        wait_s=wait,
    )
    files = {"junit": junit, "markdown": markdown, "openmetrics": openmetrics}
    files |= {"benchstat": benchstat, "bencher": bencher}
    wanted = outputs.distinct({name: path for name, path in files.items() if path is not None})
    told = Told(output.error, _events(output), partial(_say_length, asked.pilot, output))
    with no_regression_by_failure():
        found = command.decided(asked, told, launch.draw_seed, clock.utc_now)
    _conclude(found, asked.folder, history, wanted, output, annotate=annotations)
    raise typer.Exit(0 if warn_only and found["verdict"] == "fail" else found["exit_code"])


def _say_length(pilot: bool, output: Output, length: Length) -> None:
    from netjoule.core.console import duration_text

    what = "the pilot" if pilot else "a session"
    time = duration_text(length.duration_s)
    again = "" if pilot else "; a FAIL is confirmed by a second one"
    bound = "least" if length.at_least else "most"
    first, last = length.looks[0], length.blocks_max
    blocks = f"{last} blocks, which" if first == last else f"{first} to {last} blocks; {last}"
    output.error(f"{what} has {blocks} take at {bound} about {time}{again}")
    output.event({"event": "gate_length", "looks": length.looks, "duration_s": length.duration_s})


def _teller(output: Output) -> Callable[[str], None]:
    """Says what happens on a terminal; a CI log has the verdict alone."""
    return output.error if output.errors.is_terminal else lambda _text: None


def _events(output: Output) -> Callable[[Mapping[str, Any]], None]:
    """Passes on a session's events: all of them to machines, its looks to a terminal."""
    say = _teller(output)

    def told(event: Mapping[str, Any]) -> None:
        output.event(event)
        if event["event"] == "look":
            say(f"after {event['done']} of at most {event['total']} runs: {event['detail']}")

    return told


def _conclude(
    found: Mapping[str, Any],
    folder: Path,
    history: str | None,
    files: Mapping[str, Path],
    output: Output,
    *,
    annotate: bool,
) -> None:
    """Put the verdict into the files that were asked for and into the history, and say it."""
    from netjoule.core.errors import NetjouleError
    from netjoule.gate import outputs
    from netjoule.gate.history import store
    from netjoule.gate.outputs import terminal

    problems = outputs.write(found, files)
    kept = False
    try:  # before anything is printed: who reads it may be gone
        kept = store.record(found, folder, history)
    except NetjouleError as error:  # the verdict stands
        problems.append(f"{error}; then 'netjoule history --record {folder}'")
    for problem in problems:
        output.error(f"netjoule: {problem}")
    for line in outputs.text(found, "annotations").splitlines() if annotate else ():
        output.say(line)
    output.event({"event": "verdict", **found})
    terminal.tell(found, output)
    if kept:
        _tell_of_rig(found, history, output)


def _tell_of_rig(found: Mapping[str, Any], history: str | None, output: Output) -> None:
    """Say what the history knows of this rig, and where the trend moved."""
    from netjoule.core.errors import NetjouleError
    from netjoule.gate.history import store, trend

    try:
        if found["verdict"] != "pass":
            known = store.false_alarms(found["rig"], history)
            output.say(f"rig {found['rig']}: {known}")
            output.event({"event": "false_alarms", **asdict(known)})
        if trend.is_there():
            for words in trend.warnings_of(found["id"], history):
                output.error(words)
    except NetjouleError as error:  # the verdict stands
        output.error(f"netjoule: {error}")
