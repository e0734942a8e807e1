# SPDX-License-Identifier: Apache-2.0
"""A testbed as its topology file describes it. Contract: topology.schema.json.

Secrets stay references here; ``netjoule.secrets`` resolves them where they are used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from typing import Any

from netjoule import yamlfile
from netjoule.errors import UsageError
from netjoule.yamlfile import Document

__all__ = ["EMULATED", "Meter", "Topology", "load"]

EMULATED = "emulated"
_RADIO_SOURCES = {"emulated": "link-model", "guest": "hwsim", "lab": "real"}
_DEFAULT_MTU = 1500
_ENDS = ("client", "server")
_FAMILIES: dict[str, tuple[type[IPv4Interface] | type[IPv6Interface], int]] = {
    "ipv4": (IPv4Interface, 24),
    "ipv6": (IPv6Interface, 64),
}
# user:password@ in an address would carry a secret past the schema's named fields.
_CREDENTIALS_IN_ADDRESS = re.compile(r"://[^/\s]*@")


@dataclass(frozen=True, slots=True)
class Meter:
    """One meter of the topology.

    Attributes:
        device_model: power model an emulated instrument reads; None for a real instrument.
        calibration: path of a calibration document of this instrument; None without one.
        serial: serial number, for an instrument that does not tell it.
        faults: of an emulated instrument, as the document holds them.
        emulation: options of an emulated instrument beside its settings.
        update_interval_s: from its settings; None when the adapter's default holds.
    """

    meter_id: str
    node: str
    adapter: str
    resource: str
    settings: dict[str, Any]
    device_model: str | None
    calibration_date: str | None
    calibration: str | None = None
    serial: str | None = None
    faults: tuple[dict[str, Any], ...] = ()
    emulation: dict[str, Any] = field(default_factory=dict)

    @property
    def emulated(self) -> bool:
        """Whether an emulated instrument stands in for it."""
        return self.resource == EMULATED

    @property
    def power_source(self) -> str:
        """``modelled`` for an emulated instrument, else ``measured``."""
        return "modelled" if self.emulated else "measured"

    @property
    def update_interval_s(self) -> float | None:
        """Update interval of the instrument in seconds, when the settings name one."""
        value = self.settings.get("update_interval_s")
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Topology:
    """A validated topology.

    Attributes:
        hosts: hosts by name, as in the document.
        link: the emulated link's section; empty for other kinds.
        document: the effective topology, as campaign.json keeps it.
    """

    name: str
    kind: str
    hosts: dict[str, dict[str, Any]]
    link: dict[str, Any]
    meters: tuple[Meter, ...]
    document: dict[str, Any]

    @classmethod
    def from_document(cls, value: dict[str, Any], *, where: str) -> Topology:
        """Make a topology from its JSON form, for example from campaign.json.

        Raises:
            UsageError: naming the field that does not fit.
        """
        return _validated(Document(where, value, {}))

    @property
    def radio_source(self) -> str:
        """Where radio figures come from: real, link-model or hwsim."""
        return _RADIO_SOURCES[self.kind]

    @property
    def mtu_bytes(self) -> int:
        """MTU of the path in bytes; 1500 unless the link says otherwise."""
        return int(self.link.get("mtu", _DEFAULT_MTU))

    def host_with(self, role: str) -> str:
        """Name of the first host that has a role.

        Raises:
            UsageError: when none has it.
        """
        for name, host in self.hosts.items():
            if role in host["roles"]:
                return name
        raise UsageError(f"topology '{self.name}' has no host with the role {role}")


def load(path: Path) -> Topology:
    """Read a topology file.

    Raises:
        UsageError: naming file, line and field of what does not fit.
    """
    return _validated(yamlfile.load(path))


def _validated(document: Document) -> Topology:
    yamlfile.hold(document, "topology")
    value = document.value
    _check_roles(document)
    _check_kind(document)
    _check_meters(document)
    return Topology(
        name=value["name"],
        kind=value["kind"],
        hosts=value["hosts"],
        link=value.get("link", {}),
        meters=tuple(_meter(m) for m in value["meters"]),
        document=value,
    )


def _meter(value: dict[str, Any]) -> Meter:
    return Meter(
        meter_id=value["meter_id"],
        node=value["node"],
        adapter=value["adapter"],
        resource=value["resource"],
        settings=dict(value.get("settings", {})),
        device_model=value.get("device", {}).get("model"),
        calibration_date=value.get("calibration_date"),
        calibration=value.get("calibration"),
        serial=value.get("serial"),
        faults=tuple(value.get("faults", ())),
        emulation=dict(value.get("emulation", {})),
    )


def _check_roles(document: Document) -> None:
    hosts: dict[str, Any] = document.value["hosts"]
    for role in ("client", "access_point", "server"):
        if not any(role in host["roles"] for host in hosts.values()):
            raise document.refuse(
                ("hosts",), f"no host has the role {role}", f"add 'roles: [{role}]' to one host"
            )
    if document.value["kind"] != EMULATED:
        return
    for name, host in hosts.items():
        wants_address = "client" in host["roles"] or "server" in host["roles"]
        if wants_address and not host.get("test_addresses"):
            raise document.refuse(
                ("hosts", name), "the field 'test_addresses' is missing", "add ipv4 and ipv6"
            )


def _check_kind(document: Document) -> None:
    emulated = document.value["kind"] == EMULATED
    if emulated:
        _check_addresses(document)
    if emulated and "link" not in document.value:
        raise document.refuse((), "kind emulated needs a link section", "add 'link: {preset: ideal-216}'")
    if not emulated and "link" in document.value:
        raise document.refuse(("link",), f"a testbed of kind {document.value['kind']} has no emulated link")


def _check_addresses(document: Document) -> None:
    """Client and server of an emulated link: two hosts, each address valid, once, and on one network."""
    hosts: dict[str, Any] = document.value["hosts"]
    ends = [next(name for name, host in hosts.items() if role in host["roles"]) for role in _ENDS]
    if ends[0] == ends[1]:
        raise document.refuse(
            ("hosts", ends[0], "roles"), "client and server are one host", "use a host for each"
        )
    for family, (kind, length) in _FAMILIES.items():
        seen: list[Any] = []
        for name in ends:
            text = hosts[name]["test_addresses"].get(family)
            place = ("hosts", name, "test_addresses", family)
            if text is None:
                continue
            try:
                found = kind(f"{text}/{length}")
            except ValueError:
                raise document.refuse(place, f"{text!r} is not an {family} address") from None
            if any(found.ip == other.ip for other in seen):
                raise document.refuse(place, f"{text} is given twice", "give each end its own")
            if any(found.network != other.network for other in seen):
                other = seen[0]
                raise document.refuse(
                    place,
                    f"{text} and {other.ip} are not on one network",
                    f"use addresses of {other.network}",
                )
            seen.append(found)


def _check_meters(document: Document) -> None:
    seen: set[str] = set()
    for index, meter in enumerate(document.value["meters"]):
        place = ("meters", index)
        if meter["meter_id"] in seen:
            raise document.refuse((*place, "meter_id"), f"two meters are called '{meter['meter_id']}'")
        seen.add(meter["meter_id"])
        if meter["node"] not in document.value["hosts"]:
            known = ", ".join(document.value["hosts"])
            raise document.refuse((*place, "node"), f"no host is called '{meter['node']}'; hosts: {known}")
        if _CREDENTIALS_IN_ADDRESS.search(meter["resource"]):
            raise document.refuse(
                (*place, "resource"),
                "the address holds credentials",
                "put them into settings, by reference (env:NAME, file:PATH or vault:NAME)",
            )
        _check_device(document, place, meter)


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
    only = (("device", "a power model"), ("faults", "faults on request"), ("emulation", "such options"))
    for name, what in only:
        if not emulated and name in meter:
            raise document.refuse((*place, name), f"only an emulated meter has {what}")
