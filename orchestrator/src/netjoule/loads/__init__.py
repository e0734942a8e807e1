# SPDX-License-Identifier: Apache-2.0
"""What runs do: a room per load. Which one a workload has is found here, and handed down from here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from netjoule.core import yamlfile
from netjoule.core.yamlfile import Document
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.load import BuildSettings, Load
from netjoule.workload.workload import Workload, effective

ROOMS = {
    "flow": "netjoule.loads.flow.load:FlowLoad",
    "transfer": "netjoule.loads.transfer.load:TransferLoad",
    "command": "netjoule.loads.command.load:CommandLoad",
}
"""The class of each load by its name in loads.json."""
SIMULATED_ROOMS = {
    "flow": "netjoule.loads.flow.simulated:SimulatedFlowLoad",
    "transfer": "netjoule.loads.transfer.simulated:SimulatedTransferLoad",
}
"""That of loads which differ on a simulated testbed."""


def own_tables() -> Any:
    """What the terminal tells of the load with tables of its own in R; of others `analysis` knows it."""
    return import_module("netjoule.loads.flow.energy_table")


def load_of(workload: Workload, topology: Topology) -> Load:
    """The load of a workload on a testbed; nothing runs yet."""
    rooms = ROOMS | SIMULATED_ROOMS if topology.kind == SIMULATED else ROOMS
    made: Load = _room(workload.load, rooms)(workload, topology)
    return made


def read(path: Path, beside: yamlfile.Beside = lambda _: ()) -> Workload:
    """Read a workload file.

    Args:
        path: the file.
        beside: as `yamlfile.hold` has it.

    Raises:
        UsageError: naming file, line and field of what does not fit.
    """
    return _completed(effective(yamlfile.load(path), beside), path.parent)


def made(value: Mapping[str, Any], *, where: str) -> Workload:
    """Make a workload that nobody has held to its load's rules yet; `where` names it in messages.

    Raises:
        UsageError: naming the field that does not fit.
    """
    return _completed(effective(Document(where, dict(value), {})), None)


def build_settings(
    document: Mapping[str, Any], place: Path | None, environment: Mapping[str, str]
) -> BuildSettings:
    """What a program, a folder or an environment is as a build of a workload (`Load.build_settings`).

    Raises UsageError where it cannot be one.
    """
    load = document["load"]
    found: BuildSettings = _room(load).build_settings(document.get(load, {}), place, environment)
    return found


def _completed(document: Document, folder: Path | None) -> Workload:
    """The same once its load has held it to its rules and filled in its settings."""
    _room(document.value["load"]).complete(document, folder)
    return Workload.of(document)


def _room(name: str, rooms: Mapping[str, str] = ROOMS) -> Any:
    module, _, called = rooms[name].partition(":")
    return getattr(import_module(module), called)
