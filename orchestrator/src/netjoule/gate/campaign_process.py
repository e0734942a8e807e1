# SPDX-License-Identifier: Apache-2.0
"""Runs a session's campaign as a command of its own (`netjoule run`): nothing is left of the one before."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks, InvalidData, NetjouleError, RunFailed, UsageError
from netjoule.hosts import child_process

_ASK = (signal.SIGTERM, signal.SIGTERM)
_BY_EXIT: dict[int, type[NetjouleError]] = {2: UsageError, 3: HostLacks, 4: InvalidData}
_GRACE_S = 30.0
"""A testbed takes some seconds to go down."""


def run(
    workload: Path, testbed: Path, campaign: Path, seed: int, told: Callable[[Mapping[str, Any]], None]
) -> None:
    """Run a workload to the end of its plan.

    Args:
        workload: its file.
        testbed: topology file.
        campaign: folder to be made.
        seed: of its random choices.
        told: gets its events.

    Raises:
        UsageError, HostLacks: as the command.
        RunFailed, InvalidData: when it ended otherwise before its end.
    """
    # Asked to end by the kernel where this process is killed: its rig is free then, for the next gate.
    command = ["setpriv", "--pdeathsig", "TERM", *programs.PYTHON]
    command += ["-m", "netjoule", "run", str(workload), "--testbed", str(testbed)]
    command += ["--out", str(campaign), "--seed", str(seed), "--json"]
    code, chatter = child_process.run_for_events(command, os.environ, told, ask=_ASK, grace_s=_GRACE_S)
    if code == 0:
        return
    raise ended_badly(code, (["", *filter(None, chatter.strip().splitlines())])[-1])


def ended_badly(code: int, said: str) -> NetjouleError:
    """The error of a session by the exit code of its process and its last line; 1 there is no regression."""
    what = said.removeprefix("netjoule: ") or f"the session ended with exit code {code}"
    return _BY_EXIT.get(code, RunFailed)(what, code="session_failed")
