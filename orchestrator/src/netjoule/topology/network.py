# SPDX-License-Identifier: Apache-2.0
"""Addresses of a topology: each valid and given once, client and server within each other's reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Any

from netjoule.core.safe_text import escaped
from netjoule.core.yamlfile import Document
from netjoule.topology.hosts import WIRED_ROLES, Interface, wired_hosts, with_prefix

Place = tuple[str | int, ...]
_VERSIONS = {"ipv4": 4, "ipv6": 6}
_ENDS = ("client", "server")
MOST_STATIONS = 32
"""Stations that netjoule-link takes, and hosts behind its access point."""


@dataclass(frozen=True, slots=True)
class Given:
    """An address of the document: who has it and where it stands."""

    host: str
    place: Place
    interface: Interface


def check_emulated_addresses(document: Document) -> None:
    """Ends of an emulated link: a host each, each address valid, once, and on one network."""
    hosts: dict[str, Any] = document.value["hosts"]
    clients = [name for name, host in hosts.items() if "client" in host["roles"]]
    wired = wired_hosts(hosts)
    for name in filter(clients.__contains__, wired):
        other = next(role for role in hosts[name]["roles"] if role in WIRED_ROLES)
        raise document.refuse(
            ("hosts", name, "roles"), f"client and {other} are one host", "use a host for each"
        )
    for names, what in ((clients, "the role client"), (wired, "a role behind the access point")):
        if len(names) > MOST_STATIONS:
            raise document.refuse(
                ("hosts", names[MOST_STATIONS], "roles"),
                f"{len(names)} hosts have {what}; the emulated link takes {MOST_STATIONS}",
                "take the role from some",
            )
    for family in _VERSIONS:
        seen: list[Given] = []
        for name in (*clients, *wired):
            for given in _test_addresses(document, name):
                if given.place[-1] != family:
                    continue
                _refuse_second(document, given, seen)
                if seen and seen[0].interface.network != given.interface.network:
                    other = seen[0].interface
                    raise document.refuse(
                        given.place,
                        f"{given.interface.ip} and {other.ip} are not on one network",
                        f"use addresses of {other.network}",
                    )
                seen.append(given)


def check_network(document: Document) -> None:
    """The test network of real hosts: addresses, routes, reach, and the control network apart from it."""
    given: list[Given] = []
    for name in document.value["hosts"]:
        of_host: list[Given] = []
        for one in _addresses(document, name):
            # A host may say the same address twice: as an interface's and as the one that flows use.
            if all(other.interface != one.interface for other in of_host):
                _refuse_second(document, one, given)
                of_host.append(one)
        given += of_host
    _check_control(document, given)
    _check_routes(document, given)
    _check_reach(document)


def check_way_in(document: Document, place: Place, text: str | None) -> None:
    """What can only be meant as an address (digits and dots, or with a colon) is one; else it is a name.

    Raises:
        UsageError: naming file, line and field.
    """
    if text is not None:
        _refuse_zone(document, place, text)
    if text is None or not (":" in text or text.replace(".", "").isdigit()):
        return
    try:
        ip_address(text)
    except ValueError:
        raise document.refuse(
            place, f"'{text}' is not an address", "write one such as 192.168.50.11, or the host's name"
        ) from None


def _refuse_second(document: Document, given: Given, seen: list[Given]) -> None:
    if any(given.interface.ip == other.interface.ip for other in seen):
        raise document.refuse(given.place, f"{given.interface.ip} is given twice", "give each host its own")


def _addresses(document: Document, name: str) -> Iterator[Given]:
    """Every address of a host, test addresses first."""
    yield from _test_addresses(document, name)
    for section in ("radio", "wired"):
        texts = document.value["hosts"][name].get(section, {}).get("addresses", ())
        for index, text in enumerate(texts):
            place = ("hosts", name, section, "addresses", index)
            if "/" not in text:
                raise document.refuse(
                    place, f"'{text}' has no prefix length", f"write {text}/24, or /64 for IPv6"
                )
            yield Given(name, place, _interface(document, place, text, "address with prefix length"))


def _test_addresses(document: Document, name: str) -> Iterator[Given]:
    for family, text in document.value["hosts"][name].get("test_addresses", {}).items():
        place = ("hosts", name, "test_addresses", family)
        found = _interface(document, place, with_prefix(text, family), f"{family} address", shown=text)
        if found.version != _VERSIONS[family]:
            raise document.refuse(place, f"'{text}' is not an {family} address")
        yield Given(name, place, found)


def _interface(document: Document, place: Place, text: str, what: str, *, shown: str = "") -> Interface:
    _refuse_zone(document, place, text)
    try:
        return ip_interface(text)
    except ValueError:
        raise document.refuse(place, f"'{shown or text}' is not an {what}") from None


def _refuse_zone(document: Document, place: Place, text: str) -> None:
    """No zone (fe80::1%eth0), which Python's addresses take whatever characters it has."""
    if "%" in text:
        raise document.refuse(place, f"'{escaped(text)}' has a zone", "write an address without %INTERFACE")


