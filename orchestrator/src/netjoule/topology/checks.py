# SPDX-License-Identifier: Apache-2.0
"""What the schema cannot say of a topology: roles, kinds, meters. Each fault names its field."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from netjoule.core import secrets
from netjoule.core.yamlfile import Document
from netjoule.topology.hosts import WIRED_ROLES, reached_at
from netjoule.topology.lab import LAB, check_lab
from netjoule.topology.network import check_emulated_addresses
from netjoule.topology.paths import check_paths

EMULATED = "emulated"
IMPORTED = "imported"
SIMULATED = "simulated"
"""Kinds of testbeds that need rules of their own."""
# user:password@ in an address would carry a secret past the schema's named fields.
_CREDENTIALS_IN_ADDRESS = re.compile(r"://[^/\s]*@")
_BREAKING = frozenset({"Cc", "Zl", "Zp"})  # Unicode's categories of controls and of breaks
_LOCAL = re.compile(r"([a-z0-9]+:)?/(?!/)")  # a device file
_HOST = re.compile(r"[a-z0-9]+:(?://)?(\[[^\[\]/]*\]|[^\[\]/:]*)")
# RFC 1918 and RFC 4193; not the link, where 169.254.169.254 tells a cloud's secrets, nor this machine.
_PRIVATE = [ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")]
_ZONE = re.compile(r"[A-Za-z0-9._-]+(\](:\d+)?)?")
_FOR_PACKETS = (
    "reservation",
    "wifi",
    "cpus",
    "traffic_secret",
    "radio_source",
    "room",
)
_FOR_REAL_HOSTS = ("ssh", "service_manager", "wired", "routes")


def check(document: Document) -> None:
    """Hold a document that fits the schema to the rules between its fields.

    Raises:
        UsageError: naming file, line and field of the first fault.
    """
    if document.value["kind"] == SIMULATED:
        _check_simulated(document)
        return
    if not document.value["meters"]:
        raise document.refuse(("meters",), "there is no meter", "describe one, as testbed-topology.yaml does")
    _check_roles(document)
    _check_link(document)
    if document.value["kind"] == IMPORTED:
        return
    _check_characters(document, (), {k: v for k, v in document.value.items() if k != "description"})
    what = f"a testbed of kind {document.value['kind']} says by its radios where its figures come from"
    _refuse_fields(document, (), ("radio_source",), what, "leave radio_source out")
    if document.value["kind"] != LAB:
        what = f"a testbed of kind {document.value['kind']} is made anew each time: nobody has to reserve it"
        _refuse_fields(document, (), ("reservation",), what, "leave reservation out, or use kind lab")
    if document.value["kind"] == EMULATED:
        step = "leave it out, or use kind guest or lab"
        for name in document.value["hosts"]:
            what = "a host of an emulated testbed has no {}"
            _refuse_fields(document, ("hosts", name), _FOR_REAL_HOSTS, what, step)
        check_emulated_addresses(document)
    else:
        check_lab(document)
    _check_meters(document)


def _check_simulated(document: Document) -> None:
    """It has nodes with roles, and nothing that a simulation could not have."""
    step, hosts = "leave it out", document.value["hosts"]
    _check_characters(document, (), {k: v for k, v in document.value.items() if k != "description"})
    _refuse_fields(document, (), _FOR_PACKETS, "a simulated testbed has no {}", step)
    _need_roles(document, ("client", "server"))
    if "link" in document.value:
        others = [*document.value["link"].keys() - {"paths", "router_max_power_w"}]
        _refuse_fields(document, ("link",), others, "the link of a simulated testbed has no {}", step)
    check_paths(document)
    if document.value["meters"]:
        what = "a simulated testbed has no meters: its power is the model's own"
        raise document.refuse(("meters",), what, "write 'meters: []'")
    for name, host in hosts.items():
        _refuse_fields(
            document, ("hosts", name), [*host.keys() - {"roles"}], "a simulated host has no {}", step
        )


def _check_characters(document: Document, place: tuple[str | int, ...], value: Any) -> None:
    """No control character: texts reach templates, where a line break begins another line."""
    if isinstance(value, str) and not _BREAKING.isdisjoint(map(unicodedata.category, value)):
        raise document.refuse(place, "a text with a control character, such as a line break", "leave it out")
    if isinstance(value, dict):
        for key, child in value.items():
            _check_characters(document, place, key)
            _check_characters(document, (*place, key), child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _check_characters(document, (*place, index), child)


def _check_roles(document: Document) -> None:
    hosts: dict[str, Any] = document.value["hosts"]
    wanted = ["client", "server"]
    # Without a radio anywhere there is nothing an access point could do.
    if document.value["kind"] == EMULATED or "wifi" in document.value:
        wanted.insert(1, "access_point")
    _need_roles(document, wanted)
    if document.value["kind"] == IMPORTED:
        return  # where its hosts were reached is not known
    for name, host in hosts.items():
        if {"client", *WIRED_ROLES} & set(host["roles"]):
            document.need(("hosts", name), "test_addresses", "add ipv4 and ipv6")


def _need_roles(document: Document, wanted: Sequence[str]) -> None:
    for role in wanted:
        if not any(role in host["roles"] for host in document.value["hosts"].values()):
            step = f"add 'roles: [{role}]' to one host"
            raise document.refuse(("hosts",), f"no host has the role {role}", step)


def _check_link(document: Document) -> None:
    emulated = document.value["kind"] == EMULATED
    if emulated and "link" not in document.value:
        raise document.refuse((), "kind emulated needs a link section", "add 'link: {preset: ideal-216}'")
    if not emulated:
        what = f"a testbed of kind {document.value['kind']} has no {{}}: that is for kind emulated"
        of_paths = () if document.value["kind"] == LAB else ("elements", "presets")
        _refuse_fields(document, (), ("link", *of_paths, "cpus"), what)
    else:
        document.need(("link",), "preset", "add 'preset: ideal-216'")
    check_paths(document)


def _refuse_fields(
    document: Document, place: tuple[str | int, ...], fields: Sequence[str], what: str, step: str = ""
) -> None:
    """Refuse fields that a part of the document cannot have; `{}` in the sentence is the field's name."""
    part: Any = document.value
    for at in place:
        part = part[at]
    for field in fields:
        if field in part:
            raise document.refuse((*place, field), what.format(field), step)


