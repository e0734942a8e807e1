# SPDX-License-Identifier: Apache-2.0
"""Networks of the tests: those of the two shipped racks, and one for each security and width."""

from __future__ import annotations

from typing import Any

from render import ANSIBLE, PASSPHRASE

from netjoule.provisioning.inventory import wanted_wifi
from netjoule.topology import topology
from netjoule.topology.topology import Topology

HWSIM, ATH9K = "iw_phy_hwsim_us.txt", "iw_phy_ath9k_made_up.txt"

TOPOLOGIES = ANSIBLE.parent / "testbed/topologies"
# The shipped racks, and the recorded radio that stands for those of their hosts.
RACKS = {"seed-2013": ATH9K, "modern": HWSIM}


def rack(name: str) -> Topology:
    """A shipped topology."""
    return topology.load(TOPOLOGIES / f"{name}.yaml")


def network_of(name: str) -> dict[str, Any]:
    """The variable netjoule_wifi of a shipped topology, with a passphrase."""
    return wanted_wifi(rack(name)) | {"passphrase": PASSPHRASE}


SEED_2013 = network_of("seed-2013")
MODERN = network_of("modern")
# name: (network, recorded radio)
GOLDEN = {"seed-2013-hwsim": (SEED_2013 | {"country": "US", "rates": "automatic"}, HWSIM)}
PARSED = GOLDEN | {
    f"{mode}-{width}-{channel}-{security}": (
        MODERN
        | {"mode": mode, "width_mhz": width, "channel": channel, "security": security, "dfs": width == 160}
        | {"forwarding": "routing", "rates": "automatic", "ssid": 'net "joule" #1 é'},
        HWSIM,
    )
    for mode, width, channel in (
        ("11n", 20, 6),
        ("11n", 40, 11),
        ("11n", 40, 48),
        ("11ac", 40, 149),
        ("11ac", 160, 36),
    )
    for security in ("open", "wpa2", "sae", "sae-transition")
}
