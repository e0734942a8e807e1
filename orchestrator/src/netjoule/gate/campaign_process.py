# SPDX-License-Identifier: Apache-2.0
"""Runs a session's campaign as a command of its own (`netjoule run`): nothing is left of the one before."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks, UsageError
from netjoule.gate.sessions import ended_badly
from netjoule.hosts import child_process

_ASK = (signal.SIGTERM, signal.SIGTERM)
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
    command = [*programs.PYTHON, "-m", "netjoule", "run", str(workload), "--testbed", str(testbed)]
    command += ["--out", str(campaign), "--seed", str(seed), "--json"]
    code, chatter = child_process.run_for_events(command, os.environ, told, ask=_ASK, grace_s=_GRACE_S)
    if code == 0:
        return
    said = (["", *filter(None, chatter.strip().splitlines())])[-1]
    if code in (2, 3):
        raise (UsageError if code == 2 else HostLacks)(said.removeprefix("netjoule: "))
    raise ended_badly(code, said)
