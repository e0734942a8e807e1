# SPDX-License-Identifier: Apache-2.0
"""Which hosts a campaign needs, and whether what controls them stays off the radio under test."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from netjoule.core.errors import HostLacks, UsageError
from netjoule.hosts.ssh import SshHost
from netjoule.topology.topology import Topology

BRIDGE = "br-netjoule"
"""What the role access_point calls the bridge of radio and cable."""


def needed_hosts(topology: Topology, roles: Mapping[str, int]) -> list[str]:
    """Hosts that take part: the first ones of each role, every host with a radio or a meter's cable.

    Raises UsageError when a role has fewer hosts than asked.
    """
    ends = [name for names in topology.first_hosts(roles).values() for name in names]
    radios = [name for name in topology.hosts if topology.host(name).radio is not None]
    meters = [meter.host for meter in topology.meters if meter.host is not None]
    return list(dict.fromkeys([*ends, *radios, *meters]))


async def control_number(topology: Topology, name: str, seen_from: SshHost) -> str:
    """The control address of host `name` as a number: netjoule-traffic resolves no names.

    One that is a name is what the host that goes there takes it for, else what the controller does.

    Raises:
        UsageError: when it is no host's name to either.
    """
    text = str(topology.hosts[name]["control_address"])
    if _is_number(text):
        return text
    said = await seen_from.ask(["getent", "ahosts", text])
    found = [line.split()[0] for line in said.out.splitlines() if line.strip()] if said.status == 0 else []
    for address in (*_leading_there(found), *_leading_there(_resolved(text))):
        return address
    raise UsageError(
        f"its control_address '{text}' is a name that neither {seen_from.name} nor the controller resolves",
        where=f"host {name}",
        next_step="write its number there, or add the name to /etc/hosts of both",
    )


async def require_control_off_the_radio(topology: Topology, host: SshHost, peers: Mapping[str, str]) -> None:
    """Refuse a host whose way to the controller, or to `peers` (who, and its address), is its test radio.

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
    for what, address in ({"the controller": host.controller_address} | dict(peers)).items():
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


def _resolved(name: str) -> list[str]:
    """A name's addresses, as the controller knows them."""
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):  # the latter for a label that is too long
        return []


def _leading_there(found: Iterable[str]) -> list[str]:
    """Addresses that mean the same host everywhere: a host's own name is often its loopback address."""
    numbers = [text for text in found if _is_number(text)]
    return [text for text in numbers if not (ip_address(text).is_loopback or ip_address(text).is_link_local)]


def _is_number(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
