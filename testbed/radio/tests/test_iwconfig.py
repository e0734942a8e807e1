# SPDX-License-Identifier: Apache-2.0
"""Texts of iwconfig, verbatim where recorded; lines marked "made" are made from its source (iwconfig.c)."""

import pytest
from golden_sentences import raises
from recorded_tools import CompletedTool, Tool, recorded

from netjoule_radio.iwconfig import IwconfigSource, parse_snapshot, rate
from netjoule_radio.snapshot import NO_RATE, Rate, Station
from netjoule_radio.source import InterfaceGone, ReadFailed


def test_a_client_recorded() -> None:
    snapshot = parse_snapshot(recorded("ht-wlan2-iwconfig.txt"))
    assert (snapshot.role, snapshot.bssid, snapshot.power_save) == (
        "client",
        "02:00:00:00:00:00",
        True,
    )
    # 27 Mb/s: MCS 1 of one stream or MCS 8 of two, at 40 MHz; iw said MCS 8 40MHz in the same second.
    expected = Rate(27.0, None, None, 40, 800, "rate_ambiguous")
    assert snapshot.stations == (Station("02:00:00:00:00:00", tx=expected, rssi_dbm=-27.0, failed=0),)


def test_an_access_point_prints_no_rate_and_no_station() -> None:
    snapshot = parse_snapshot(recorded("ht-wlan0-iwconfig.txt"))
    assert (snapshot.role, snapshot.stations, snapshot.lists_stations, snapshot.power_save) == (
        "access_point",
        (),
        False,
        False,
    )


@pytest.mark.parametrize("name", ["off-wlan1-iwconfig.txt", "nohostapd-wlan0-iwconfig.txt"])
def test_not_associated(name: str) -> None:
    snapshot = parse_snapshot(recorded(name))
    assert (snapshot.role, snapshot.bssid, snapshot.stations, snapshot.lists_stations) == (
        "client",
        None,
        (),
        True,
    )


@pytest.mark.parametrize("sign", ["=", ":"])
def test_both_signs_before_a_rate(sign: str) -> None:
    assert rate(f"          Bit Rate{sign}81 Mb/s   Tx-Power=20 dBm").phy_rate_mbps == 81.0


def test_the_two_meanings_of_81_are_marked_and_what_they_share_is_told() -> None:
    assert rate("Bit Rate=81 Mb/s") == Rate(81.0, None, None, 40, 800, "rate_ambiguous")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Bit Rate=6 Mb/s", Rate(6.0, None, None, 20, 800)),  # legacy only: no HT or VHT mode has it
        ("Bit Rate:1.0806 Gb/s", Rate(1080.6, flag="rate_unchecked")),  # made: none of 802.11n/ac
        ("Bit Rate:0 kb/s", NO_RATE),  # made
        ("Bit Rate:5.5 Mb/s", Rate(5.5, None, None, 20, 800)),
        ("Mode:Managed  Frequency:5.18 GHz", NO_RATE),
    ],
)
def test_rates_that_are_not_ambiguous(text: str, told: Rate) -> None:
    assert rate(text) == told


def test_gigabits_are_megabits() -> None:
    # Made: 1.17 Gb/s is VHT MCS 9 at 80 MHz with three streams, long guard interval.
    told = rate("Bit Rate:1.17 Gb/s")
    assert told.phy_rate_mbps == 1170.0


def test_54_may_be_legacy_or_ht() -> None:
    told = rate("Bit Rate=54 Mb/s")
    assert (told.flag, told.mcs, told.width_mhz) == ("rate_ambiguous", None, None)


@pytest.mark.parametrize(
    ("line", "rssi_dbm", "saves"),
    [
        ("Power Management:off\n Link Quality=40/70  Signal level=-70 dBm", -70.0, False),
        ("Power Management:on\n Link Quality:40/70  Signal level:-70 dBm", -70.0, True),
        ("Power Management period:2  mode:All packets received", None, True),  # made
        ("Link Quality=98/100  Signal level=60/100", None, None),  # made: a vendor's own scale
    ],
)
def test_signal_and_power_save(line: str, rssi_dbm: float | None, saves: bool | None) -> None:
    text = f"wlan0 IEEE 802.11  Mode:Managed  Access Point: 02:00:00:00:00:0A\n {line}\n"
    snapshot = parse_snapshot(text)
    assert (snapshot.stations[0].rssi_dbm, snapshot.power_save) == (rssi_dbm, saves)
    assert snapshot.bssid == "02:00:00:00:00:0a"


VERSION = "iwconfig  Wireless-Tools version 30\n          Compatible with Wireless Extension v11 to v22.\n"


def test_the_source_asks_once_a_look() -> None:
    tool = Tool({"--version": VERSION, "wlan2": recorded("ht-wlan2-iwconfig.txt")})
    source = IwconfigSource("wlan2", tool)
    assert source.snapshot().stations[0].tx.phy_rate_mbps == 27.0
    assert (source.version, tool.asked) == ("30", ["--version", "wlan2"])


@pytest.mark.parametrize(
    ("ran", "kind"),
    [
        # Recorded.
        (CompletedTool(237, "", "wlan9     No such device\n\n"), InterfaceGone),
        (
            CompletedTool(161, "", "lo        no wireless extensions.\n\n"),
            ReadFailed,
        ),
    ],
)
def test_what_iwconfig_cannot_tell(ran: CompletedTool, kind: type[ReadFailed]) -> None:
    source = IwconfigSource("wlan9", Tool({"--version": VERSION, "wlan9": ran}))
    with raises(kind):
        source.snapshot()
