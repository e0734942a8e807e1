# SPDX-License-Identifier: Apache-2.0
"""Wanted rates -> the words behind `iw dev X set bitrates`.

The mask binds only what its own end sends, so both ends get it; it says nothing about the width. Whether it
holds is seen in the receiver's `rx bitrate`: the kernel has no command that reads a mask back.
"""

from __future__ import annotations

from netjoule_radio.channels import band_of
from netjoule_radio.settings import WifiSettings


def bitrate_words(wifi: WifiSettings, *, streams: int) -> list[str]:
    """Arguments after `set bitrates`; none lifts every limit. streams: what the radio has."""
    rates, band = wifi.rates, band_of(wifi.channel)
    if rates.automatic:
        return []
    words = _ht(wifi, band, streams) if wifi.mode == "11n" else _vht(wifi, band, streams)
    if rates.guard_interval:
        words.append(f"{'lgi' if rates.guard_interval == 'long' else 'sgi'}-{band}")
    return words


def _ht(wifi: WifiSettings, band: str, streams: int) -> list[str]:
    most = min(streams, wifi.rates.streams or streams)
    indices = wifi.rates.mcs or (range(8 * most) if wifi.rates.streams else ())
    return [f"ht-mcs-{band}", *map(str, indices)] if indices else []


def _vht(wifi: WifiSettings, band: str, streams: int) -> list[str]:
    most = min(streams, wifi.rates.streams or streams)
    if not wifi.rates.mcs:
        return [f"vht-mcs-{band}", *(f"{n}:0-9" for n in range(1, most + 1))] if wifi.rates.streams else []
    wanted = ",".join(map(str, wifi.rates.mcs))
    first = most if wifi.rates.streams else 1
    return [f"vht-mcs-{band}", *(f"{n}:{wanted}" for n in range(first, most + 1))]
