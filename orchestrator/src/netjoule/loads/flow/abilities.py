# SPDX-License-Identifier: Apache-2.0
"""What each generator of flows can be asked for, known before one is looked for."""

from __future__ import annotations

from dataclasses import dataclass

from netjoule.loads.flow import transports


@dataclass(frozen=True)
class Ability:
    """What a generator can be asked for.

    Attributes:
        transports: those it does; the null floor is always netjoule-traffic's.
        directions: up, down or both.
        least_payload_bytes: its own header in every message.
        options: transports whose transport_options reach it.
        paces: it takes a pacing, a window and trains, and certifies how it kept its schedule.
        profiles: it sends what a profile gives.
        several: it makes several flows at once, its server takes them.
    """

    transports: frozenset[str]
    directions: frozenset[str] = frozenset({"up", "down"})
    least_payload_bytes: int = 16
    options: frozenset[str] = frozenset()
    paces: bool = False
    profiles: bool = False
    several: bool = False


ABILITIES = {
    "netjoule-traffic": Ability(
        transports.names(),
        directions=frozenset({"up", "down", "both"}),
        options=transports.which("options"),
        paces=True,
        profiles=True,
        several=True,
    ),
    "iperf3": Ability(frozenset({"udp", "tcp"})),
    "iperf-dccp": Ability(frozenset({"dccp-kernel"})),
    "ditg": Ability(frozenset({"udp", "tcp", "dccp-kernel"}), frozenset({"up"}), 20),
    "netperfmeter": Ability(
        frozenset({"udp", "tcp", "dccp-kernel"}), least_payload_bytes=48, options=frozenset({"dccp-kernel"})
    ),
}
"""By the name that a workload calls a generator."""
