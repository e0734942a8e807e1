# SPDX-License-Identifier: Apache-2.0
"""What provisioning.json says about the radios, from recorded words; needs no guest."""

from typing import Any

import pytest
from guest_lab import ROOT
from provisioned import access_point, client

STATE = ROOT / "testbed/radio/tests/data/state"
# Made: the line of hostapd_cli sta that names streams, hostapd 2.10.
STATION = {
    "ht40": "02:00:00:00:01:00\nflags=[AUTH][ASSOC][AUTHORIZED]\nht_mcs_bitmask=ffff0000000000000000\n",
    "vht80": "02:00:00:00:01:00\nflags=[AUTH][ASSOC][AUTHORIZED]\nrx_vht_mcs_map=fffa\n",
}
COMMON = {"country": "US", "frequency_mhz": 5180}
EXPECTED: dict[str, dict[str, dict[str, Any]]] = {
    "ht40": {
        "access_point": {
            "width_mhz": 40,
            "centre_frequency_mhz": 5190,
            "mode": "11n",
            "streams": 2,
            "type": "AP",
        },
        "client": {
            "width_mhz": 40,
            "mode": "11n",
            "streams": 2,
            "key_management": "WPA2-PSK",
            "type": "managed",
        },
    },
    "vht80": {
        "access_point": {
            "width_mhz": 80,
            "centre_frequency_mhz": 5210,
            "mode": "11ac",
            "streams": 8,
            "type": "AP",
        },
        "client": {"width_mhz": 80, "mode": "11ac", "streams": 2, "key_management": "SAE", "type": "managed"},
    },
}


def recorded(network: str, name: str) -> str:
    return (STATE / network / f"{name}.txt").read_text()


@pytest.mark.parametrize("network", EXPECTED)
def test_both_ends_are_described(network: str) -> None:
    reg, expected = recorded(network, "iw_reg"), EXPECTED[network]
    sends = access_point(recorded(network, "hostapd_status"), recorded(network, "iw_dev_ap"), reg)
    assert sends == sends | COMMON | expected["access_point"]
    assert (sends["state"], sends["secondary_channel"], sends["stations"]) == ("ENABLED", 1, 1)
    joined = client(
        recorded(network, "wpa_status"), STATION[network], recorded(network, "iw_power_save"),
        recorded(network, "iw_dev_client"), reg,
    )  # fmt: skip
    assert joined == joined | COMMON | expected["client"]
    assert (joined["state"], joined["power_save"], joined["bssid"]) == (
        "COMPLETED",
        "off",
        "02:00:00:00:00:00",
    )
