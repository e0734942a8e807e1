# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule gate``: does a change cost energy? And its pilot: can this rig tell?"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from netjoule.cli import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netjoule.core.console import Output
    from netjoule.gate.gate_run import GateRun, Length
    from netjoule.gate.settings import Pilot, Rule
    from netjoule.gate.sources import Source
    from netjoule.topology.topology import Topology

Objective = Literal["energy", "throughput", "cpu_time", "p99_delay"]
File = Annotated[Path | None, typer.Option(metavar="FILE")]

_EMULATED = "emulated"
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
    testbed: typed.Testbed = None,
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
    from netjoule.core.console import Output
    from netjoule.core.errors import InvalidData, RunFailed, UsageError
    from netjoule.gate.settings import Rule

    if pilot == (head is not None):
        raise UsageError(
            "a pilot has a base alone, and a gate has a head", next_step="use --pilot, or name --head"
        )
    if not 0 <= tolerance < margin < 100:
        raise UsageError(f"tolerance {tolerance:g} % and margin {margin:g} % do not rise from 0 to 100 %")
    output = Output(json_lines=json)
    asked = _Asked(base, base if head is None else head, anchor, build, workload, pilot)
    rule = Rule(objective, margin, tolerance)
    files = {"junit": junit, "markdown": markdown, "openmetrics": openmetrics}
    files |= {"benchstat": benchstat, "bencher": bencher}
    try:
        run = _begun(asked, rule, testbed, out, output)
        with ExitStack() as stack:
            found = _decided(stack, run, asked, history, (max_blocks, max_time), wait, output)
    except RunFailed as error:  # 1 is a regression, and nothing else
        raise InvalidData(error.what, where=error.where, next_step=error.next_step) from error
    _conclude(found, run.folder, history, files, output, annotate=annotations)
    raise typer.Exit(0 if warn_only and found["verdict"] == "fail" else found["exit_code"])


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options that say what is compared by what."""

    base: str
    head: str
    anchor: str | None
    build: str | None
    workload: str
    pilot: bool


def _begun(asked: _Asked, rule: Rule, testbed: Path | None, out: Path | None, output: Output) -> GateRun:
    """The gate, its folder made, before it has arms."""
    from netjoule import loads
    from netjoule.analysis import analysis
    from netjoule.cli import launch
    from netjoule.core import programs
    from netjoule.core.clock import SystemClock
    from netjoule.core.errors import file_errors
    from netjoule.gate import worktrees
    from netjoule.gate.gate_run import GateRun
    from netjoule.gate.settings import Names
    from netjoule.store import folder_limits
    from netjoule.topology import topology
    from netjoule.workload import workload

    clock = SystemClock()
    where = testbed or programs.shipped(launch.DEFAULT_TOPOLOGY)
    on = topology.load(where)
    document = loads.read(workload.find(asked.workload, programs.shipped("workloads"))).document
    analysis.require_r()
    worktrees.require(_sources(asked, document), Path())  # what names nothing leaves no folder
    folder = out or launch.default_out("gate", clock.utc_now())
    folder_limits.require_free(folder)
    with file_errors("create", folder):
        folder.mkdir(parents=True, exist_ok=True)
    told = _events(output)
    return GateRun(
        folder, document, document, Names(), (), rule, on, where, False, launch.draw_seed, told, clock.utc_now
    )


def _sources(asked: _Asked, document: Mapping[str, Any]) -> Sequence[Source]:
    """What the options name; of a pilot the base, twice."""
    from netjoule.core.errors import UsageError
    from netjoule.gate import sources

    named = sources.parse(
        asked.base, asked.head, asked.anchor, document["load"], with_build=asked.build is not None
    )
    if asked.build is not None and all(one.kind != sources.GIT for one in named):
        raise UsageError("--build builds git refs, and none is named", next_step="leave it out")
    return sources.pilot(named) if asked.pilot else named


def _decided(
    stack: ExitStack,
    run: GateRun,
    asked: _Asked,
    history: str | None,
    limits: tuple[int | None, float | None],
    wait_s: float,
    output: Output,
) -> dict[str, Any]:
    """The verdict; the rig is ours, and what was built for the arms is there, until the stack ends."""
    from netjoule.core.errors import InvalidData
    from netjoule.core.reason import Reason
    from netjoule.gate.gate_run import require_fit, require_short

    kind: Literal["gate", "pilot"] = "pilot" if asked.pilot else "gate"
    known = None if asked.pilot else _pilot_of(run, history)
    if not asked.pilot and (why := require_fit(known, run.rule)):
        return run.skipped(kind, why)
    try:
        stack.enter_context(_rig(run.topology, run.folder, wait_s, output))
        run = _armed(stack, run, asked, output)
    except InvalidData as error:  # neither says anything about energy
        if error.code not in ("rig_busy", "build_failed"):
            raise
        return run.skipped(kind, Reason(error.code, str(error)))
    length = run.length(known)
    _say_length(length, asked.pilot, output)
    require_short(length, *limits)
    return run.piloted(length) if known is None else run.decided(known, length)


def _armed(stack: ExitStack, run: GateRun, asked: _Asked, output: Output) -> GateRun:
    """The same with its arms, built."""
    from netjoule.gate import sources, worktrees

    arms = stack.enter_context(
        worktrees.ready(
            _sources(asked, run.workload),
            run.workload,
            folder=run.folder,
            repository=Path(),
            build=asked.build,
            say=output.error,
        )
    )
    document, names = sources.with_arms(run.workload, arms)
    return replace(
        run,
        document=document,
        names=names,
        arms=sources.as_verdict(arms, names),
        same_arms=sources.same_programs(arms),
    )


def _rig(on: Topology, folder: Path, wait_s: float, output: Output) -> AbstractContextManager[None]:
    """The lock of a rig: an emulated one is this machine, whatever its topology is called."""
    from netjoule.gate import rig_lock

    name = _EMULATED if on.kind == _EMULATED else on.name
    return rig_lock.held(
        rig_lock.path_of(name),
        f"gate {folder.name}",
        wait_s,
        lambda who: output.error(f"waiting for the rig: {who} has it"),
    )


def _pilot_of(run: GateRun, history: str | None) -> Pilot | None:
    """The latest pilot of this rig and workload, where it came to numbers."""
    from netjoule.gate.fingerprint import fingerprint
    from netjoule.gate.history import store
    from netjoule.gate.settings import workload_version

    workload = run.workload
    return store.pilot_of(
        run.topology.name,
        # What a lab's client is shows only when it is logged in to.
        fingerprint({})["fingerprint"] | ({} if run.topology.kind == _EMULATED else {"kernel": ""}),
        workload["name"],
        workload_version(workload),
        objective=run.rule.objective,
        url=history,
    )


def _say_length(length: Length, pilot: bool, output: Output) -> None:
    from netjoule.core.console import duration_text

    what = "the pilot" if pilot else "a session"
    time = duration_text(length.duration_s)
    again = "" if pilot else "; a FAIL is confirmed by a second one"
    output.error(f"{what} has {length.looks[0]} to {length.blocks_max} blocks, about {time} at most{again}")
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
    files: Mapping[str, Path | None],
    output: Output,
    *,
    annotate: bool,
) -> None:
    """Put the verdict into the files that were asked for and into the history, and say it."""
    from netjoule.core.errors import NetjouleError
    from netjoule.gate import outputs
    from netjoule.gate.history import store
    from netjoule.gate.outputs import terminal

    problems = outputs.write(found, {name: path for name, path in files.items() if path is not None})
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
    from netjoule.gate.history import store, trend

    if found["verdict"] != "pass":
        known = store.false_alarms(found["rig"], history)
        output.say(f"rig {found['rig']}: {known}")
        output.event({"event": "false_alarms", **asdict(known)})
    if trend.is_there():
        for words in trend.warnings_of(found["id"], history):
            output.error(words)
