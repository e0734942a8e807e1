# SPDX-License-Identifier: Apache-2.0
"""Can routers have the settings that a workload asks for? The model says so before anything starts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks, UsageError
from netjoule.topology.hosts import wired_hosts
from netjoule.topology.paths import OF_ELEMENTS, asked_paths, path_elements
from netjoule.topology.topology import EMULATED, SIMULATED, Topology
from netjoule.workload.workload import Workload

_PROGRAM = "netjoule-simulate"
"""It has the model of netjoule-link."""
_LONGEST_S = 60
_A_MOMENT = {"seed": 0, "duration_s": 0.001, "interval_s": 0.001, "flows": [{}]}


def require(workload: Workload, topology: Topology) -> None:
    """Refuse settings with which a router could not work: a rate that could never rise again, for instance.

    Raises:
        UsageError: with what was asked for, in the words of the model.
        HostLacks: without the program.
    """
    if topology.kind not in (EMULATED, SIMULATED):
        return
    asked = dict(_asked(workload, topology.document))
    for values, told in zip(asked.values(), _told(list(asked)), strict=True):
        if "error" in told:
            named = ", ".join(f"{name} {value}" for name, value in values.items())
            raise UsageError(
                f"{named or 'path'}: {told['error']}",
                where=f"workload {workload.name}" if values else f"topology {topology.name}",
            )


def _asked(workload: Workload, document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Elements of each path with a router, as JSON, and the values of factors that ask for them."""
    names = [name for name in workload.factors if name in OF_ELEMENTS or name.partition(".")[0] == "path"]
    own = {host: path_elements(document, host) for host in wired_hosts(document["hosts"])}
    for combination in product(*(workload.factors[name] for name in names)):
        values = dict(zip(names, combination, strict=True))
        for elements in (own | asked_paths(document, values)).values():
            if any("scaling" in one for one in elements):
                yield json.dumps(elements), values


def _told(paths: list[str]) -> list[dict[str, Any]]:
    """What the model answers for each path."""
    if not paths:
        return []
    asked = (json.dumps(_A_MOMENT | {"id": 0, "elements": json.loads(path)}) for path in paths)
    try:
        done = subprocess.run(
            [programs.find(_PROGRAM)],
            input="\n".join(asked) + "\n",
            capture_output=True,
            text=True,
            check=True,
            timeout=_LONGEST_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise HostLacks(f"{_PROGRAM} does not answer: {error}", next_step="run 'make setup' anew") from error
    return [json.loads(line) for line in done.stdout.splitlines()]
