# SPDX-License-Identifier: Apache-2.0
"""Hosts of a topology as its users need them: defaults filled in, addresses with their prefix length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any

from netjoule.hosts.ssh_settings import SshSettings

Interface = IPv4Interface | IPv6Interface

WIRED_ROLES = ("server", "proxy", "origin", "dns", "router")
"""Of hosts behind the access point."""
ROLES = ("client", "access_point", "server", "web_server", "meter_host", "observer", "controller")
"""That are provisioned: the groups of Ansible's inventory."""
PREFIX_LENGTHS = {"ipv4": 24, "ipv6": 64}  # of a test address that does not tell its own


@dataclass(frozen=True, slots=True)
class Radio:
    """The test radio. addresses: with prefix length, also those of a bridge that it is part of."""

    interface: str
    reader: str = "auto"
    every_s: float = 1.0
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wired:
    """The cable of the test network. addresses: with prefix length."""

    interface: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """Network `to` (with prefix length) lies behind the host with address `via`."""

    to: str
    via: str


@dataclass(frozen=True, slots=True)
class TopologyHost:
    """One host.

    Attributes:
        control_address: by which other hosts reach it off the radio; None where the document names none.
        service_manager: systemd or none.
        test_addresses: ADDRESS/PREFIX by family (ipv4, ipv6).
    """

    name: str
    roles: tuple[str, ...]
    control_address: str | None
    ssh: SshSettings
    service_manager: str
    test_addresses: Mapping[str, str]
    radio: Radio | None
    wired: Wired | None
    routes: tuple[Route, ...]

    def test_address(self, family: str) -> str | None:
        """The address of test flows without prefix length; None without one of this family."""
        found = self.test_addresses.get(family)
        return found.partition("/")[0] if found else None

    @property
    def first_test_address(self) -> str:
        """The same of the first family that it has, IPv4 before IPv6; empty without any."""
        return self.test_address("ipv4") or self.test_address("ipv6") or ""

    @property
    def test_interface(self) -> str | None:
        """The interface to the test network: the radio where there is one, else the cable."""
        one = self.radio or self.wired
        return None if one is None else one.interface


def described(name: str, host: Mapping[str, Any]) -> TopologyHost:
    """A host of a valid document.

    An interface without addresses of its own has the test addresses: the radio where there is one, else the
    cable.
    """
    tests = {family: with_prefix(text, family) for family, text in host.get("test_addresses", {}).items()}
    radio, wired = host.get("radio"), host.get("wired")
    own = tuple(tests.values())
    return TopologyHost(
        name=name,
        roles=tuple(host["roles"]),
        control_address=host.get("control_address"),
        ssh=SshSettings.of(name, host),
        service_manager=host.get("service_manager", "systemd"),
        test_addresses=tests,
        radio=Radio(**_placed(radio, own)) if radio else None,
        wired=Wired(**_placed(wired, () if radio else own)) if wired else None,
        routes=tuple(Route(**route) for route in host.get("routes", ())),
    )


def reached_at(host: Mapping[str, Any]) -> tuple[str | None, int]:
    """Address and port of a host's sshd, of a document; no address where it tells none."""
    ssh = host.get("ssh", {})
    return ssh.get("address", host.get("control_address")), ssh.get("port", 22)


def wired_hosts(hosts: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the hosts behind the access point, the first server first."""
    found = [name for name, host in hosts.items() if set(WIRED_ROLES) & set(host["roles"])]
    return tuple(sorted(found, key=lambda name: "server" not in hosts[name]["roles"]))


def with_prefix(address: str, family: str) -> str:
    """ADDRESS/PREFIX of a test address, with the family's usual prefix where it tells none."""
    return address if "/" in address else f"{address}/{PREFIX_LENGTHS[family]}"


def _placed(interface: Mapping[str, Any], test_addresses: tuple[str, ...]) -> dict[str, Any]:
    return {**interface, "addresses": tuple(interface.get("addresses", test_addresses))}
