# SPDX-License-Identifier: Apache-2.0
"""What a testbed has to have for a workload, whichever its load."""

from __future__ import annotations

from itertools import product
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError
from netjoule.design.instruments import wants_ranging
from netjoule.design.run_table import require_few_runs
from netjoule.topology.devices import device_models
from netjoule.topology.paths import OF_ELEMENTS, asked_paths, is_path, parameters, path_host
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload, of_testbed


def check_workload(workload: Workload, topology: Topology) -> None:
    """Refuse a campaign that this kind of testbed does not have, or that nobody could run to its end.

    Raises:
        UsageError: for a load that does not run there, a factor of testbeds that it cannot set, or too many
            runs.
    """
    where = f"workload {workload.name}"
    kinds = contracts.loads()[workload.load]["kinds"]
    # An imported campaign has no testbed; nothing runs there.
    if topology.kind not in kinds and topology.kind != "imported":
        raise UsageError(
            f"{workload.load} does not run on a testbed of kind {topology.kind}",
            where=where,
            next_step=f"use one of kind {' or '.join(kinds)}",
        )
    for name, values in workload.factors.items():
        if of_testbed(name):
            _check_of_testbed(workload, topology, name, values)
    require_few_runs(workload)


def _check_of_testbed(workload: Workload, topology: Topology, name: str, values: tuple[Any, ...]) -> None:
    """Refuse a factor that the testbed cannot set, and values of it that it does not have."""
    entry = contracts.factor(name) or {}
    where = f"workload {workload.name}, field factors.{name}"
    if topology.kind not in entry["kinds"]:
        raise UsageError(
            f"a testbed of kind {topology.kind} cannot set {name}",
            where=where,
            next_step=f"use one of kind {' or '.join(entry['kinds'])}",
        )
    if "names" in entry:
        path_host(topology.document, name, where)
    if name == "device":
        _require_meters(topology, values, where)
    if name in OF_ELEMENTS:
        _require_elements(workload, topology, name, where)
    if name == workload.arm and not entry.get("while_up", True):
        raise UsageError(
            f"{name} cannot be the arm: a testbed that is up cannot change it between two runs",
            where=f"workload {workload.name}, field arm",
            next_step="name another factor",
        )
    for value in values if "object" in entry["value"]["type"] else ():
        parameters(topology.document, name, value, where)


def _require_meters(topology: Topology, devices: tuple[Any, ...], where: str) -> None:
    """Refuse devices that no meter reads, and several of a meter whose range a pass with one would find."""
    if not device_models(topology, devices):
        raise UsageError(
            f"no meter of {topology.name} reads a device model",
            where=where,
            next_step="give it an emulated one, or leave the factor out",
        )
    for meter in topology.meters:
        if devices[1:] and meter.emulated and wants_ranging(meter):
            raise UsageError(
                f"the range of meter {meter.meter_id} would be found with one of the devices alone",
                where=where,
                next_step="give it a range in the topology that fits all of them",
            )


def _require_elements(workload: Workload, topology: Topology, name: str, where: str) -> None:
    """Refuse a factor of elements for paths without any that has its field."""
    paths = {path: values for path, values in workload.factors.items() if is_path(path)}
    for values in product(*paths.values(), workload.factors[name]):
        asked_paths(topology.document, dict(zip((*paths, name), values, strict=True)), where)
