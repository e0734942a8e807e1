# SPDX-License-Identifier: Apache-2.0
"""Wanted rates -> the words behind `iw dev X set bitrates`.

The mask binds only what its own end sends, so both ends get it; it says nothing about the width. Whether it
holds is seen in the receiver's `rx bitrate`: no command of the kernel reads a mask back. Rates of a
kind that is not named stay open (nl80211_parse_tx_bitrate_mask), and drivers such as ath10k take the most
streams of any kind; so with 802.11ac HT is limited too. Legacy rates stay: the kernel wants a basic one left.
"""

from __future__ import annotations

from netjoule_radio.channels import band_of
from netjoule_radio.settings import WifiSettings


def bitrate_words(wifi: WifiSettings, *, ht_streams: int, vht_streams: int) -> list[str]:
    """Arguments after `set bitrates`; none lifts every limit. ht_streams, vht_streams: what the radio has."""
    rates, band = wifi.rates, band_of(wifi.channel)
    if rates.automatic:
        return []
    words = _ht(wifi, band, ht_streams) if wifi.mode == "11n" else _vht(wifi, band, ht_streams, vht_streams)
    if rates.guard_interval:
        words.append(f"{'lgi' if rates.guard_interval == 'long' else 'sgi'}-{band}")
    return words


def _ht(wifi: WifiSettings, band: str, streams: int) -> list[str]:
    indices = wifi.rates.mcs or _ht_indices(wifi, streams)
    return [f"ht-mcs-{band}", *map(str, indices)] if indices else []


def _ht_indices(wifi: WifiSettings, streams: int) -> range:
    """All indices of the allowed streams; none without a limit."""
    return range(8 * min(streams, wifi.rates.streams or 0))


def _vht(wifi: WifiSettings, band: str, ht_streams: int, vht_streams: int) -> list[str]:
    rates, ht = wifi.rates, f"ht-mcs-{band}"
    most = min(vht_streams, rates.streams or vht_streams)
    if rates.mcs:
        wanted, first = ",".join(map(str, rates.mcs)), most if rates.streams else 1
        return [ht, f"vht-mcs-{band}", *(f"{n}:{wanted}" for n in range(first, most + 1))]
    if not rates.streams:
        return []
    indices = map(str, _ht_indices(wifi, ht_streams))
    return [ht, *indices, f"vht-mcs-{band}", *(f"{n}:0-9" for n in range(1, most + 1))]
