# SPDX-License-Identifier: Apache-2.0
"""Networks of the golden tests: those of the two racks, and one for each security and width."""

from __future__ import annotations

from typing import Any

from render import PASSPHRASE

HWSIM, ATH9K = "iw_phy_hwsim_us.txt", "iw_phy_ath9k_made_up.txt"

# The seed study's rack: 802.11n, 5 GHz, 40 MHz, two antennas.
SEED_2013: dict[str, Any] = {
    "ssid": "netjoule-seed-2013",
    "passphrase": PASSPHRASE,
    "country": "DE",
    "mode": "11n",
    "width_mhz": 40,
    "channel": 36,
    "security": "wpa2",
    "dfs": False,
    "forwarding": "routing",
    "rates": {"mcs": [10], "guard_interval": "long", "streams": 2},
    "power_save": "off",
}
# A modern rack: 802.11ac, 80 MHz, WPA3.
MODERN: dict[str, Any] = SEED_2013 | {
    "ssid": "netjoule-modern",
    "country": "US",
    "mode": "11ac",
    "width_mhz": 80,
    "security": "sae",
    "forwarding": "bridging",
    "rates": {"streams": 2},
}
# name: (network, recorded radio)
GOLDEN = {
    "seed-2013-ath9k": (SEED_2013, ATH9K),
    "seed-2013-hwsim": (SEED_2013 | {"country": "US", "rates": "automatic"}, HWSIM),
    "modern-hwsim": (MODERN, HWSIM),
}
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
