# SPDX-License-Identifier: Apache-2.0
"""A testbed as its topology file describes it. Contract: topology.schema.json.

Secrets stay references here; ``netjoule.core.secrets`` resolves them where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule.core import yamlfile
from netjoule.core.errors import UsageError
from netjoule.core.yamlfile import Document
from netjoule.topology import rigs
from netjoule.topology.checks import EMULATED, IMPORTED, SIMULATED, check
from netjoule.topology.hosts import TopologyHost, described

__all__ = ["EMULATED", "IMPORTED", "SIMULATED", "Meter", "Topology", "load"]

GUEST = "guest"
_RADIO_SOURCES = {EMULATED: "link-model", GUEST: "hwsim", SIMULATED: "simulated", "lab": "real"}
_DEFAULT_MTU = 1500


@dataclass(frozen=True, slots=True)
class Meter:
    """One meter of the topology.

    Attributes:
        device: of an emulated instrument, as the document holds it.
        calibration: path of a calibration document of this instrument; None without one.
        serial: serial number, for an instrument that does not tell it.
        faults: of an emulated instrument, as the document holds them.
        emulation: options of an emulated instrument beside its settings.
        update_interval_s: from its settings; None when the adapter's default holds.
        host: name of the host it is plugged into; None is the controller.
        kind: of the testbed it belongs to.
    """

    meter_id: str
    node: str
    adapter: str
    resource: str
    settings: dict[str, Any] = field(default_factory=dict)
    device: dict[str, str] = field(default_factory=dict)
    calibration_date: str | None = None
    calibration: str | None = None
    serial: str | None = None
    faults: Sequence[dict[str, Any]] = ()
    emulation: dict[str, Any] = field(default_factory=dict)
    host: str | None = None
    kind: str = "lab"

    @property
    def device_model(self) -> str | None:
        """Power model that an emulated instrument reads; None for a real instrument."""
        return self.device.get("model")

    @property
    def emulated(self) -> bool:
        """Whether an emulated instrument stands in for it."""
        return self.resource == EMULATED

    @property
    def power_source(self) -> str:
        """``modelled`` for an emulated instrument, else ``measured``; a guest has no supply to measure.

        ``unknown`` of imported results, which have no power.
        """
        if self.kind == IMPORTED:
            return "unknown"
        return "modelled" if self.emulated or self.kind == GUEST else "measured"

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
        """Where radio figures come from: real, link-model, hwsim, simulated; wired where no host has a radio.

        Of imported results as their importer told it, else unknown.
        """
        if self.kind == IMPORTED:
            return str(self.document.get("radio_source", "unknown"))
        return _RADIO_SOURCES[self.kind] if self.kind in (EMULATED, SIMULATED) or self.wifi else "wired"

    @property
    def wifi(self) -> dict[str, Any]:
        """The radio network as in the document, its passphrase a reference; empty without one."""
        return dict(self.document.get("wifi", {}))

    @property
    def cpus(self) -> int | None:
        """CPUs that all of an emulated testbed shares; None: all that there are."""
        given: int | None = self.document.get("cpus")
        return given

    @property
    def labgrid_place(self) -> str | None:
        """Place of labgrid that is reserved around what is done on its hosts; None without one."""
        place: str | None = self.document.get("reservation", {}).get("labgrid")
        return place

    @property
    def power_cycle(self) -> dict[str, str]:
        """Hosts whose power may be cycled when they are dead, each with its power resource in the place."""
        return dict(self.document.get("reservation", {}).get("power_cycle", {}))

    @property
    def traffic_secret(self) -> str | None:
        """Reference to the secret that both ends of netjoule-traffic share; None without one."""
        reference = self.document.get("traffic_secret")
        return None if reference is None else str(reference)

    @property
    def mtu_bytes(self) -> int:
        """MTU of the path in bytes; 1500 unless the link says otherwise."""
        return int(self.link.get("mtu", _DEFAULT_MTU))

    @property
    def rig(self) -> str:
        """Name of the rig that it is; rig1 unless told."""
        return str(self.document.get("rig", rigs.FIRST))

    @property
    def rigs(self) -> tuple[str, ...]:
        """Names of the rigs that it describes, in the document's order; itself where it describes none."""
        return tuple(self.document.get("rigs", (self.rig,)))

    def of_rig(self, name: str) -> Topology:
        """The topology of one of its rigs, which stands for itself."""
        if "rigs" not in self.document:
            return self
        return _validated(rigs.document_of(Document(f"topology {self.name}", self.document, {}), name))

    def on_rigs(self, count: int | None) -> Topology:
        """The same with its first rigs only; None: what its first rig is, by itself.

        An emulated or simulated testbed that describes none has as many as are asked for, all alike; a
        simulated one always has rigs, as its blocks are written as theirs are.

        Raises:
            UsageError: when it describes fewer.
        """
        if count is None and self.kind != SIMULATED:
            return self.of_rig(self.rigs[0])
        count = count or 1
        there: dict[str, Any] = self.document.get("rigs", {})
        if not there and self.kind in (EMULATED, SIMULATED):
            there = {f"rig{number}": {} for number in range(1, count + 1)}
        there = there or {self.rig: {}}
        if count > len(there):
            raise UsageError(
                f"{count} rigs are asked for, and topology {self.name} describes {len(there)}",
                where="--rigs",
                next_step="describe more under rigs, or ask for fewer",
            )
        taken = dict(list(there.items())[:count])
        return _validated(Document(f"topology {self.name}", {**self.document, "rigs": taken}, {}))

    def host_with(self, role: str) -> str:
        """Name of the first host that has a role.

        Raises:
            UsageError: when none has it.
        """
        for name, host in self.hosts.items():
            if role in host["roles"]:
                return name
        raise UsageError(f"topology '{self.name}' has no host with the role {role}")

    def hosts_with(self, role: str) -> tuple[str, ...]:
        """Names of all hosts that have a role, in the document's order."""
        return tuple(name for name, host in self.hosts.items() if role in host["roles"])

    def first_hosts(self, roles: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """Names of the first hosts of each role, as many as are asked for.

        Raises:
            UsageError: when there are fewer.
        """
        for role, most in roles.items():
            there = self.hosts_with(role)
            if len(there) < most:
                raise UsageError(
                    f"hosts with the role {role}: {most} needed, {len(there)} there",
                    where=f"topology {self.name}, field hosts",
                    next_step=f"give more hosts the role {role}",
                )
        return {role: self.hosts_with(role)[:most] for role, most in roles.items()}

    def ends(self, clients: int) -> tuple[str, ...]:
        """Names of the hosts that flows run between: the first clients, then the server; each once.

        Raises:
            UsageError: when there are fewer.
        """
        found = self.first_hosts({"client": clients, "server": 1})
        return tuple(dict.fromkeys((*found["client"], *found["server"])))

    def host(self, name: str) -> TopologyHost:
        """A host with defaults filled in and addresses with their prefix length."""
        return described(name, self.hosts[name])

    def test_address(self, name: str, family: str) -> str:
        """Address of a host for test flows, without prefix length; family: ipv4 or ipv6.

        Raises:
            UsageError: when it has none of this family.
        """
        found = self.host(name).test_address(family)
        if found is None:
            raise UsageError(
                f"host {name} has no {family} address",
                where=f"topology {self.name}, field hosts.{name}.test_addresses",
                next_step=f"add {family}",
            )
        return found


def load(path: Path) -> Topology:
    """Read a topology file.

    Raises:
        UsageError: naming file, line and field of what does not fit.
    """
    document = yamlfile.load(path)
    made = _validated(document)
    if made.kind == IMPORTED:
        raise document.refuse(
            ("kind",), "nothing can run where imported results came from", "use kind emulated, guest or lab"
        )
    return made


def _validated(document: Document) -> Topology:
    yamlfile.hold(document, "topology")
    check(document)
    described_rigs = {name: rigs.document_of(document, name) for name in document.value.get("rigs", ())}
    for one in described_rigs.values():
        yamlfile.hold(one, "topology")
        check(one)
    rigs.check_rigs(document, described_rigs)
    value = document.value
    return Topology(
        name=value["name"],
        kind=value["kind"],
        hosts=value["hosts"],
        link=value.get("link", {}),
        meters=tuple(Meter(**meter, kind=value["kind"]) for meter in value["meters"]),
        document=value,
    )
