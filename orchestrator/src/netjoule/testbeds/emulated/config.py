# SPDX-License-Identifier: Apache-2.0
"""What the parts of the emulated testbed are told, computed from the topology. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netjoule.core.errors import UsageError
from netjoule.topology.hosts import WIRED_ROLES, wired_hosts
from netjoule.topology.paths import path_elements
from netjoule.topology.topology import Meter, Topology

if TYPE_CHECKING:
    from netjoule_meters.emulated.registry import EmulatedModel

NETNS_DIR = Path("/run/netns")
_OF_DEVICE_MODELS = (
    *("name", "form", "status", "source"),
    *("parameters", "relative_uncertainty", "rho_tx", "rho_rx"),
)
_STATION, _WIRED = "wlan0", "eth0"  # interfaces to the test network, unless the topology names others
_CONTROL_IPV4 = IPv4Address("10.79.0.0")  # unless the topology names others


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a host of the emulated testbed lives.

    Attributes:
        host: its name in the topology.
        netns: name of its network namespace, by its role: a host's name may be too long or hold anything.
        control_ipv4: its address on the control network.
        control_ipv6: the same of IPv6.
    """

    host: str
    netns: str
    control_ipv4: str
    control_ipv6: str

    @property
    def netns_file(self) -> Path:
        """The namespace's file."""
        return NETNS_DIR / self.netns


def wired(topology: Topology) -> tuple[Spot, ...]:
    """Where every host behind the access point is, the first server first. Raises UsageError: as `_spot`."""
    first, *others = wired_hosts(topology.hosts)
    numbers = count(2 + len(topology.hosts_with("client")))
    named: Counter[str] = Counter()
    spots = []
    for name, number in ((first, 1), *zip(others, numbers, strict=False)):
        role = next(role for role in WIRED_ROLES if role in topology.hosts[name]["roles"])
        named[role] += 1
        netns = f"{role}-{named[role]}" if named[role] > 1 else role
        spots.append(_spot(topology, name, netns, number))
    return tuple(spots)


def clients(topology: Topology) -> tuple[Spot, ...]:
    """Where every host with the role client is, in the topology's order. Raises UsageError: as `_spot`."""
    return tuple(
        _spot(topology, name, f"client-{place}" if place > 1 else "client", 1 + place)
        for place, name in enumerate(topology.hosts_with("client"), 1)
    )


def _spot(topology: Topology, name: str, netns: str, number: int) -> Spot:
    """A host with its control addresses. Raises UsageError for one that is none or on the test network."""
    usual = str(_CONTROL_IPV4 + number)
    text = str(topology.hosts[name].get("control_address", usual))
    remedy = f"leave it out, or use one like {usual}"
    where = f"topology {topology.name}"
    try:
        address = IPv4Address(text)
    except ValueError:
        raise UsageError(
            f"control_address of {name} is '{text}', not an IPv4 address", where=where, next_step=remedy
        ) from None
    test_address = topology.host(name).test_addresses.get("ipv4")
    if test_address and address in (test := IPv4Interface(test_address).network):
        raise UsageError(
            f"control_address of {name} is {text}, on the test flows' network {test}",
            where=where,
            next_step=remedy,
        )
    return Spot(name, netns, str(address), f"fd79::{number:x}")


def check_control(topology: Topology) -> None:
    """Refuse control addresses that the emulated testbed cannot use.

    Raises:
        UsageError: naming the host.
    """
    seen: dict[str, str] = {}
    for spot in (*wired(topology), *clients(topology)):
        if spot.control_ipv4 in seen:
            raise UsageError(
                f"{seen[spot.control_ipv4]} and {spot.host} have one control address, {spot.control_ipv4}",
                where=f"topology {topology.name}",
                next_step="give each host its own control_address, or leave them all out",
            )
        seen[spot.control_ipv4] = spot.host


def link_config(topology: Topology, stats_socket: Path) -> dict[str, Any]:
    """Configuration of netjoule-link (link_config schema) for an emulated topology."""
    link = topology.link
    document: dict[str, Any] = {
        "schema_version": 2,
        "preset": link["preset"],
        "io": link.get("io", "auto"),
        "stats_socket": str(stats_socket),
        "stations": [_interface(topology, spot, _STATION) for spot in clients(topology)],
        "wired": [
            _interface(topology, spot, _WIRED) | {"elements": path_elements(topology.document, spot.host)}
            for spot in wired(topology)
        ],
    }
    if "seed" in link:
        document["seed"] = link["seed"]
    if link.get("overrides"):
        document["overrides"] = dict(link["overrides"])
    return document


def interfaces(topology: Topology) -> dict[str, str]:
    """The interface of every host to the test network."""
    ends = {_STATION: clients(topology), _WIRED: wired(topology)}
    return {spot.host: _ifname(topology, spot.host, usual) for usual, spots in ends.items() for spot in spots}