def _check_meters(document: Document) -> None:
    seen: set[str] = set()
    hosts: dict[str, Any] = document.value["hosts"]
    for index, meter in enumerate(document.value["meters"]):
        place = ("meters", index)
        if meter["meter_id"] in seen:
            raise document.refuse((*place, "meter_id"), f"two meters are called '{meter['meter_id']}'")
        seen.add(meter["meter_id"])
        for field in ("node", "host"):
            if field in meter and meter[field] not in hosts:
                known = ", ".join(hosts)
                raise document.refuse((*place, field), f"no host is called '{meter[field]}'; hosts: {known}")
        if _CREDENTIALS_IN_ADDRESS.search(meter["resource"]):
            raise document.refuse(
                (*place, "resource"),
                "the address holds credentials",
                "put them into settings, by reference (env:NAME, file:PATH or vault:NAME)",
            )
        _check_zone(document, place, meter["resource"])
        _check_secrets(document, place, meter)
        _check_meter_host(document, place, meter)
        _check_device(document, place, meter)


def _check_zone(document: Document, place: tuple[str, int], resource: str) -> None:
    """The zone of an address (fe80::1%eth0, in URLs %25eth0) is the name of an interface and nothing else."""
    authority = "" if _LOCAL.match(resource) else re.split("[/?#]", resource.rpartition("://")[2])[0]
    if not all(_ZONE.fullmatch(zone) for zone in authority.split("%")[1:]):
        raise document.refuse(
            (*place, "resource"),
            "the zone of the address is no interface's name",
            "write letters, digits, '-', '_' and '.' behind the %, such as fe80::1%25eth0",
        )


def _check_secrets(document: Document, place: tuple[str, int], meter: dict[str, Any]) -> None:
    """A variable or file of this machine goes, as a password, to hosts of the topology and nowhere else.

    A topology may be anybody's, and any variable or file a secret. A vault is the user's own and chooses
    what it answers: an entry of it may go to a meter of a private network as well.
    """
    resource = meter["resource"]
    named = secrets.references(meter.get("settings", {}))
    if resource == EMULATED or _LOCAL.match(resource) or not named:
        return
    found = _HOST.match(resource)
    address = found[1].strip("[]") if found else ""
    of_vault = all(reference.startswith("vault:") for reference in named)
    if address in _ways_in(document) or (of_vault and _is_private(address)):
        return
    raise document.refuse(
        (*place, "resource"),
        "a password of this machine would go to an address outside the testbed's hosts",
        "give the address of one of the hosts; for a meter with an address of its own in a private network,"
        " such as 192.168.50.40, keep the password in a vault (vault:NAME)",
    )


def _ways_in(document: Document) -> list[str | None]:
    """Where hosts are logged in to, and so have shown who they are; a name alone says nothing."""
    if document.value["kind"] == EMULATED:
        return []
    hosts = [host for host in document.value["hosts"].values() if "controller" not in host["roles"]]
    return [reached_at(host)[0] for host in hosts]


def _is_private(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in _PRIVATE if network.version == found.version)


def _check_meter_host(document: Document, place: tuple[str, int], meter: dict[str, Any]) -> None:
    name = meter.get("host")
    if name is None:
        return
    if document.value["kind"] == EMULATED:
        raise document.refuse(
            (*place, "host"), "an emulated testbed has its instruments on this machine", "leave it out"
        )
    if "meter_host" not in document.value["hosts"][name]["roles"]:
        raise document.refuse(
            (*place, "host"),
            f"host {name} has not the role meter_host",
            f"add meter_host to hosts.{name}.roles, or leave host out for a meter on the controller",
        )


def _check_device(document: Document, place: tuple[str, int], meter: dict[str, Any]) -> None:
    emulated = meter["resource"] == EMULATED
    if emulated and document.value["kind"] != EMULATED:
        raise document.refuse(
            (*place, "resource"),
            "an emulated instrument needs a testbed of kind emulated",
            "name the real device",
        )
    if emulated and "device" not in meter:
        raise document.refuse(place, "an emulated meter needs a power model", "add 'device: {model: NAME}'")
    if emulated and "client" not in document.value["hosts"][meter["node"]]["roles"]:
        raise document.refuse(
            (*place, "node"),
            "an emulated meter can only read the client: the link has no figures of another node's radio",
            "name the host with the role client",
        )
    only = {"device": "a power model", "faults": "faults on request", "emulation": "such options"}
    for name, what in () if emulated else only.items():
        _refuse_fields(document, place, (name,), f"only an emulated meter has {what}")
