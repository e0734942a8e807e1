# SPDX-License-Identifier: Apache-2.0
"""`iw phy`, `iw dev X info` and `iw reg get`, verbatim (data/state/README.md), and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netjoule_radio.iw_dev import country, parse_iw_dev_info
from netjoule_radio.iw_phy import ChannelState, PhyCapabilities, parse_iw_phy

DATA = Path(__file__).parent / "data"
US = (DATA / "iw_phy_hwsim_us.txt").read_text()


def radio(name: str) -> PhyCapabilities:
    return parse_iw_phy((DATA / name).read_text())[0]


def test_hwsim() -> None:
    second, first = parse_iw_phy(US)
    assert (first.name, first.index, second.name, second.index) == ("phy0", 0, "phy1", 1)
    assert {"AP", "managed", "monitor"} <= first.modes
    assert first.sets_bitrate_mask
    assert first.protects_management_frames
    assert first.sae_in_driver_or_kernel
    five = first.bands["5"]
    assert (five.ht_capab, five.vht_capab) == (0x107E, 0x038004FA)
    assert (five.ht_rx_streams, five.vht_rx_streams, five.vht_rx_mcs) == (2, 8, (9,) * 8)
    assert (five.ht_rx_stbc, five.vht_rx_stbc) == (0, 4)
    assert (five.vht_max_mpdu, five.vht_max_ampdu_exponent) == (11454, 7)
    assert five.widths_mhz == (20, 40, 80, 160)
    assert first.bands["2.4"].widths_mhz == (20, 40)
    assert first.bands["2.4"].vht_capab is None


def test_channels_under_a_country() -> None:
    five = radio("iw_phy_hwsim_us.txt").bands["5"]
    assert five.channel(36) == ChannelState(36, 5180, 23.0)
    assert five.channel(52) == ChannelState(52, 5260, 24.0, radar=True)
    assert five.channel(169) == ChannelState(169, 5845, 27.0, no_ir=True)
    assert five.channel(178) == ChannelState(178, 5890, None, disabled=True)
    assert five.channel(1) is None
    # 6 GHz has a channel 149 too.
    assert five.channel(149) == ChannelState(149, 5745, 30.0)


def test_channels_under_the_world_domain() -> None:
    world = radio("iw_phy_hwsim_world.txt")
    assert world.bands["5"].channel(36) == ChannelState(36, 5180, 20.0, no_ir=True)
    assert world.bands["5"].channel(52) == ChannelState(52, 5260, 20.0, no_ir=True, radar=True)
    assert world.bands["2.4"].channel(1) == ChannelState(1, 2412, 20.0)


def test_radio_with_two_antennas_and_no_802_11ac() -> None:
    five = radio("iw_phy_ath9k_made_up.txt").bands["5"]
    assert (five.ht_rx_streams, five.vht_rx_streams, five.ht_rx_stbc, five.widths_mhz) == (2, 0, 1, (20, 40))
    assert five.channel(149) == ChannelState(149, 5745, None, disabled=True)


def test_antennas_are_those_of_the_poorer_direction() -> None:
    text = (DATA / "iw_phy_ath9k_made_up.txt").read_text()
    for mask, used in (("TX 0x3 RX 0x3", 2), ("TX 0x1 RX 0x3", 1), ("TX 0x2 RX 0x2", 1)):
        (found,) = parse_iw_phy(
            text.replace("Configured Antennas: TX 0x3 RX 0x3", f"Configured Antennas: {mask}")
        )
        assert (found.antennas, found.antennas_used) == (2, used)
    untold = radio("iw_phy_hwsim_us.txt")
    assert (untold.antennas, untold.antennas_used) == (0, 0)


def test_words_of_other_versions_of_iw() -> None:
    text = "Wiphy phy3\n\tBand 2:\n\t\tCapabilities: 0x1ff\n\t\tHT RX MCS rate indexes supported: 0-15, 32\n"
    text += "\t\tFrequencies:\n\t\t\t* 5180.0 MHz [36] (17.0 dBm) (passive scanning, no IBSS)\n"
    (old,) = parse_iw_phy(text)
    assert old.index is None
    assert old.bands["5"].ht_rx_streams == 2
    assert old.bands["5"].channel(36) == ChannelState(36, 5180, 17.0, no_ir=True)


def test_no_radio() -> None:
    assert parse_iw_phy("") == ()
    assert parse_iw_phy("nl80211 not found.\n") == ()


@settings(deadline=None)  # a busy host is no defect
@given(st.integers(0, US.count("\n")), st.integers(0, 200))
@example(1347, 9)  # joins two lists of streams
def test_cut_and_thinned_text_never_breaks_the_reader(start: int, count: int) -> None:
    lines = US.splitlines(keepends=True)
    for found in parse_iw_phy("".join(lines[:start] + lines[start + count :])):
        assert set(found.bands) <= {"2.4", "5"}
        assert all(band.vht_rx_streams <= 8 for band in found.bands.values())


@settings(deadline=None)  # a busy host is no defect
@given(st.text(alphabet="Wiphy \t\n*:0x[]()BandMHz19", max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(found.name for found in parse_iw_phy(text))


def test_interface() -> None:
    state = parse_iw_dev_info((DATA / "state/vht80/iw_dev_ap.txt").read_text())
    assert state is not None
    assert (state.name, state.wiphy, state.type, state.ssid) == ("wlan0", 0, "AP", "netjoule-modern")
    assert (state.frequency_mhz, state.width_mhz, state.centre_frequency_mhz, state.tx_power_dbm) == (
        5180,
        80,
        5210,
        23.0,
    )
    idle = parse_iw_dev_info("Interface wlan1\n\tifindex 3\n\ttype managed\n\twiphy 1\n\ttxpower 0.00 dBm\n")
    assert idle is not None
    assert (idle.frequency_mhz, idle.width_mhz, idle.ssid) == (None, None, None)
    assert parse_iw_dev_info("command failed: No such device (-19)") is None


@pytest.mark.parametrize(("file", "found"), [("iw_reg_us.txt", "US"), ("iw_reg_world.txt", "00")])
def test_country(file: str, found: str) -> None:
    assert country((DATA / file).read_text(), 0) == found


def test_country_of_a_radio_that_manages_itself() -> None:
    text = (
        DATA / "iw_reg_us.txt"
    ).read_text() + "phy#0 (self-managed)\ncountry DE: DFS-ETSI\n\t(2402 - 2437 @ 40)\n"
    assert (country(text, 0), country(text, 1), country(text), country("")) == ("DE", "US", "US", None)
