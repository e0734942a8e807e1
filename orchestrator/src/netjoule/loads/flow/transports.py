# SPDX-License-Identifier: Apache-2.0
"""What the transports are like: the contract transports.json, which netjoule-traffic's registry makes.

A transport that is added there needs nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import netjoule_contracts as contracts


def names() -> frozenset[str]:
    """Every transport of netjoule-traffic, null among them."""
    return frozenset(contracts.transports())


def label(transport: str) -> str:
    """Its name in figures and sentences; the name itself for one that is not known."""
    return str(contracts.transports().get(transport, {}).get("label", transport))


def which(key: str) -> frozenset[str]:
    """Transports whose entry has this: options, launch_times (pacing so_txtime), host_dependent, ..."""
    return frozenset(name for name, entry in contracts.transports().items() if entry.get(key))


def has_option(transport: str, name: str) -> bool:
    """Whether a transport lets something be chosen."""
    return any(option["name"] == name for option in contracts.transports()[transport]["options"])


def defaults(transport: str) -> dict[str, Any]:
    """What holds of a transport's options where nothing is chosen, by name; those that have a default."""
    options = contracts.transports().get(transport, {}).get("options", [])
    return {str(option["name"]): option["default"] for option in options if "default" in option}


def greatest_message(
    transport: str, ip_version: int, mtu_bytes: int, options: Mapping[str, Any]
) -> int | None:
    """Greatest message in bytes that travels unfragmented; None where only the workload's own bound holds.

    Args:
        options: of the transport; one that is not told counts as the one with the smallest messages.

    Raises:
        KeyError: for a transport that is not known.
    """
    bound = contracts.transports()[transport]["greatest_message"]
    if "bytes" in bound:
        greatest = int(bound["bytes"])
        return greatest if greatest < _greatest_payload() else None
    bounds = [
        min(mtu_bytes, entry["greatest_mtu_bytes"] or mtu_bytes) - entry["overhead_bytes"][f"ipv{ip_version}"]
        for entry in bound["per_packet"]
        if all(options.get(name, value) == value for name, value in entry["with"].items())
    ]
    return int(min(bounds))


def _greatest_payload() -> int:
    """Greatest message that a workload may ask for."""
    return int(contracts.factors()["payload_bytes"]["value"]["maximum"])
