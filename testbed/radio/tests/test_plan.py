# SPDX-License-Identifier: Apache-2.0
"""Wanted networks on recorded radios: capabilities, rate masks, and the problems with their remedies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from netjoule_radio.hostapd_caps import ht_capab, vht_capab
from netjoule_radio.iw_phy import BandCapabilities, parse_iw_phy
from netjoule_radio.plan import RadioPlan, access_point_plan, client_plan

DATA = Path(__file__).parent / "data"
HWSIM, WORLD, ATH9K = (
    (DATA / name).read_text()
    for name in ("iw_phy_hwsim_us.txt", "iw_phy_hwsim_world.txt", "iw_phy_ath9k_made_up.txt")
)
WLAN0 = "Interface wlan0\n\twiphy 0\n\ttype managed\n"
SECRET = "correct horse"
HT40: dict[str, Any] = {
    "ssid": "net",
    "passphrase": SECRET,
    "country": "US",
    "mode": "11n",
    "width_mhz": 40,
    "channel": 36,
    "security": "wpa2",
}
VHT80 = HT40 | {"mode": "11ac", "width_mhz": 80, "security": "sae"}


def planned(changes: dict[str, Any], phy: str = HWSIM, base: dict[str, Any] = HT40) -> RadioPlan:
    return access_point_plan(base | changes, phy, WLAN0)


def test_ht40() -> None:
    plan = planned({})
    assert plan.problems == []
    assert (plan.hw_mode, plan.frequency_mhz, plan.secondary_channel) == ("a", 5180, 1)
    assert (plan.centre_frequency_mhz, plan.streams, plan.start_within_s) == (5190, 2, 15)
    assert plan.ht_capab == "[HT40+][SHORT-GI-20][SHORT-GI-40]"
    assert plan.scan_frequencies_mhz == [5180, 5200]


def test_vht80() -> None:
    plan = planned({}, base=VHT80)
    assert (plan.vht_oper_chwidth, plan.centre_channel, plan.centre_frequency_mhz) == (1, 42, 5210)
    assert plan.vht_capab == "[MAX-MPDU-11454][RXLDPC][SHORT-GI-80][RX-STBC-1234][MAX-A-MPDU-LEN-EXP7]"
    wide = planned({"width_mhz": 160, "dfs": True}, base=VHT80)
    assert (wide.vht_oper_chwidth, wide.centre_channel, wide.radar_duty, wide.start_within_s) == (
        2,
        50,
        True,
        75,
    )
    assert "[VHT160]" in wide.vht_capab


def test_capabilities_are_never_more_than_the_radio_has() -> None:
    bare = BandCapabilities(ht_capab=0x2, vht_capab=0)
    assert ht_capab(bare, band="5", secondary=-1, short_guard=True) == "[HT40-]"
    assert ht_capab(bare, band="5", secondary=0, short_guard=True) == ""
    assert vht_capab(bare, width_mhz=80, short_guard=True) == ""
    rich = BandCapabilities(ht_capab=0xFFFF, vht_capab=0x1FFFFFF2)
    assert "TX-STBC" not in ht_capab(rich, band="5", secondary=1, short_guard=True)
    assert "BEAMFORM" not in vht_capab(rich, width_mhz=80, short_guard=True)
    assert "SHORT-GI" not in ht_capab(rich, band="5", secondary=1, short_guard=False)
    assert "[DSSS_CCK-40]" in ht_capab(rich, band="2.4", secondary=1, short_guard=False)


def test_made_up_ath9k_announces_what_it_receives() -> None:
    assert planned({"country": "DE"}, ATH9K).ht_capab == "[HT40+][SHORT-GI-40][RX-STBC1]"


@pytest.mark.parametrize(
    ("base", "rates", "words"),
    [
        (HT40, "automatic", []),
        (HT40, {"mcs": [10], "guard_interval": "long"}, ["ht-mcs-5", "10", "lgi-5"]),
        (HT40, {"mcs": [13, 10]}, ["ht-mcs-5", "10", "13"]),
        (HT40, {"streams": 1, "guard_interval": "short"}, ["ht-mcs-5", *map(str, range(8)), "sgi-5"]),
        (HT40, {"guard_interval": "long"}, ["lgi-5"]),
        (HT40 | {"channel": 6}, {"mcs": [4]}, ["ht-mcs-2.4", "4"]),
        (VHT80, {"streams": 2}, ["ht-mcs-5", *map(str, range(16)), "vht-mcs-5", "1:0-9", "2:0-9"]),
        # hwsim has 8 VHT and 2 HT streams.
        (VHT80, {"streams": 3}, ["ht-mcs-5", *map(str, range(16)), "vht-mcs-5", "1:0-9", "2:0-9", "3:0-9"]),
        (
            VHT80,
            {"streams": 2, "mcs": [7, 9], "guard_interval": "short"},
            ["ht-mcs-5", "vht-mcs-5", "2:7,9", "sgi-5"],
        ),
        (VHT80, {"guard_interval": "long"}, ["lgi-5"]),
    ],
)
def test_rate_masks(base: dict[str, Any], rates: Any, words: list[str]) -> None:
    plan = planned({"rates": rates}, base=base)
    assert plan.problems == []
    assert plan.bitrate_words == words
    assert client_plan(base | {"rates": rates}, HWSIM, WLAN0).bitrate_words == words


# changes, radio, base, what the sentence says and which remedy it gives
PROBLEMS: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    ({"channel": 52}, HWSIM, HT40, "use one of 36, 40, 44, 48, 149, 153, 157, 161, or set dfs: true"),
    ({"channel": 165}, HWSIM, HT40, "channel 165 has no 40 MHz block; at 40 MHz use one of 36"),
    ({"channel": 37}, HWSIM, HT40, "there is no channel 37"),
    ({"width_mhz": 80}, HWSIM, HT40, "11n has no 80 MHz; use one of 20, 40, or another mode"),
    ({"channel": 6, "width_mhz": 20}, HWSIM, VHT80, "802.11ac exists at 5 GHz only"),
    ({}, WORLD, HT40, "NO-IR"),
    ({}, WORLD, HT40, "install wireless-regdb"),
    ({"channel": 149}, ATH9K, HT40, "channel 149 is not allowed in US"),
    ({"security": "wpa2"}, ATH9K, VHT80, "no 802.11ac; use mode: 11n"),
    ({"country": "us"}, HWSIM, HT40, "two capital letters"),
    ({"ssid": "x" * 33}, HWSIM, HT40, "1 to 32 printable octets"),
    ({"ssid": "a\nwpa=0"}, HWSIM, HT40, "1 to 32 printable octets"),
    ({"passphrase": "short"}, HWSIM, HT40, "8 to 63 characters, this one has 5"),
    ({"passphrase": "1234567"}, HWSIM, HT40, "8 to 63 characters, this one has 7"),
    ({"passphrase": "x" * 64}, HWSIM, HT40, "8 to 63 characters, this one has 64"),
    ({"passphrase": None}, HWSIM, HT40, "wpa2 needs one"),
    ({"passphrase": "new\nline of it"}, HWSIM, HT40, "outside printable ASCII"),
    ({"passphrase": "horse|id=staple"}, HWSIM, VHT80, "for options"),
    ({"tx_power_dbm": 30}, HWSIM, HT40, "30 is above the 23 dBm allowed; lower it"),
    ({"rates": {"mcs": [31]}}, HWSIM, HT40, "4 streams wanted, phy0 has 2"),
    ({"rates": {"mcs": [40]}}, HWSIM, HT40, "not in 0-31"),
    ({"rates": {"mcs": [10], "streams": 1}}, HWSIM, HT40, "needs more than 1 streams"),
    (
        {"rates": {"mcs": [9], "streams": 2}, "width_mhz": 20},
        HWSIM,
        VHT80,
        "802.11ac has no VHT MCS 9 2SS 20 MHz",
    ),
    (
        {"rates": {"guard_interval": "short"}, "width_mhz": 20},
        ATH9K,
        HT40,
        "no short guard interval at 20 MHz",
    ),
    ({"rates": "fast"}, HWSIM, HT40, "use `automatic` or"),
    ({"rates": {"speed": 3}}, HWSIM, HT40, "use `automatic` or"),
    ({"mode": "11ax"}, HWSIM, HT40, "use 11n or 11ac"),
    ({"security": "wep"}, HWSIM, HT40, "use open or wpa2 or sae"),
    ({"channel": "low"}, HWSIM, HT40, "not a whole number"),
    ({}, HWSIM.replace("\t\t * AP\n", ""), HT40, "cannot be AP"),
    ({}, HWSIM.replace("(00-0f-ac:6)", "(00-0f-ac:99)"), VHT80, "cannot protect management frames"),
    ({"rates": {"mcs": [3]}}, HWSIM.replace("set_tx_bitrate_mask", "x"), HT40, "cannot fix rates"),
    ({}, HWSIM.replace("Capabilities: 0x107e", "Capabilities: 0x107c"), HT40, "use a smaller width_mhz"),
    ({}, "", HT40, "is its driver loaded?"),
]


@pytest.mark.parametrize(("changes", "phy", "base", "words"), PROBLEMS)
def test_problem_names_its_remedy(
    changes: dict[str, Any], phy: str, base: dict[str, Any], words: str
) -> None:
    plan = planned(changes, phy, base)
    assert words in ". ".join(plan.problems)
    secret = (base | changes)["passphrase"] or "-"
    assert secret not in repr(plan)


def test_missing_interface_and_missing_keys() -> None:
    assert "correct the host's radio.interface" in access_point_plan(HT40, HWSIM, "").problems[0]
    assert access_point_plan({"ssid": "x"}, HWSIM, WLAN0).problems[0].startswith("wifi: country, mode")


def test_radio_is_that_of_the_interface() -> None:
    assert access_point_plan(HT40, HWSIM, WLAN0.replace("wiphy 0", "wiphy 1")).radio == "phy1"
    assert [r.name for r in parse_iw_phy(HWSIM)] == ["phy1", "phy0"]


def test_client_listens_where_an_access_point_may_not_start() -> None:
    assert client_plan(HT40, WORLD, WLAN0).problems == []


def test_radar_channel_when_asked_for_though_it_is_no_ir_before_the_check() -> None:
    plan = planned({"country": "DE", "channel": 52, "dfs": True}, ATH9K)
    assert plan.problems == []
    assert (plan.radar_duty, plan.start_within_s) == (True, 75)


@pytest.mark.parametrize("passphrase", ["12345678", "x" * 63])
def test_longest_and_shortest_passphrase_of_wpa2(passphrase: str) -> None:
    assert planned({"passphrase": passphrase}).problems == []
