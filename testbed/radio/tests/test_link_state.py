# SPDX-License-Identifier: Apache-2.0
"""Recorded running networks against their plans, and recorded failures against their remedies."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import same_sentence

from netjoule_radio.link_state import access_point_differences, client_differences, streams_announced
from netjoule_radio.plan import plan_of
from netjoule_radio.remedies import remedies

DATA = Path(__file__).parent / "data"
STATE = DATA / "state"
HT40: dict[str, Any] = {
    "ssid": "netjoule-seed-2013",
    "passphrase": "correct horse",
    "country": "US",
    "mode": "11n",
    "width_mhz": 40,
    "channel": 36,
    "security": "wpa2",
    "tx_power_dbm": None,
}
VHT80 = HT40 | {"ssid": "netjoule-modern", "mode": "11ac", "width_mhz": 80, "security": "sae"}
NETWORKS = {"ht40": HT40, "vht80": VHT80}


def recorded(name: str, file: str) -> str:
    return (STATE / name / file).read_text()


def access_point(name: str, wifi: dict[str, Any], **replaced: str) -> list[str]:
    texts = {
        "hostapd_status": recorded(name, "hostapd_status.txt"),
        "iw_dev_info": recorded(name, "iw_dev_ap.txt"),
        "iw_reg": recorded(name, "iw_reg.txt"),
    } | replaced
    plan = plan_of("AP", wifi, (DATA / "iw_phy_hwsim_us.txt").read_text(), recorded(name, "iw_dev_ap.txt"))
    assert plan.problems == []
    return access_point_differences(asdict(plan), wifi, **texts)


def client(name: str, wifi: dict[str, Any], **replaced: str) -> list[str]:
    texts = {
        "wpa_status": recorded(name, "wpa_status.txt"),
        "iw_dev_info": recorded(name, "iw_dev_client.txt"),
        "iw_power_save": recorded(name, "iw_power_save.txt"),
        "iw_reg": recorded(name, "iw_reg.txt"),
    } | replaced
    plan = plan_of(
        "managed", wifi, (DATA / "iw_phy_hwsim_us.txt").read_text(), recorded(name, "iw_dev_client.txt")
    )
    assert plan.problems == []
    return client_differences(asdict(plan), wifi, **texts)


@pytest.mark.parametrize("name", NETWORKS)
def test_running_as_planned(name: str) -> None:
    assert access_point(name, NETWORKS[name]) == []
    assert client(name, NETWORKS[name] | {"tx_power_dbm": 15}) == []


@pytest.mark.parametrize(
    "change",
    [
        {"channel": 40},
        {"width_mhz": 20},
        {"ssid": "other"},
        {"mode": "11ac"},
        {"country": "DE"},
        {"tx_power_dbm": 10},
    ],
)
def test_access_point_that_differs(change: dict[str, Any]) -> None:
    differences = access_point("ht40", HT40 | change)
    assert differences
    same_sentence(". ".join(differences))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ht40", "bitmask=ffff", "bitmask=ff00"),
        ("ht40", "ht_mcs_bitmask", "nothing"),
        ("vht80", "rx_vht_mcs_map=aaaa", "rx_vht_mcs_map=fffa"),
    ],
)
def test_access_point_with_too_few_streams(name: str, old: str, new: str) -> None:
    status = recorded(name, "hostapd_status.txt").replace(old, new)
    (only,) = access_point(name, NETWORKS[name], hostapd_status=status)
    same_sentence(only)


def test_streams_that_are_asked_for_are_enough() -> None:
    status = recorded("vht80", "hostapd_status.txt").replace("rx_vht_mcs_map=aaaa", "rx_vht_mcs_map=fffa")
    assert access_point("vht80", VHT80 | {"rates": {"streams": 2}}, hostapd_status=status) == []


def of_two_antennas(used: int) -> str:
    """`iw phy` of the AR9280; its driver lowers the rates with the antennas in use."""
    text = (DATA / "iw_phy_ath9k_made_up.txt").read_text().replace("index: 0", "index: 1")
    for old, new in (
        ("Configured Antennas: TX 0x3 RX 0x3", "Configured Antennas: TX 0x1 RX 0x1"),
        (": 0-15", ": 0-7"),
    ):
        assert old in text
        text = text if used == 2 else text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("used", "rates", "differences"),
    [
        (2, "automatic", 0),
        (
            1,
            "automatic",
            1,
        ),
        (1, {"guard_interval": "long"}, 1),
        (1, {"streams": 1}, 0),
    ],
)
def test_client_with_too_few_streams(used: int, rates: Any, differences: int) -> None:
    wifi = HT40 | {"rates": rates}
    plan = plan_of("managed", wifi, of_two_antennas(used), recorded("ht40", "iw_dev_client.txt"))
    assert plan.problems == []
    texts = [
        recorded("ht40", f"{name}.txt") for name in ("wpa_status", "iw_dev_client", "iw_power_save", "iw_reg")
    ]
    found = client_differences(asdict(plan), wifi, *texts)
    assert len(found) == differences
    same_sentence(". ".join(found))


def test_a_client_that_lacks_a_wanted_stream_is_refused_by_its_plan() -> None:
    wifi = HT40 | {"rates": {"streams": 2}}
    plan = plan_of("managed", wifi, of_two_antennas(1), recorded("ht40", "iw_dev_client.txt"))
    (only,) = plan.problems
    same_sentence(only)


def test_streams_that_a_client_announced_to_hostapd() -> None:
    # Made: lines of hostapd_cli sta, hostapd 2.10.
    sta = {"rx_vht_mcs_map": "fffa", "ht_mcs_bitmask": "ff000000000000000000"}
    assert (streams_announced(sta, vht=True), streams_announced(sta, vht=False)) == (2, 1)


def test_access_point_that_does_not_send() -> None:
    same_sentence(access_point("ht40", HT40, hostapd_status="state=HT_SCAN\nfreq=5180\n")[0])
    same_sentence(access_point("ht40", HT40, hostapd_status="")[0])
    same_sentence(". ".join(access_point("ht40", HT40, iw_dev_info="")))


def test_client_that_differs() -> None:
    same_sentence(client("ht40", HT40 | {"power_save": "on"})[0])
    same_sentence(client("ht40", HT40 | {"security": "sae"})[0])
    same_sentence(client("ht40", HT40, wpa_status=recorded("ht40", "wpa_status_wrong.txt"))[0])
    assert "of type managed" not in ". ".join(client("ht40", HT40))


@pytest.mark.parametrize(
    "file",
    [
        "hostapd_no_ir.log",
        "hostapd_capability.log",
        "hostapd_rfkill.log",
        "ht40/wpa_wrong_passphrase.log",
        "vht80/wpa_wrong_passphrase.log",
    ],
)
def test_recorded_failures_have_a_remedy(file: str) -> None:
    same_sentence(remedies((STATE / file).read_text())[0])


@pytest.mark.parametrize(
    "line",
    [
        "command failed: Not supported (-95)",
        "command failed: No such device (-19)",
        "Line 7: unknown configuration item 'noscan'",
        "rfkill: WLAN hard blocked",
    ],
)
def test_known_lines(line: str) -> None:
    (only,) = remedies(line)
    same_sentence(only)


def test_nothing_known_to_say() -> None:
    assert remedies("wlan0: AP-ENABLED \n") == []
    assert remedies(recorded("ht40", "wpa_status.txt")) == []


@pytest.mark.parametrize(
    ("ssid", "printed"),
    [("Büro", r"B\xc3\xbcro"), ('a "quoted" one', r"a \"quoted\" one"), ("back\\slash", r"back\\slash")],
)
def test_an_ssid_is_compared_as_status_prints_it(ssid: str, printed: str) -> None:
    wifi = HT40 | {"ssid": ssid}
    hostapd, wpa = (
        recorded("ht40", file).replace("netjoule-seed-2013", printed)
        for file in ("hostapd_status.txt", "wpa_status.txt")
    )
    assert access_point("ht40", wifi, hostapd_status=hostapd) == []
    assert client("ht40", wifi | {"tx_power_dbm": 15}, wpa_status=wpa) == []


def test_a_client_that_joined_by_another_mode_is_told() -> None:
    wpa = recorded("vht80", "wpa_status.txt")
    lower = wpa.replace("wifi_generation=5", "wifi_generation=4")
    same_sentence(client("vht80", VHT80, wpa_status=lower)[0])
    # Not every driver tells.
    assert client("vht80", VHT80, wpa_status=wpa.replace("wifi_generation=5\n", "")) == []
