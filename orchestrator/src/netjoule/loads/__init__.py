# SPDX-License-Identifier: Apache-2.0
"""What runs do: a room per load. Which one a workload has is found here, and handed down from here."""

from __future__ import annotations

from netjoule.topology.topology import Topology
from netjoule.workload.load import Load
from netjoule.workload.workload import Workload

__all__ = ["load_of"]


def load_of(workload: Workload, topology: Topology) -> Load:
    """The load of a workload on a testbed; nothing runs yet."""
    from netjoule.loads.flow.load import FlowLoad

    return FlowLoad(workload, topology)
