# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``topology``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from netjoule_contracts.documents import Document, Part


class Topology(Document, frozen=True, kw_only=True):
    """Where it runs: hosts, link and meters of one testbed."""

    contract: ClassVar[str] = "topology"
    # Version of this contract.
    schema_version: Literal[1]
    # Name of the testbed.
    name: str
    # emulated: namespaces of one machine; guest: a QEMU guest; lab: real hosts; simulated: a model in one
    # process, in a time of its own, whose nodes are its hosts; imported: whatever another program's results
    # came from, in campaign.json only.
    kind: Literal["emulated", "guest", "lab", "simulated", "imported"]
    # Of kind imported only: where its radio figures come from, as told by who imported it.
    radio_source: Literal["real", "wired", "unknown"] | None = None
    # What this testbed is.
    description: str | None = None
    # Where its air is: networks of two rooms do not hear each other. One room for all rigs unless told.
    room: str | None = None
    # Of kind lab only: what is reserved before anything is done on the hosts, and released at the end.
    reservation: dict[str, Any] | None = None
    # Of the topology of one rig, in campaign.json: which of the rigs it is; rig1 unless told.
    rig: str | None = None
    # Rigs by name: groups of hosts, radios and meters that measure alone. Each is what it changes of this
    # topology (JSON merge patch, RFC 7396).
    rigs: dict[str, dict[str, Any]] | None = None
    # Hosts by name; of kind simulated the nodes of the model.
    hosts: dict[str, dict[str, Any]]
    # Network of the access point (guest and lab), where country, mode, width_mhz, channel and security belong
    # too.
    wifi: dict[str, Any] | None = None
    # CPUs that all of the emulated testbed shares (kind emulated only); all that there are when absent. With
    # one, flows and link never meet on the two threads of a core: CPU time scatters least, and the testbed
    # carries less.
    cpus: int | None = None
    # The emulated link; of a simulated testbed its paths and its routers' power alone.
    link: Link | None = None
    # Elements that paths consist of, by name (not kind guest; in a lab a path is one of them, without bursts,
    # varying and scaling). Each loses packets, adds bursts of other traffic, sends what there is at its rate,
    # then delays it; in both directions alike unless direction says otherwise.
    elements: dict[str, dict[str, Any]] | None = None
    # Named values of the testbed's factors, for workloads.
    presets: dict[str, Any] | None = None
    # What both ends of netjoule-traffic share, by reference only: env:NAME, file:PATH or vault:NAME; 16 to
    # 1024 bytes. Its server then serves nobody else. A literal is refused.
    traffic_secret: str | None = None
    # Power meters.
    meters: tuple[Meter, ...]


class Link(Part, frozen=True, kw_only=True):
    """The emulated link; of a simulated testbed its paths and its routers' power alone."""

    # Named parameter set of netjoule-link; needed by kind emulated.
    preset: Literal["ideal-216", "seed-like"] | None = None
    # Seed of the link's losses and back-offs.
    seed: int | None = None
    # How packets enter: auto tries /dev/net/tun, then AF_PACKET.
    io: Literal["auto", "tun", "packet"] | None = None
    # MTU of all interfaces.
    mtu: int | None = None
    # What the routers of a path that scale draw together at their highest rate, where their maker or a meter
    # tells; energy per Mb is then given in joules too.
    router_max_power_w: float | None = None
    # Single parameters of the preset, checked by netjoule-link against link_config.
    overrides: dict[str, Any] | None = None
    # What every path behind the access point has unless told under paths.
    wired: dict[str, Any] | None = None
    # Paths between access point and the hosts behind it, by host; each host has its own.
    paths: dict[str, dict[str, Any]] | None = None


class Meter(Part, frozen=True, kw_only=True):
    """One meter."""

    # Name of the meter, unique.
    meter_id: str
    # Host whose power it reads; a name under hosts. An emulated meter reads the client only.
    node: str
    # Host that the instrument is plugged into (role meter_host); the controller unless told.
    host: str | None = None
    # Adapter of netjoule_meters.
    adapter: str
    # Device path or address; emulated starts an emulated instrument.
    resource: str
    # Settings of the adapter, checked by netjoule_meters against meter_config; names that hold secrets take
    # references only.
    settings: dict[str, str | float | int | bool | None] | None = None
    # Power model that an emulated instrument reads.
    device: Device | None = None
    # Options of an emulated instrument beside its settings, as `netjoule-meters emulate --set` takes them.
    emulation: dict[str, str | float | bool] | None = None
    # Faults that an emulated instrument has during the campaign, for tests and teaching.
    faults: tuple[dict[str, Any], ...] | None = None
    # Path of a calibration document (contract calibration) of this instrument in this range, seen from the
    # working directory; null when there is none.
    calibration: str | UnsetType | None = UNSET
    # Serial number on the type plate, for an instrument that does not tell it; one that tells another is
    # refused.
    serial: str | UnsetType | None = UNSET
    # Last calibration, ISO date; null when unknown.
    calibration_date: str | UnsetType | None = UNSET


class Device(Part, frozen=True, kw_only=True):
    """Power model that an emulated instrument reads."""

    # Name of a device model or path of its file; `NAME:PARAMETER=VALUE,...` changes parameters of it.
    model: str
