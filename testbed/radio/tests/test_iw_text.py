# SPDX-License-Identifier: Apache-2.0
"""Texts of iw, verbatim where recorded; lines marked "made" are made from iw's source (station.c)."""

import pytest
from golden_sentences import raises
from recorded_tools import NO_DEVICE, NOT_SUPPORTED, CompletedTool, Tool, recorded

from netjoule_radio.iw_text import SLOW_EVERY, IwSource, interface, link, power_save, rate, station_dump
from netjoule_radio.snapshot import NO_RATE, Rate, Station
from netjoule_radio.source import InterfaceGone, ReadFailed


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # Recorded.
        ("13.0 MBit/s MCS 8", Rate(13.0, 8, 2, 20, 800)),
        ("7.2 MBit/s MCS 0 short GI", Rate(7.2, 0, 1, 20, 400)),
        ("300.0 MBit/s MCS 15 40MHz short GI", Rate(300.0, 15, 2, 40, 400)),
        ("866.7 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2", Rate(866.7, 9, 2, 80, 400)),
        ("104.0 MBit/s VHT-MCS 5 VHT-NSS 2", Rate(104.0, 5, 2, 20, 800)),
        ("6.0 MBit/s", Rate(6.0, None, None, 20, 800)),
        # Made: the two meanings of 81 Mb/s, which iw tells apart.
        ("81.0 MBit/s MCS 10 40MHz", Rate(81.0, 10, 2, 40, 800)),
        ("81.0 MBit/s MCS 4 40MHz", Rate(81.0, 4, 1, 40, 800)),
        ("54.0 MBit/s", Rate(54.0, None, None, 20, 800)),
        ("1733.3 MBit/s VHT-MCS 9 80P80MHz short GI VHT-NSS 2", Rate(1733.3, 9, 2, 160, 400)),
        # Made: fields that contradict the rate, or each other.
        ("216.0 MBit/s MCS 13 40MHz short GI", Rate(216.0, 13, 2, 40, 400, "rate_mismatch")),
        ("216.0 MBit/s MCS 13", Rate(216.0, 13, 2, 20, 800, "rate_mismatch")),
        ("866.7 MBit/s VHT-MCS 9 80MHz short GI", Rate(866.7, 9, None, 80, 400, "rate_mismatch")),
        # Made: later standards have other rates for the same numbers; they are told as they are, unchecked.
        (
            "1200.9 MBit/s 80MHz HE-MCS 11 HE-NSS 2 HE-GI 0 HE-DCM 0",
            Rate(1200.9, 11, 2, 80, 800, "rate_unchecked"),
        ),
        ("137.6 MBit/s HE-MCS 5 HE-NSS 2 HE-GI 2 HE-DCM 0", Rate(137.6, 5, 2, 20, 3200, "rate_unchecked")),
        (
            "5764.7 MBit/s 320MHz EHT-MCS 13 EHT-NSS 2 EHT-GI 1",
            Rate(5764.7, 13, 2, 320, 1600, "rate_unchecked"),
        ),
        # Made: iw before 4.9 writes the width so.
        ("300.0 MBit/s MCS 15 40Mhz short GI", Rate(300.0, 15, 2, 40, 400)),
        # Made: no rate, with and without fields.
        ("(unknown)", NO_RATE),
        ("(unknown) MCS 3 40MHz", Rate(None, 3, 1, 40, 800, "rate_unknown")),
        # Made: a vendor's driver that tells a rate of 802.11n without its fields.
        ("300.0 MBit/s", Rate(300.0, None, 2, 40, 400, "rate_ambiguous")),  # HT MCS 15 or VHT MCS 7
        ("1201.0 MBit/s", Rate(1201.0, flag="rate_unchecked")),
    ],
)
def test_a_rate_line_is_read_in_every_word(text: str, told: Rate) -> None:
    assert rate(text) == told


def test_an_access_points_dump_has_every_station() -> None:
    first, second = station_dump(recorded("ht-wlan0-station.txt"))
    assert first == Station(
        "02:00:00:00:01:00",
        tx=Rate(108.0, 5, 1, 40, 800),
        rx=Rate(13.0, 8, 2, 20, 800),
        rssi_dbm=-27.0,
        retries=0,
        failed=0,
        connected_s=28.0,
        associated_at_s=45.269,
    )
    assert (second.station, second.rx) == ("02:00:00:00:02:00", Rate(27.0, 8, 2, 40, 800))


def test_pinned_rates_are_seen_at_the_receiver() -> None:
    pinned, _ = station_dump(recorded("pin-wlan0-station.txt"))
    assert pinned.rx == Rate(39.0, 10, 2, 20, 800)
    assert pinned.tx == Rate(81.0, 4, 1, 40, 800)


