# SPDX-License-Identifier: Apache-2.0
"""A gate from what was asked to its verdict: checked, rig taken, arms built, sessions run. In this order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from netjoule import loads
from netjoule.analysis import analysis
from netjoule.core import programs
from netjoule.core.errors import InvalidData, UsageError, file_errors
from netjoule.core.reason import Reason
from netjoule.gate import settings, sources, worktrees
from netjoule.gate.fingerprint import fingerprint
from netjoule.gate.gate_run import GateRun, Kind, Length, require_few, require_fit, require_short
from netjoule.gate.history import database, store
from netjoule.gate.settings import Names, Pilot, Rule
from netjoule.gate.sources import Source
from netjoule.store import folder_limits
from netjoule.testbeds import rig_lock
from netjoule.topology import topology
from netjoule.workload import workload

_EMULATED = "emulated"
_NOT_OF_ENERGY = ("rig_busy", "build_failed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is compared by what, on which rig, and how long that may take.

    Attributes:
        base, head, anchor, reference: as they were written; of a pilot, base is head.
        build: the shell command that builds git refs.
        workload: a file, or the name of a shipped one.
        testbed: topology file of the rig.
        folder: of the gate, to be made.
        history: URL of the database; None for the default.
        max_blocks, max_time_s: of a session.
        wait_s: for a rig in use.
    """

    base: str
    head: str
    anchor: str | None
    reference: str | None
    build: str | None
    workload: str
    pilot: bool
    rule: Rule
    testbed: Path
    folder: Path
    history: str | None
    max_blocks: int | None
    max_time_s: float | None
    wait_s: float

    @property
    def kind(self) -> Kind:
        """As verdict.json has it."""
        return "pilot" if self.pilot else "gate"


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told what meanwhile.

    Attributes:
        say: a sentence, for people.
        event: an event of a session.
        length: how long a session is, before anything runs.
    """

    say: Callable[[str], None]
    event: Callable[[Mapping[str, Any]], None]
    length: Callable[[Length], None]


def decided(asked: Asked, told: Told, seed: Callable[[], int], utc: Callable[[], datetime]) -> dict[str, Any]:
    """The verdict of a gate, or of a pilot; on disk when this returns.

    Args:
        asked: the options.
        told: gets what happens.
        seed: draws the seed of a session.
        utc: the time now.

    Raises:
        UsageError: for what cannot be asked, before anything is built.
        HostLacks: without R, git or the history's database.
        NetjouleError: when the verdict could not be written.
    """
    run = _begun(asked, told, seed, utc)
    known = None if asked.pilot else _pilot_of(run, asked.history)
    if not asked.pilot and (why := require_fit(known, run.rule)):
        return run.skipped(asked.kind, why)
    looks = run.looks(known)
    require_few(looks, asked.max_blocks)
    with ExitStack() as stack:  # the rig is ours, and what was built is there, until it ends
        try:
            stack.enter_context(_rig(run, asked.wait_s, told.say))
            run = _armed(stack, run, asked, told.say)
        except InvalidData as error:
            if error.code not in _NOT_OF_ENERGY:
                raise
            return run.skipped(asked.kind, Reason(error.code, str(error)))
        length = run.length(looks, known)
        told.length(length)
        require_short(length, asked.max_time_s)
        return run.piloted(length) if known is None else run.decided(known, length)


def _begun(asked: Asked, told: Told, seed: Callable[[], int], utc: Callable[[], datetime]) -> GateRun:
    """The gate, its folder made, before it has arms: what names nothing leaves no folder."""
    on = topology.load(asked.testbed)
    if on.kind == topology.EMULATED and len(on.rigs) > 1:
        raise UsageError(
            "emulated rigs share this machine's cores, so that one disturbs the other",
            where=str(asked.testbed),
            next_step="gate on a testbed with one rig",
        )
    if on.kind == topology.SIMULATED:
        raise UsageError(
            "a simulation has no meter, so that there is nothing for a gate to measure",
            where=str(asked.testbed),
            next_step="gate on a testbed of kind emulated, guest or lab",
        )
    on = on.on_rigs(None)
    document = loads.read(workload.find(asked.workload, programs.shipped("workloads"))).document
    settings.require_objective(document, asked.rule.objective)
    analysis.require_r()
    database.require(asked.history)
    worktrees.require(_sources(asked, document), Path())
    folder_limits.require_free(asked.folder)
    with file_errors("create", asked.folder):
        asked.folder.mkdir(parents=True, exist_ok=True)
    return GateRun(
        folder=asked.folder,
        workload=document,
        document=document,
        names=Names(),
        arms=(),
        rule=asked.rule,
        topology=on,
        testbed=asked.testbed,
        same_arms=False,
        seed=seed,
        told=told.event,
        utc=utc,
    )


def _sources(asked: Asked, document: Mapping[str, Any]) -> Sequence[Source]:
    """What the options name; of a pilot the base, twice."""
    named = sources.parse(
        asked.base,
        asked.head,
        asked.anchor,
        document["load"],
        reference=asked.reference,
        with_build=asked.build is not None,
    )
    if asked.build is not None and all(one.kind != sources.GIT for one in named):
        raise UsageError("--build builds git refs, and none is named", next_step="leave it out")
    return sources.pilot(named) if asked.pilot else named


def _pilot_of(run: GateRun, history: str | None) -> Pilot | None:
    """The latest pilot of this rig and workload, where it came to numbers."""
    return store.pilot_of(
        run.topology.name,
        # What a lab's client is shows only when it is logged in to.
        fingerprint({})["fingerprint"]
        | ({} if run.topology.kind == _EMULATED else {"kernel": "", "cpu_model": ""}),
        run.workload["name"],
        settings.workload_version(run.workload),
        objective=run.rule.objective,
        url=history,
    )


def _rig(run: GateRun, wait_s: float, say: Callable[[str], None]) -> AbstractContextManager[bool]:
    return rig_lock.held(
        rig_lock.path_of(rig_lock.name_of(run.topology)),
        f"gate {run.folder.name}",
        wait_s,
        lambda who: say(f"waiting for the rig: {who} has it"),
        ", or wait longer with --wait",
    )


def _armed(stack: ExitStack, run: GateRun, asked: Asked, say: Callable[[str], None]) -> GateRun:
    """The same with its arms, built."""
    arms = stack.enter_context(
        worktrees.ready(
            _sources(asked, run.workload),
            run.workload,
            folder=run.folder,
            repository=Path(),
            build=asked.build,
            say=say,
        )
    )
    document, names = sources.with_arms(run.workload, arms)
    return replace(
        run,
        document=document,
        names=names,
        arms=sources.as_verdict(arms, names, worktrees.installed(run.workload)),
        same_arms=sources.same_programs(arms),
    )
