# SPDX-License-Identifier: Apache-2.0
"""Who takes part: netjoule-traffic, iperf3 as installed, a newer one, D-ITG and NetPerfMeter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from netjoule_bench.generators.flow import Flow, Outcome, Run
from netjoule_bench.generators.iperf3 import Iperf3
from netjoule_bench.generators.neighbours import Neighbour
from netjoule_bench.generators.netjoule_traffic import NetjouleTraffic

Arms = dict[str, Callable[[], Outcome]]


@dataclass(frozen=True)
class Contest:
    """The generators of this run, how long a flow lasts, and how many rounds stand behind a median."""

    ours: NetjouleTraffic
    iperf3: Iperf3
    newer: Iperf3 | None
    neighbours: list[Neighbour]
    seconds: float
    repeats: int
    absent: dict[str, str] = field(default_factory=dict)
    """Who does not take part, and why."""

    @property
    def reference(self) -> str:
        """The arm that ratios refer to."""
        return self.iperf3.name

    @property
    def iperf3s(self) -> list[Iperf3]:
        """The reference, and the newer one where there is one."""
        return [self.iperf3, *([self.newer] if self.newer else [])]

    def runs(self, payload_bytes: int, *, room: bool = False) -> dict[str, Run]:
        """Every other generator that can send messages of this size, the reference first.

        Args:
            payload_bytes: of a message.
            room: give iperf3 the receive buffer that netjoule-traffic has.
        """
        found: dict[str, Run] = {one.name: one.run_with_room if room else one.run for one in self.iperf3s}
        fitting = [one for one in self.neighbours if one.least_payload_bytes <= payload_bytes]
        return found | {one.name: one.run for one in fitting}

    def others(self, flow: Flow) -> Arms:
        """An arm for each of them with ``flow``."""
        return {name: partial(run, flow) for name, run in self.runs(flow.payload_bytes).items()}
