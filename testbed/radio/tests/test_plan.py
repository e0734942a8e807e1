# SPDX-License-Identifier: Apache-2.0
"""Wanted networks on recorded radios: capabilities, rate masks, and the problems with their remedies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_sentences import same_sentence

from netjoule_radio.hostapd_caps import ht_capab, vht_capab
from netjoule_radio.iw_phy import BandCapabilities, parse_iw_phy
from netjoule_radio.plan import RadioPlan, plan_of

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
    return plan_of("AP", base | changes, phy, WLAN0)


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
    assert plan_of("managed", base | {"rates": rates}, HWSIM, WLAN0).bitrate_words == words


# changes, radio, base; the sentence says what is wrong and what to do
PROBLEMS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"channel": 52}, HWSIM, HT40),
    ({"channel": 165}, HWSIM, HT40),
    ({"channel": 37}, HWSIM, HT40),
    ({"width_mhz": 80}, HWSIM, HT40),
    ({"channel": 6, "width_mhz": 20}, HWSIM, VHT80),
    ({}, WORLD, HT40),
    ({"channel": 149}, ATH9K, HT40),
    ({"security": "wpa2"}, ATH9K, VHT80),
    ({"country": "us"}, HWSIM, HT40),
    ({"ssid": "x" * 33}, HWSIM, HT40),
    ({"ssid": "a\nwpa=0"}, HWSIM, HT40),
    ({"passphrase": "short"}, HWSIM, HT40),
    ({"passphrase": "1234567"}, HWSIM, HT40),
    ({"passphrase": "x" * 64}, HWSIM, HT40),
    ({"passphrase": None}, HWSIM, HT40),
    ({"passphrase": "new\nline of it"}, HWSIM, HT40),
    ({"passphrase": "horse|id=staple"}, HWSIM, VHT80),
    ({"tx_power_dbm": 30}, HWSIM, HT40),
    ({"rates": {"mcs": [31]}}, HWSIM, HT40),
    ({"rates": {"mcs": [40]}}, HWSIM, HT40),
    ({"rates": {"mcs": [10], "streams": 1}}, HWSIM, HT40),
    ({"rates": {"mcs": [9], "streams": 2}, "width_mhz": 20}, HWSIM, VHT80),
    ({"rates": {"guard_interval": "short"}, "width_mhz": 20}, ATH9K, HT40),
    ({"rates": "fast"}, HWSIM, HT40),
    ({"rates": {"speed": 3}}, HWSIM, HT40),
    ({"mode": "11ax"}, HWSIM, HT40),
    ({"security": "wep"}, HWSIM, HT40),
    ({"channel": "low"}, HWSIM, HT40),
    ({}, HWSIM.replace("\t\t * AP\n", ""), HT40),
    ({}, HWSIM.replace("(00-0f-ac:6)", "(00-0f-ac:99)"), VHT80),
    ({"rates": {"mcs": [3]}}, HWSIM.replace("set_tx_bitrate_mask", "x"), HT40),
    ({}, HWSIM.replace("Capabilities: 0x107e", "Capabilities: 0x107c"), HT40),
    ({}, "", HT40),
]


@pytest.mark.parametrize(
    ("changes", "phy", "base"),
    PROBLEMS,
    ids=[f"{number} {changes}" for number, (changes, _, _) in enumerate(PROBLEMS)],
)
def test_problem_names_its_remedy(changes: dict[str, Any], phy: str, base: dict[str, Any]) -> None:
    plan = planned(changes, phy, base)
    assert plan.problems
    same_sentence(". ".join(plan.problems))
    secret = (base | changes)["passphrase"] or "-"
    assert secret not in repr(plan)


def test_missing_interface_and_missing_keys() -> None:
    same_sentence(plan_of("AP", HT40, HWSIM, "").problems[0])
    same_sentence(plan_of("AP", {"ssid": "x"}, HWSIM, WLAN0).problems[0])


def test_radio_is_that_of_the_interface() -> None:
    assert plan_of("AP", HT40, HWSIM, WLAN0.replace("wiphy 0", "wiphy 1")).radio == "phy1"
    assert [r.name for r in parse_iw_phy(HWSIM)] == ["phy1", "phy0"]


def test_client_listens_where_an_access_point_may_not_start() -> None:
    assert plan_of("managed", HT40, WORLD, WLAN0).problems == []


def test_radar_channel_when_asked_for_though_it_is_no_ir_before_the_check() -> None:
    plan = planned({"country": "DE", "channel": 52, "dfs": True}, ATH9K)
    assert plan.problems == []
    assert (plan.radar_duty, plan.start_within_s) == (True, 75)


@pytest.mark.parametrize("passphrase", ["12345678", "x" * 63])
def test_longest_and_shortest_passphrase_of_wpa2(passphrase: str) -> None:
    assert planned({"passphrase": passphrase}).problems == []
