# SPDX-License-Identifier: Apache-2.0
"""Programs that make flows, behind one interface: netjoule-traffic and iperf3."""

from netjoule.errors import UsageError
from netjoule.generators.base import Flow, FlowSpec, Generator, controller_offset_ns, interval_rows
from netjoule.generators.iperf3 import Iperf3
from netjoule.generators.netjoule_traffic import NetjouleTraffic

__all__ = ["Flow", "FlowSpec", "Generator", "controller_offset_ns", "generator", "interval_rows"]


def generator(name: str) -> Generator:
    """The generator that a workload calls `name`.

    Raises UsageError for another name.
    """
    if name == NetjouleTraffic.name:
        return NetjouleTraffic()
    if name == Iperf3.name:
        return Iperf3()
    raise UsageError(f"there is no generator '{name}'", next_step="use netjoule-traffic or iperf3")