def _check_control(document: Document, given: list[Given]) -> None:
    """No control address on a test network: control traffic would go over the radio."""
    for name, control in _control_addresses(document):
        for one in given:
            if control in one.interface.network:
                raise document.refuse(
                    ("hosts", name, "control_address"),
                    f"{control} lies in the test network {one.interface.network} of {one.host},"
                    " so that control traffic would disturb the flows",
                    "give the host an address on a network of its own, by cable",
                )


def _control_addresses(document: Document) -> Iterator[tuple[str, IPv4Address | IPv6Address]]:
    """Control addresses that are no names; what a name means is seen when the hosts are reached."""
    for name, host in document.value["hosts"].items():
        try:
            yield name, ip_address(host.get("control_address", ""))
        except ValueError:
            continue


def _check_routes(document: Document, given: list[Given]) -> None:
    for name, host in document.value["hosts"].items():
        networks = [one.interface.network for one in given if one.host == name]
        for index, route in enumerate(host.get("routes", ())):
            place: Place = ("hosts", name, "routes", index)
            to = _network(document, (*place, "to"), route["to"])
            for other, control in _control_addresses(document):
                if control in to:
                    raise document.refuse(
                        (*place, "to"),
                        f"the route to {to} takes control traffic to {other} ({control}) with it",
                        "name the test network alone",
                    )
            via = _interface(document, (*place, "via"), route["via"], "address")
            if not any(via.ip in network for network in networks):
                mine = ", ".join(map(str, networks)) or "none"
                raise document.refuse(
                    (*place, "via"),
                    f"{via.ip} is on no test network of {name} ({mine})",
                    "name the address of the next host on one of them",
                )


def _network(document: Document, place: Place, text: str) -> IPv4Network | IPv6Network:
    _refuse_zone(document, place, text)
    try:
        found = ip_network(text)
    except ValueError as error:
        raise document.refuse(
            place, f"'{text}' is no network: {error}", "write one such as 10.78.0.0/24"
        ) from None
    if not found.prefixlen:
        raise document.refuse(
            place,
            "a default route would send control traffic over the test network",
            "name the test network behind the other host, such as 10.78.0.0/24",
        )
    return found


def _check_reach(document: Document) -> None:
    """Each client and each server on one network, or with a route to the other."""
    hosts: dict[str, Any] = document.value["hosts"]
    ends = {role: [name for name, host in hosts.items() if role in host["roles"]] for role in _ENDS}
    for client in ends["client"]:
        for server in ends["server"]:
            if client == server:
                raise document.refuse(
                    ("hosts", client, "roles"), "client and server are one host", "use a host for each"
                )
            shared = set(hosts[client]["test_addresses"]) & set(hosts[server]["test_addresses"])
            if not shared:
                raise document.refuse(
                    ("hosts", client, "test_addresses"),
                    f"{client} and {server} have addresses of no common family",
                    "give both ipv4, or both ipv6",
                )
            for family in sorted(shared):
                _check_way(document, client, server, family)
                _check_way(document, server, client, family)


def _check_way(document: Document, start: str, end: str, family: str) -> None:
    host = document.value["hosts"][start]
    one, other = (
        next(given for given in _test_addresses(document, name) if given.place[-1] == family)
        for name in (start, end)
    )
    if one.interface.network == other.interface.network:
        return
    if any(other.interface.ip in ip_network(route["to"]) for route in host.get("routes", ())):
        return
    network = other.interface.network
    raise document.refuse(
        one.place,
        f"{start} ({one.interface.ip}) has no way to {end} ({other.interface.ip})",
        f"add 'routes: [{{to: {network}, via: ADDRESS}}]' to hosts.{start} with the address of the host"
        " between them, or use one network for both",
    )
