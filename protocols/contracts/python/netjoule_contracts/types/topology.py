# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``topology``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from netjoule_contracts.documents import Document, Part


class Topology(Document, frozen=True, kw_only=True):
    """Where it runs: hosts, link and meters of one testbed."""

    contract: ClassVar[str] = "topology"
    # Version of this contract.
    schema_version: Literal[1]
    # Name of the testbed.
    name: str
    # emulated: namespaces of one machine; guest: a QEMU guest; lab: real hosts; imported: whatever another
    # program's results came from, in campaign.json only.
    kind: Literal["emulated", "guest", "lab", "imported"]
    # Of kind imported only: where its radio figures come from, as told by who imported it.
    radio_source: Literal["real", "wired", "unknown"] | None = None
    # What this testbed is.
    description: str | None = None
    # Hosts by name.
    hosts: dict[str, Host]
    # Network of the access point (guest and lab), where country, mode, width_mhz, channel and security belong
    # too.
    wifi: Wifi | None = None
    # The emulated link (kind emulated only).
    link: Link | None = None
    # Elements that paths consist of, by name (kind emulated only). Each loses packets, then sends them at its
    # rate, then delays them, in both directions alike.
    elements: dict[str, Element] | None = None
    # Named values of the testbed's factors, for workloads.
    presets: Presets | None = None
    # What both ends of netjoule-traffic share, by reference only: env:NAME, file:PATH or vault:NAME; 16 to
    # 1024 bytes. Its server then serves nobody else. A literal is refused.
    traffic_secret: str | None = None
    # Power meters.
    meters: tuple[Meter, ...]


class Host(Part, frozen=True, kw_only=True):
    """One host."""

    # What the host does.
    roles: tuple[
        Literal[
            "client",
            "access_point",
            "server",
            "proxy",
            "origin",
            "dns",
            "router",
            "meter_host",
            "observer",
            "controller",
        ],
        ...,
    ]
    # Name or address by which the other hosts reach it on the control network, off the radio; every host of a
    # lab has one.
    control_address: str | None = None
    # How the host is reached (guest and lab): with the user's keys, never with a password.
    ssh: Ssh | None = None
    # What keeps services running on the host; systemd unless told.
    service_manager: Literal["systemd", "none"] | None = None
    # Addresses the test flows use; of a client they belong to its radio.
    test_addresses: TestAddresses | None = None
    # The host's test radio.
    radio: Radio | None = None
    # The host's cable of the test network, between access point and server; never the control network.
    wired: Wired | None = None
    # Test networks behind another host.
    routes: tuple[Route, ...] | None = None


class Ssh(Part, frozen=True, kw_only=True):
    """How the host is reached (guest and lab): with the user's keys, never with a password."""

    # Where its sshd answers, when that is not the control address, such as a port forwarded on this machine.
    address: str | None = None
    # Login name; root unless told.
    user: str | None = None
    # TCP port; 22 unless told.
    port: int | None = None
    # Private key; the user's own and the agent's unless told. Seen from the working directory.
    identity_file: str | None = None
    # File with the host's key; the user's own unless told. Seen from the working directory.
    known_hosts: str | None = None
    # Whether the user becomes root by sudo; false unless told.
    become: bool | None = None


class TestAddresses(Part, frozen=True, kw_only=True):
    """Addresses the test flows use; of a client they belong to its radio."""

    # IPv4 address, with its prefix length where that is not 24.
    ipv4: str | None = None
    # IPv6 address, with its prefix length where that is not 64.
    ipv6: str | None = None


class Radio(Part, frozen=True, kw_only=True):
    """The host's test radio."""

    # Interface name: letters, digits, dot, underscore, hyphen.
    interface: str
    # What reads its state; auto takes the first of nl80211, iw, iwconfig that works there.
    reader: Literal["auto", "nl80211", "iw", "iwconfig"] | None = None
    # Interval between two readings; 1 unless told.
    every_s: float | None = None
    # Addresses of an access point's radio, or of its bridge; a client's are its test_addresses.
    addresses: tuple[str, ...] | None = None


class Wired(Part, frozen=True, kw_only=True):
    """The host's cable of the test network, between access point and server; never the control network."""

    # Interface name: letters, digits, dot, underscore, hyphen.
    interface: str
    # Its addresses; a server's are its test_addresses unless told.
    addresses: tuple[str, ...] | None = None


