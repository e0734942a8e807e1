# SPDX-License-Identifier: Apache-2.0
"""Capabilities wanted x capabilities of the radio -> hostapd's ht_capab and vht_capab.

hostapd refuses what the radio lacks, so every word is checked against `iw phy`. Announced is all that the
radio can receive. What changes how it sends (TX-STBC, beamforming, greenfield) is left out: two racks with
different drivers then send alike, and TX-STBC gives trouble with some drivers.
"""

from __future__ import annotations

from netjoule_radio.channels import Band
from netjoule_radio.iw_phy import BandCapabilities, Ht, Vht

_HT_STBC = {1: "RX-STBC1", 2: "RX-STBC12", 3: "RX-STBC123"}
_VHT_STBC = {1: "RX-STBC-1", 2: "RX-STBC-12", 3: "RX-STBC-123", 4: "RX-STBC-1234"}


def ht_capab(radio: BandCapabilities, *, band: Band, secondary: int, short_guard: bool) -> str:
    """Value of hostapd's ht_capab, such as "[HT40+][SHORT-GI-20][SHORT-GI-40]".

    secondary: 1 above, -1 below, 0 for 20 MHz. short_guard: whether 400 ns may be used where the radio can.
    """
    has = Ht(radio.ht_capab or 0)
    words = ["LDPC"] if Ht.LDPC in has else []
    if secondary:
        words.append("HT40+" if secondary > 0 else "HT40-")
    if short_guard and Ht.SHORT_GI_20 in has:
        words.append("SHORT-GI-20")
    if short_guard and secondary and Ht.SHORT_GI_40 in has:
        words.append("SHORT-GI-40")
    if radio.ht_rx_stbc:
        words.append(_HT_STBC[radio.ht_rx_stbc])
    if Ht.MAX_AMSDU_7935 in has:
        words.append("MAX-AMSDU-7935")
    if band == "2.4" and secondary and Ht.DSSS_CCK_40 in has:
        words.append("DSSS_CCK-40")
    return _bracketed(words)


def vht_capab(radio: BandCapabilities, *, width_mhz: int, short_guard: bool) -> str:
    """Value of hostapd's vht_capab, such as "[MAX-MPDU-11454][SHORT-GI-80][MAX-A-MPDU-LEN-EXP7]"."""
    has = Vht(radio.vht_capab or 0)
    words = [f"MAX-MPDU-{radio.vht_max_mpdu}"] if radio.vht_max_mpdu > 3895 else []
    if width_mhz == 160:
        words.append("VHT160")
    if Vht.RX_LDPC in has:
        words.append("RXLDPC")
    if short_guard and width_mhz >= 80 and Vht.SHORT_GI_80 in has:
        words.append("SHORT-GI-80")
    if short_guard and width_mhz == 160 and Vht.SHORT_GI_160 in has:
        words.append("SHORT-GI-160")
    if radio.vht_rx_stbc in _VHT_STBC:
        words.append(_VHT_STBC[radio.vht_rx_stbc])
    if radio.vht_max_ampdu_exponent:
        words.append(f"MAX-A-MPDU-LEN-EXP{radio.vht_max_ampdu_exponent}")
    return _bracketed(words)


def _bracketed(words: list[str]) -> str:
    return "".join(f"[{word}]" for word in words)
