# SPDX-License-Identifier: Apache-2.0
"""What the parts of the emulated testbed are told, computed from the topology. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from netjoule.errors import UsageError
from netjoule.topology import Topology

__all__ = ["NETNS_DIR", "control_address", "link_config", "meter_config"]

NETNS_DIR = Path("/run/netns")
CONTROL_ADDRESSES = {"client": "10.79.0.2", "server": "10.79.0.1"}  # unless the topology names others


def control_address(topology: Topology, role: str) -> str:
    """IPv4 address of a role's host on the control network.

    Raises UsageError when the topology names something else than an IPv4 address.
    """
    name = topology.host_with(role)
    text = str(topology.hosts[name].get("control_address", CONTROL_ADDRESSES[role]))
    try:
        address = IPv4Address(text)
    except ValueError:
        raise UsageError(
            f"control_address of {name} is '{text}', not an IPv4 address",
            where=f"topology {topology.name}",
            next_step=f"leave it out, or use one like {CONTROL_ADDRESSES[role]}",
        ) from None
    test_address = topology.hosts[name]["test_addresses"].get("ipv4")
    if test_address and address in (test := IPv4Interface(f"{test_address}/24").network):
        raise UsageError(
            f"control_address of {name} is {text}, on the test flows' network {test}",
            where=f"topology {topology.name}",
            next_step=f"leave it out, or use one like {CONTROL_ADDRESSES[role]}",
        )
    return str(address)


def check_control(topology: Topology) -> None:
    """Refuse control addresses that the emulated testbed cannot use.

    Raises:
        UsageError: naming the host.
    """
    for role in CONTROL_ADDRESSES:
        control_address(topology, role)


def link_config(topology: Topology, stats_socket: Path) -> dict[str, Any]:
    """Configuration of netjoule-link (link_config schema) for an emulated topology."""
    link = topology.link
    document: dict[str, Any] = {
        "schema_version": 1,
        "preset": link["preset"],
        "io": link.get("io", "auto"),
        "stats_socket": str(stats_socket),
        "stations": [_interface(topology, "client", "wlan0")],
        "wired": _interface(topology, "server", "eth0") | _wired_path(link.get("wired", {})),
    }
    if "seed" in link:
        document["seed"] = link["seed"]
    if link.get("overrides"):
        document["overrides"] = dict(link["overrides"])
    return document


def _wired_path(wired: Mapping[str, Any]) -> dict[str, Any]:
    """The path's parameters; the topology says 0 for an unlimited rate, the link says nothing."""
    return {name: value for name, value in wired.items() if name != "rate_mbps" or value}


def _interface(topology: Topology, role: str, ifname: str) -> dict[str, Any]:
    name = topology.host_with(role)
    host = topology.hosts[name]
    lengths = {"ipv4": 24, "ipv6": 64}
    addresses = host["test_addresses"]
    return {
        "name": name,
        "netns": str(NETNS_DIR / role),
        "ifname": host.get("radio", {}).get("interface", ifname),
        "addresses": [f"{addresses[f]}/{length}" for f, length in lengths.items() if f in addresses],
        "mtu": topology.mtu_bytes,
    }


def meter_config(
    topology: Topology, ports: Mapping[str, str], forms: Mapping[str, str | None]
) -> dict[str, Any]:
    """Configuration of the logger (meter_config schema).

    Args:
        topology: names the meters.
        ports: device file of each emulated meter.
        forms: form of the power model of each emulated meter.
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
                "device_model": meter.device_model,
                "device_form": forms.get(meter.meter_id),
                "calibration_date": meter.calibration_date,
            }
            for meter in topology.meters
        ],
    }
