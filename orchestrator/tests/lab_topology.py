# SPDX-License-Identifier: Apache-2.0
"""A lab of five hosts as a topology document, for tests: routing, two clients, two metered nodes."""

from __future__ import annotations

import copy
from typing import Any

GONE = object()
RANGES = {"voltage_range_v": 300, "current_range_a": 1}

LAB: dict[str, Any] = {
    "schema_version": 1,
    "name": "rack",
    "kind": "lab",
    "hosts": {
        "laptop": {
            "roles": ["client"],
            "control_address": "192.0.2.11",
            "test_addresses": {"ipv4": "10.77.0.11", "ipv6": "fd77::11"},
            "radio": {"interface": "wlp2s0", "reader": "iw", "every_s": 0.5},
            "routes": [
                {"to": "10.78.0.0/24", "via": "10.77.0.1"},
                {"to": "fd78::/64", "via": "fd77::1"},
            ],
        },
        "board": {
            "roles": ["client"],
            "control_address": "board.control.example",
            "ssh": {"user": "lab", "port": 2222, "identity_file": "~/.ssh/lab", "become": True},
            "service_manager": "none",
            "test_addresses": {"ipv4": "10.77.0.12/24"},
            "radio": {"interface": "wlan0"},
            "routes": [{"to": "10.78.0.0/24", "via": "10.77.0.1"}],
        },
        "ap": {
            "roles": ["access_point"],
            "control_address": "192.0.2.1",
            "radio": {"interface": "wlan0", "addresses": ["10.77.0.1/24", "fd77::1/64"]},
            "wired": {"interface": "enp3s0", "addresses": ["10.78.0.1/24", "fd78::1/64"]},
        },
        "tower": {
            "roles": ["server"],
            "control_address": "192.0.2.2",
            "test_addresses": {"ipv4": "10.78.0.2", "ipv6": "fd78::2"},
            "wired": {"interface": "enp3s0"},
            "routes": [
                {"to": "10.77.0.0/24", "via": "10.78.0.1"},
                {"to": "fd77::/64", "via": "fd78::1"},
            ],
        },
        "shelf": {"roles": ["meter_host", "observer"], "control_address": "192.0.2.3"},
    },
    "wifi": {
        "ssid": "rack",
        "passphrase": "env:RACK_PASSPHRASE",
        "country": "DE",
        "mode": "11n",
        "width_mhz": 40,
        "channel": 36,
        "security": "wpa2",
        "power_save": False,
    },
    "meters": [
        {
            "meter_id": "laptop-power",
            "node": "laptop",
            "host": "shelf",
            "adapter": "wt310",
            "resource": "usbtmc:/dev/usbtmc0",
            "settings": RANGES,
        },
        {
            "meter_id": "ap-power",
            "node": "ap",
            "adapter": "wt310",
            "resource": "/dev/ttyUSB0",
            "settings": RANGES,
        },
    ],
}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The lab with values set (or GONE) at dotted places."""
    document = copy.deepcopy(LAB)
    for place, value in changes:
        *parents, last = (int(p) if p.isdigit() else p for p in place.split("."))
        node: Any = document
        for parent in parents:
            node = node[parent]
        if value is GONE:
            del node[last]
        else:
            node[last] = copy.deepcopy(value)
    return document
