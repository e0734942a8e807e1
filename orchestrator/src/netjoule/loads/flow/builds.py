# SPDX-License-Identifier: Apache-2.0
"""Builds of netjoule-traffic: which program makes a run's flows at both ends, and in which environment."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks, UsageError
from netjoule.core.yamlfile import Document
from netjoule.hosts.host import Host
from netjoule.workload.load import BuildSettings

PROGRAM = "netjoule-traffic"
PLACES = (".", "target/release", "bin")
"""Where a folder that was built has it, the first that does."""
_VERSION_S = 30


@dataclass(frozen=True, slots=True)
class Build:
    """One build.

    Attributes:
        name: value of the factor ``build``; empty of a campaign without that factor.
        program: its netjoule-traffic; None for the installed one.
        environment: variables of it, at both ends.
        place: from 0; each build has a server of its own, at a port of its own.
    """

    name: str = ""
    program: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    place: int = 0

    @property
    def called(self) -> str:
        """What the versions of a run call it."""
        return f"{PROGRAM} of build {self.name}" if self.name else PROGRAM

    async def on(self, host: Host) -> list[str]:
        """How its program is started on a host; a lab's gets a copy in its cache.

        Raises RunFailed where that cannot be written, HostLacks without the installed program.
        """
        if self.program is None:
            return [programs.find(PROGRAM)]
        put_once = getattr(host, "put_once", None)
        if put_once is None:
            return [self.program]
        data = await asyncio.to_thread(Path(self.program).read_bytes)
        # By env: a lab's host knows programs by their names alone.
        return ["env", "--", await put_once(data, PROGRAM, executable=True)]

    async def require_on(self, host: Any) -> None:
        """Refuse a build that a lab's host cannot run. Raises HostLacks."""
        if self.program is None:
            return
        said = await host.ask([*await self.on(host), "--version"])
        if said.status:
            words = (said.err or said.out).strip().splitlines() or ["without an error message"]
            raise HostLacks(
                f"build {self.name} does not run on this {host.machine} host ({words[-1]})",
                where=f"host {host.name}",
                next_step=f"build it for {host.machine}",
            )

    def version(self) -> str:
        """What its program says of `--version`, and its digest. Raises HostLacks when it says nothing."""
        program = self.program or programs.find(PROGRAM)
        try:
            told = programs.said_by([program, "--version"], timeout=_VERSION_S)
            told.check_returncode()
        except (OSError, subprocess.SubprocessError) as error:
            raise HostLacks(f"build {self.name}: {program} --version fails ({error})") from error
        said = told.stdout.strip().removeprefix(PROGRAM).strip()
        return f"{said}, sha256 {hashlib.sha256(Path(program).read_bytes()).hexdigest()}"

    def require(self) -> None:
        """Refuse a program that is not here. Raises HostLacks."""
        if self.program is not None and not is_program(Path(self.program)):
            raise HostLacks(
                f"build {self.name} has no program at {self.program}",
                next_step=f"name the {PROGRAM} that was built, in flow.builds.{self.name}.programs",
            )


def of_factors(factors: Mapping[str, Any], said: Mapping[str, Any]) -> tuple[Build, ...]:
    """Every build of a workload; without the factor the installed program.

    Args:
        factors: of the workload.
        said: its settings of flows.
    """
    known = said.get("builds", {})
    return tuple(
        Build(name, known.get(name, {}).get("programs"), known.get(name, {}).get("environment", {}), place)
        for place, name in enumerate(factors.get("build", ("",)))
    )


def check(document: Document) -> None:
    """Refuse builds that no run has, two that are the same, programs by half a path.

    Raises:
        UsageError: naming the field.
    """
    value, named = document.value, document.value["factors"].get("build", ())
    said = value["flow"].get("builds", {})
    for name, one in said.items():
        if name not in named:
            step = "name it in factors.build, or leave it out"
            raise document.refuse(("flow", "builds", name), "no run has this build", step)
        if not Path(one.get("programs", "/")).is_absolute():
            what = f"{one['programs']} is no absolute path"
            raise document.refuse(("flow", "builds", name, "programs"), what, "write it from / on")
    plain = [name for name in named if not said.get(name)]
    if len(plain) > 1:
        what = f"{' and '.join(plain)} are the same: neither is told in flow.builds"
        raise document.refuse(("factors", "build"), what, "say there what each but one changes")
    if named and value["flow"]["generator"] != PROGRAM:
        what = f"{value['flow']['generator']} has no builds"
        raise document.refuse(("factors", "build"), what, f"use generator {PROGRAM}, or leave build out")


def settings_of(
    said: Mapping[str, Any],
    place: Path | None,
    environment: Mapping[str, str],
) -> BuildSettings:
    """What a folder or a program is as a build (`workload.load.Load.build_settings`).

    Raises:
        UsageError: for a folder without a program.
        HostLacks: where netjoule-traffic is not installed.
    """
    own: dict[str, Any] = {} if place is None else {"programs": str(_program_in(place))}
    content = own.get("programs") or (
        programs.find(PROGRAM) if said.get("generator", PROGRAM) == PROGRAM else None
    )
    said_of = own | ({"environment": dict(environment)} if environment else {})
    return BuildSettings(said_of, None if content is None else Path(content))


def is_program(path: Path) -> bool:
    """Whether it is a file that can be started."""
    return path.is_file() and os.access(path, os.X_OK)


def _program_in(place: Path) -> Path:
    if is_program(place):
        return place
    found = [place / folder / PROGRAM for folder in PLACES if is_program(place / folder / PROGRAM)]
    if not found:
        where = ", ".join(str(Path(folder, PROGRAM)) for folder in PLACES)
        raise UsageError(
            f"{place} has no program {PROGRAM}", next_step=f"build it there: as {where}; or name the program"
        )
    return found[0]
