# SPDX-License-Identifier: Apache-2.0
"""Which device models the emulated instruments of a testbed read in a campaign. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from netjoule.topology.topology import Topology


def device_models(topology: Topology, asked: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Device models of each emulated meter by its meter_id; the first is that of the start.

    Args:
        topology: names the meters; each emulated one is of a client.
        asked: values of the factor `device`, in place of the topology's; empty where a workload lacks it.
    """
    return {m.meter_id: tuple(asked) or (m.device_model,) for m in topology.meters if m.device_model}