def _ifname(topology: Topology, host: str, usual: str) -> str:
    return topology.host(host).test_interface or usual


def _interface(topology: Topology, spot: Spot, ifname: str) -> dict[str, Any]:
    addresses = topology.host(spot.host).test_addresses
    return {
        "name": spot.host,
        "netns": str(spot.netns_file),
        "ifname": _ifname(topology, spot.host, ifname),
        "addresses": [addresses[family] for family in ("ipv4", "ipv6") if family in addresses],
        "mtu": topology.mtu_bytes,
    }


def check_emulations(topology: Topology) -> None:
    """Refuse emulated meters of which there is no emulated instrument.

    Raises:
        UsageError: naming the meter and the instruments there are.
    """
    from netjoule_meters.emulated.registry import EMULATED

    for meter in topology.meters:
        if meter.emulated and meter.adapter not in EMULATED:
            raise UsageError(
                f"there is no emulated {meter.adapter}",
                where=f"topology, meter {meter.meter_id}",
                next_step=f"use one of {', '.join(sorted(EMULATED))}",
            )


def instrument_arguments(meter: Meter, link: Path, *, origin_ns: int, seed: int) -> list[str]:
    """Arguments of `netjoule-meters` that emulate a meter's instrument on its usual kind of port.

    Args:
        meter: an emulated meter.
        link: where a pseudo-terminal is to be found; instruments of the network take a free port.
        origin_ns: CLOCK_MONOTONIC at campaign time 0.
        seed: draws this instrument's errors.
    """
    from netjoule_meters.emulated.registry import emulated_model, variant_of

    model = emulated_model(meter.adapter)
    variant = _variant(model, meter.settings)
    way = variant_of(model, variant)
    argv = ["emulate", meter.adapter, "--power-stream", "-", f"--origin-ns={origin_ns}", "--seed", str(seed)]
    argv += ["--link", str(link)] if way.ports[0] == "pty" else ["--listen", "127.0.0.1:0"]
    if variant:
        argv += ["--variant", variant]
    for name, value in meter.emulation.items():
        argv += ["--set", f"{name}={json.dumps(value)}"]
    if meter.faults:
        argv += ["--control", str(fault_socket(link))]
    if meter.update_interval_s is not None:
        argv += ["--update-interval-s", f"{meter.update_interval_s:g}"]
    return argv


def device_model_entry(meter_id: str, model: Mapping[str, Any]) -> dict[str, Any]:
    """What campaign.json keeps of a device model's own description: R draws its parameters."""
    return {"meter_id": meter_id} | {name: model[name] for name in _OF_DEVICE_MODELS if name in model}


def fault_socket(link: Path) -> Path:
    """Where an emulated instrument takes faults, beside its link."""
    return link.with_suffix(".faults")


def fault_requests(meter: Meter) -> list[tuple[float, dict[str, Any]]]:
    """Faults of a meter in the order of their times: (seconds, what the instrument is asked)."""
    asked = [(float(f["t_s"]), {"fault": f["fault"], **f.get("with", {})}) for f in meter.faults]
    return sorted(asked, key=lambda pair: pair[0])


def _variant(model: EmulatedModel, settings: Mapping[str, Any]) -> str:
    """The first variant that the settings read: none of its own settings is told otherwise."""
    for name, variant in model.variants.items():
        told = [(key, value) for key, value in variant.settings.items() if key in settings and key != "lag_s"]
        if all(str(settings[key]).upper() == str(value).upper() for key, value in told):
            return name
    return ""


def meter_config(
    topology: Topology, ports: Mapping[str, str], models: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Configuration of the logger (meter_config schema).

    Args:
        topology: names the meters.
        ports: resource of each emulated meter: a device file or an address.
        models: device models of each emulated meter, as they describe themselves.
    """
    return {
        "schema_version": 1,
        "meters": [
            {
                "meter_id": meter.meter_id,
                "node": meter.node,
                "adapter": meter.adapter,
                "resource": ports.get(meter.meter_id, meter.resource),
                "settings": dict(meter.settings),
                "power_source": meter.power_source,
                **_device_of(meter, models.get(meter.meter_id, ())),
                "calibration_date": meter.calibration_date,
                "calibration": meter.calibration,
                "serial": meter.serial,
            }
            for meter in topology.meters
        ],
    }


def _device_of(meter: Meter, models: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """What a passport tells of the device: of several, read by turns, all names and the form they share."""
    names, forms = [str(model["name"]) for model in models], {str(model["form"]) for model in models}
    return {
        "device_model": ", ".join(names) or meter.device_model,
        "device_form": forms.pop() if len(forms) == 1 else None,
    }
