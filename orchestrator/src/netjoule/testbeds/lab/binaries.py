# SPDX-License-Identifier: Apache-2.0
"""netjoule-traffic and netjoule-transfer on every host, of its architecture and of the controller's version.

The build for a host is dist/<machine>/<program> (`make dist`: static), made of the sources that are
here now, or the controller's own when the machines are equal and it is the later one. A host that has these
very bytes installed runs them; another gets a copy in its cache.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed

if TYPE_CHECKING:  # Ansible asks for builds, and has no use for an SSH of ours
    from netjoule.hosts.ssh import SshHost

PROGRAM = "netjoule-traffic"
INSTALLED = "/usr/local/bin"


@dataclass(frozen=True, slots=True)
class Build:
    """A program that fits a host.

    Attributes:
        words: which one it is, for people.
    """

    path: Path
    words: str


def build_for(machine: str, root: Path | None, program: str = PROGRAM) -> Build | None:
    """The build of a program for an architecture (as uname -m names it) in a source tree; None without one.

    Raises:
        HostLacks: when the one of `make dist` is of other sources than are here.
    """
    own = Path(programs.find(program)) if machine == platform.machine() else None
    static = root / "dist" / machine / program if root is not None else None
    if root is None or static is None or not static.is_file():
        return Build(own, f"the controller's own, of {_made(own)}") if own is not None else None
    if own is not None and own.stat().st_mtime_ns > static.stat().st_mtime_ns:
        return Build(own, f"the controller's own, of {_made(own)}: later than dist/{machine}")
    made_of, here = _commit_of(static), programs.rust_commit(root)
    if made_of != here:
        raise HostLacks(
            f"it is built from commit {made_of or 'unknown'}, the sources here are of {here or 'unknown'}",
            where=f"dist/{machine}/{program}",
            next_step="'make dist' builds it anew",
        )
    return Build(static, f"dist/{machine} of commit {here or 'unknown'}")


def builds(root: Path | None) -> dict[str, dict[str, str]]:
    """What `build_for` chooses for each architecture that there is one for, as Ansible is told.

    Returns:
        by machine, `path`, or an empty one and the `problem` with its remedy.
    """
    made = (folder.name for folder in (root / "dist").glob("*/")) if root is not None else ()
    found: dict[str, dict[str, str]] = {}
    for machine in sorted({platform.machine(), *made}):
        try:
            build = build_for(machine, root)
        except HostLacks as error:
            found[machine] = {"path": "", "problem": str(error)}
        else:
            if build is not None:
                found[machine] = {"path": str(build.path.absolute()), "problem": ""}
    return found


def _made(path: Path) -> str:
    return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _commit_of(static: Path) -> str:
    """What `make dist` noted beside a program; empty when it noted nothing."""
    try:
        return static.with_name("commit").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


async def provide(host: SshHost, version: str, program: str = PROGRAM) -> str:
    """See to it that the host can run a program of ours in the controller's `version`; note where it is.

    Returns:
        which build it runs, for people.

    Raises:
        HostLacks: when it has no fitting program and there is none to copy, or it cannot run what it got.
        RunFailed: when its version is another one.
    """
    build = build_for(host.machine, programs.checkout(), program)
    which = "its own, as there is none here for its architecture"
    place = installed = f"{INSTALLED}/{program}"
    if build is not None:
        which = build.words
        data = build.path.read_bytes()
        said = await host.ask(["sha256sum", installed])
        same = said.status == 0 and said.out.split()[0].lstrip("\\") == hashlib.sha256(data).hexdigest()
        if not same:
            place = await host.put_once(data, program, executable=True)
    host.programs[program] = place
    said = await host.ask([place, "--version"])
    if said.status:
        words = (said.err or said.out).strip().splitlines() or ["without an error message"]
        raise HostLacks(
            f"{place} does not run on this {host.machine} host ({words[-1]})",
            where=f"host {host.name}",
            next_step=f"build dist/{host.machine}/{program} with 'make dist'",
        )
    found = said.out.strip().removeprefix(program).strip()
    if found != version:
        raise RunFailed(
            f"it has {program} {found}, the controller {version}",
            where=f"host {host.name}",
            next_step=f"build dist/{host.machine}/{program} with 'make dist', then 'netjoule provision'",
        )
    return f"{found} at {place} ({which})"
