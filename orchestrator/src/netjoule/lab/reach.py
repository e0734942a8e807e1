# SPDX-License-Identifier: Apache-2.0
"""Which hosts a campaign needs, and whether what controls them stays off the radio under test."""

from __future__ import annotations

import json
import socket

from netjoule.errors import HostLacks, UsageError
from netjoule.ssh import SshHost
from netjoule.topology import Topology

__all__ = ["BRIDGE", "needed_hosts", "require_control_off_the_radio"]

BRIDGE = "br-netjoule"
"""What the role access_point calls the bridge of radio and cable."""


def needed_hosts(topology: Topology) -> list[str]:
    """Hosts that take part: the first client and server, every host with a radio or a meter's cable."""
    ends = [topology.host_with("client"), topology.host_with("server")]
    radios = [name for name in topology.hosts if topology.host(name).radio is not None]
    meters = [meter.host for meter in topology.meters if meter.host is not None]
    return list(dict.fromkeys([*ends, *radios, *meters]))


async def require_control_off_the_radio(topology: Topology, host: SshHost, peers: list[str]) -> None:
    """Refuse a host whose way to the controller, or to `peers` (control addresses), is its test radio.

    Raises:
        UsageError: naming the host, the way and what to change.
        HostLacks: when it has no iproute2.
    """
    described = topology.host(host.name)
    if described.radio is None:
        return
    radio = described.radio.interface
    test_side = {radio: f"the test radio {radio}"}
    if "access_point" in described.roles and topology.wifi.get("forwarding") == "bridging":
        test_side[BRIDGE] = f"{BRIDGE}, to which the test radio {radio} belongs"
    for what, address in [("the controller", host.controller_address), *((p, _resolved(p)) for p in peers)]:
        way = test_side.get(await _way_to(host, address))
        if way is not None:
            raise UsageError(
                f"its way to {what} ({address}) is {way}: control traffic would be measured with the flows",
                where=f"host {host.name}",
                next_step="connect it by cable and name its address there as control_address",
            )


async def _way_to(host: SshHost, address: str) -> str:
    """Interface by which a host sends to an address; empty when it has none."""
    said = await host.ask(["ip", "-json", "route", "get", address])
    if said.status == 127:  # the shell's word for a command that is not there
        raise HostLacks(
            "it has no ip command", where=f"host {host.name}", next_step="install the package iproute2"
        )
    found = json.loads(said.out) if said.status == 0 and said.out.strip() else []
    return str(found[0].get("dev", "")) if found else ""


def _resolved(name: str) -> str:
    """A name's address, as the controller knows it."""
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return name