def test_a_station_without_a_received_frame_has_no_rx_rate() -> None:
    (own,) = station_dump(recorded("vht-wlan1-station.txt"))
    assert own.rx == NO_RATE
    assert own.tx == Rate(104.0, 5, 2, 20, 800)
    assert own.beacons


def test_every_recorded_rate_follows_from_its_fields() -> None:
    names = ("ht-wlan0", "ht-wlan2", "pin-wlan0", "pin-wlan1", "vht-wlan0", "vht-wlan2")
    stations = [s for name in names for s in station_dump(recorded(f"{name}-station.txt"))]
    assert len(stations) == 9
    assert {r.flag for s in stations for r in (s.tx, s.rx)} == {""}


def test_signal_by_antenna_and_vendors_padding() -> None:
    # Made: two antennas; ath9k and iwlwifi print so.
    text = (
        "Station AA:BB:CC:DD:EE:FF (on wlp2s0)\n"
        "\tsignal:  \t-58 [-61, -60] dBm\n"
        "\ttx retries:\t17\n"
        "\ttx failed:\t2\n"
    )
    assert station_dump(text) == (Station("aa:bb:cc:dd:ee:ff", rssi_dbm=-58.0, retries=17, failed=2),)


def test_link_tells_the_rates_but_no_counters() -> None:
    own = link(recorded("vht-wlan2-link.txt"))
    assert own == Station(
        "02:00:00:00:00:00", tx=Rate(216.0, 5, 2, 40, 800), rx=Rate(14.4, 0, 2, 20, 400), rssi_dbm=-27.0
    )
    assert link(recorded("off-wlan1-link.txt")) is None
    assert station_dump(recorded("off-wlan1-station.txt")) == ()


def test_power_save_and_kind_of_interface() -> None:
    assert power_save(recorded("ht-wlan2-ps.txt")) is True
    assert power_save(recorded("ht-wlan0-ps.txt")) is False
    assert power_save("") is None
    assert interface(recorded("ht-wlan0-info.txt")) == ("access_point", "02:00:00:00:00:00")
    assert interface(recorded("ht-wlan2-info.txt")) == ("client", "02:00:00:00:02:00")
    assert interface("\ttype monitor\n") == ("other", None)


def client_tool(**changed: CompletedTool | str) -> Tool:
    answers: dict[str, CompletedTool | str] = {
        "--version": "iw version 5.19\n",
        "info": recorded("ht-wlan2-info.txt"),
        "power_save": recorded("ht-wlan2-ps.txt"),
        "station dump": recorded("ht-wlan2-station.txt"),
        "link": recorded("ht-wlan2-link.txt"),
    }
    return Tool(answers | {name.replace("station_", "station "): answer for name, answer in changed.items()})


def test_a_clients_look() -> None:
    source = IwSource("wlan2", client_tool())
    snapshot = source.snapshot()
    assert source.version == "5.19"
    assert (snapshot.role, snapshot.bssid, snapshot.power_save) == (
        "client",
        "02:00:00:00:00:00",
        True,
    )
    assert [station.tx for station in snapshot.stations] == [Rate(27.0, 8, 2, 40, 800)]


def test_an_access_points_look_is_under_its_own_address() -> None:
    tool = client_tool(
        info=recorded("ht-wlan0-info.txt"),
        station_dump=recorded("ht-wlan0-station.txt"),
        power_save=recorded("ht-wlan0-ps.txt"),
    )
    snapshot = IwSource("wlan0", tool).snapshot()
    assert (snapshot.role, snapshot.bssid, snapshot.power_save) == (
        "access_point",
        "02:00:00:00:00:00",
        False,
    )
    assert len(snapshot.stations) == 2


def test_a_peer_beside_the_access_point_is_left_out() -> None:
    # Made: a TDLS peer before the access point in the list.
    peer = "Station 02:00:00:00:07:00 (on wlan2)\n\ttx bitrate:\t6.0 MBit/s\n\tTDLS peer:\tyes\n"
    snapshot = IwSource("wlan2", client_tool(station_dump=peer + recorded("ht-wlan2-station.txt"))).snapshot()
    assert [station.station for station in snapshot.stations] == ["02:00:00:00:00:00"]


def test_iw_6_17_prints_beacons_of_the_access_point_deeper() -> None:
    # Made from station.c of iw 6.17, where this one field of a station has a link's two tabs.
    peer = "Station 02:00:00:00:07:00 (on wlan2)\n\ttx bitrate:\t6.0 MBit/s\n\tTDLS peer:\tyes\n"
    recent = recorded("ht-wlan2-station.txt").replace("\tbeacon rx:", "\t\tbeacon rx:")
    assert "\t\tbeacon rx:" in recent
    snapshot = IwSource("wlan2", client_tool(station_dump=peer + recent)).snapshot()
    assert [station.station for station in snapshot.stations] == ["02:00:00:00:00:00"]


