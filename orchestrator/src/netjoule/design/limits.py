# SPDX-License-Identifier: Apache-2.0
"""What a testbed has to have for a workload, whichever its load."""

from __future__ import annotations

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError
from netjoule.design.run_table import require_few_runs
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload


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
    for name in workload.factors:
        if (contracts.factor(name) or {}).get("owner") == "testbed":
            raise UsageError(
                f"{topology.name} cannot change {name} between runs",
                where=f"{where}, field factors.{name}",
                next_step="leave it out, and run a campaign for each value",
            )
    require_few_runs(workload)