class Route(Part, frozen=True, kw_only=True):
    """One route."""

    # Network with prefix length, such as 10.78.0.0/24.
    to: str
    # Address of the host on the way.
    via: str


class Wifi(Part, frozen=True, kw_only=True):
    """Network of the access point (guest and lab), where country, mode, width_mhz, channel and security
    belong too.
    """

    # Network name.
    ssid: str
    # A secret, by reference only: env:NAME, file:PATH or vault:NAME. A literal is refused.
    passphrase: str | None = None
    # Country whose radio rules hold, two capital letters; put NO into quotes.
    country: str | None = None
    # 802.11n or 802.11ac.
    mode: Literal["11n", "11ac"] | None = None
    # Channel width; 11n has 20 and 40.
    width_mhz: Literal[20, 40, 80, 160] | None = None
    # Primary channel.
    channel: int | None = None
    # open, wpa2 (WPA2-PSK with CCMP), sae (WPA3-Personal), or sae-transition (both).
    security: Literal["open", "wpa2", "sae", "sae-transition"] | None = None
    # Whether channels shared with radar are accepted; false unless told.
    dfs: bool | None = None
    # How packets pass between the radio and the server; routing unless told.
    forwarding: Literal["routing", "bridging"] | None = None
    # automatic, or limits of the rates that both ends send at.
    rates: str | Rates | None = None
    # Power saving of the clients, on or off; off unless told.
    power_save: Literal["on", "off"] | bool | None = None
    # Transmit power; the radio's own unless told.
    tx_power_dbm: float | None = None


class Rates(Part, frozen=True, kw_only=True):
    """automatic, or limits of the rates that both ends send at."""

    # MCS indices; all unless told.
    mcs: tuple[int, ...] | None = None
    # Guard interval; both unless told.
    guard_interval: Literal["long", "short"] | None = None
    # Spatial streams; all that the radio has unless told.
    streams: int | None = None


class Link(Part, frozen=True, kw_only=True):
    """The emulated link (kind emulated only)."""

    # Named parameter set of netjoule-link.
    preset: Literal["ideal-216", "seed-like"]
    # Seed of the link's losses and back-offs.
    seed: int | None = None
    # How packets enter: auto tries /dev/net/tun, then AF_PACKET.
    io: Literal["auto", "tun", "packet"] | None = None
    # MTU of all interfaces.
    mtu: int | None = None
    # Single parameters of the preset, checked by netjoule-link against link_config.
    overrides: dict[str, Any] | None = None
    # What every path behind the access point has unless told under paths.
    wired: LinkWired | None = None
    # Paths between access point and the hosts behind it, by host; each host has its own.
    paths: dict[str, Path] | None = None


class LinkWired(Part, frozen=True, kw_only=True):
    """What every path behind the access point has unless told under paths."""

    # One-way delay.
    delay_ms: float | None = None
    # Rate; 0 is unlimited.
    rate_mbps: float | None = None
    # Independent loss.
    loss_ratio: float | None = None


class Path(Part, frozen=True, kw_only=True):
    """One path."""

    # Round-trip time that the path adds.
    rtt_ms: float | None = None
    # Rate of the bottleneck.
    rate_mbps: float | None = None
    # Share of packets that are lost.
    loss_ratio: float | None = None
    # What the path consists of, in order from the client, by the names that the testbed gives to elements;
    # they take the place of delay, rate and loss.
    elements: tuple[str, ...] | None = None


class Element(Part, frozen=True, kw_only=True):
    """One element."""

    # One-way delay.
    delay_ms: float | None = None
    # Rate; 0 is unlimited.
    rate_mbps: float | None = None
    # Independent loss.
    loss_ratio: float | None = None
    # Packets that may wait for the rate; one more is dropped. 1000 unless told.
    queue_packets: int | None = None


class Presets(Part, frozen=True, kw_only=True):
    """Named values of the testbed's factors, for workloads."""

    # Paths between access point and a host behind it, by name.
    path: dict[str, Path] | None = None


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
    faults: tuple[Fault, ...] | None = None
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

    # Name of a device model or path of its file.
    model: str


class Fault(Part, frozen=True, kw_only=True):
    """One fault; what there is and its arguments: netjoule_meters/emulated/faults.py."""

    # When, from the moment that the testbed is up.
    t_s: float
    # Which: disconnect, silence, freeze, garbage, split, drop, or one of the instrument's own.
    fault: str
    # Its arguments by name.
    with_: dict[str, float] | None = msgspec.field(default=None, name="with")