def test_what_seldom_changes_is_seldom_asked() -> None:
    tool = client_tool()
    source = IwSource("wlan2", tool)
    for _ in range(2 * SLOW_EVERY):
        source.snapshot()
    assert sum(words.endswith("station dump") for words in tool.asked) == 2 * SLOW_EVERY
    assert sum(words.endswith("info") for words in tool.asked) == 2


def test_without_stations_the_kind_is_asked_again() -> None:
    tool = client_tool(
        info=recorded("nohostapd-wlan0-info.txt"), station_dump="", link=recorded("off-wlan1-link.txt")
    )
    source = IwSource("wlan0", tool)
    assert source.snapshot().role == "client"  # hostapd has ended
    tool.answers |= {
        "info": recorded("ht-wlan0-info.txt"),
        "station dump": recorded("ht-wlan0-station.txt"),
    }
    assert source.snapshot().role == "access_point"


def test_a_driver_without_station_dump_is_asked_for_its_link() -> None:
    tool = client_tool(station_dump=NOT_SUPPORTED, power_save=NOT_SUPPORTED)
    source = IwSource("wlan2", tool)
    for _ in range(2):
        snapshot = source.snapshot()
        assert (snapshot.power_save, snapshot.stations[0].tx.mcs, snapshot.stations[0].retries) == (
            None,
            8,
            None,
        )
    assert sum(words.endswith("station dump") for words in tool.asked) == 1


def test_a_client_whose_driver_lists_no_stations_is_asked_for_its_link() -> None:
    """Made: rtl8723bs, rtl8812AU and rtl8192eu answer `station dump` with nothing while associated."""
    tool = client_tool(station_dump="")
    source = IwSource("wlan2", tool)
    for _ in range(2):
        snapshot = source.snapshot()
        assert (snapshot.bssid, snapshot.stations[0].tx.mcs) == ("02:00:00:00:00:00", 8)
    tool.answers["link"] = recorded("off-wlan1-link.txt")
    assert source.snapshot().bssid is None


def test_an_access_point_without_clients_has_none() -> None:
    tool = client_tool(info=recorded("ht-wlan0-info.txt"), station_dump="")
    assert IwSource("wlan0", tool).snapshot().stations == ()
    assert not any(words.endswith("link") for words in tool.asked)


MLO_OWN = (
    "\tsignal:  \t0 dBm\n"
    "\ttx bitrate:\t576.4 MBit/s 160MHz EHT-MCS 2 EHT-NSS 2 EHT-GI 0\n"
    "\trx bitrate:\t576.4 MBit/s 160MHz EHT-MCS 2 EHT-NSS 2 EHT-GI 0\n"
    "\ttx retries:\t17\n"
)
MLO_LINKS = "".join(
    f"\n\tLink {number}:\n\t\taddress: 02:00:00:00:0{number}:01\n\t\tsignal:  \t-5{number} dBm\n"
    "\t\ttx bitrate:\t864.8 MBit/s 160MHz EHT-MCS 4 EHT-NSS 2 EHT-GI 0\n"
    "\t\trx bitrate:\t864.8 MBit/s 160MHz EHT-MCS 4 EHT-NSS 2 EHT-GI 0\n"
    "\t\ttx retries:\t3\n"
    for number in (0, 1)
)


@pytest.mark.parametrize("block", [MLO_OWN + MLO_LINKS, MLO_LINKS + MLO_OWN])
def test_what_is_told_of_links_is_not_the_stations(block: str) -> None:
    """Made from iw 6.17's station.c: blocks of a multi-link device, one a link."""
    (own,) = station_dump("Station 02:00:00:00:00:00 (on wlan0)\n" + block)
    assert (own.tx.phy_rate_mbps, own.rx.phy_rate_mbps, own.retries) == (576.4, 576.4, 17)
    assert own.rssi_dbm is None  # 0 dBm: each link has a signal of its own


def test_an_interface_that_went_and_came_back() -> None:
    tool = client_tool()
    source = IwSource("wlan2", tool)
    source.snapshot()
    kept, tool.answers = tool.answers, {"x": NO_DEVICE}
    with raises(InterfaceGone):
        source.snapshot()
    tool.answers = kept
    assert source.snapshot().stations


def test_any_other_failure_is_one_sentence() -> None:
    source = IwSource(
        "wlan2", client_tool(station_dump=CompletedTool(156, "", "command failed: Network is down (-100)\n"))
    )
    with raises(ReadFailed) as caught:
        source.snapshot()
    assert not isinstance(caught.value, InterfaceGone)
