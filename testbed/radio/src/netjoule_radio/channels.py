# SPDX-License-Identifier: Apache-2.0
"""Channels of 2.4 and 5 GHz: frequency, the secondary of a 40 MHz pair, the block's centre, radar duty.

Source: IEEE Std 802.11-2020 Annex E (global operating classes 115-129) and hostapd.conf (HT40+ on 36, 44,
52 ..., HT40- on 40, 48, 56 ...). Channel numbers here mean 2.4 GHz from 1 to 14, else 5 GHz.
"""

from __future__ import annotations

from typing import Literal

Band = Literal["2.4", "5"]

CHANNELS_24_GHZ = tuple(range(1, 15))
# First and last 20 MHz channel of each block of 40 MHz pairs.
_BLOCKS_5_GHZ = ((36, 64), (100, 144), (149, 161))
_ALONE_5_GHZ = (165,)
CHANNELS_5_GHZ = (*(c for first, last in _BLOCKS_5_GHZ for c in range(first, last + 1, 4)), *_ALONE_5_GHZ)
_DFS = frozenset(range(52, 65, 4)) | frozenset(range(100, 145, 4))
_WEATHER = frozenset({120, 124, 128})  # 5600-5650 MHz
_AVAILABILITY_CHECK_S = 60
_WEATHER_AVAILABILITY_CHECK_S = 600


class ChannelError(ValueError):
    """A channel or width that does not exist; the message tells which do."""


def band_of(channel: int) -> Band:
    """Band of a channel number; ChannelError when no band has it."""
    if channel in CHANNELS_24_GHZ:
        return "2.4"
    if channel in CHANNELS_5_GHZ:
        return "5"
    raise ChannelError(
        f"there is no channel {channel}; use 1-13 (2.4 GHz) or one of {_listed(CHANNELS_5_GHZ)}"
    )


def frequency_mhz(channel: int) -> int:
    """Centre of the 20 MHz channel in MHz."""
    if band_of(channel) == "5":
        return 5000 + 5 * channel
    return 2484 if channel == 14 else 2407 + 5 * channel


def block(channel: int, width_mhz: int) -> tuple[int, ...]:
    """The 20 MHz channels that a network of this width with this primary channel takes, lowest first.

    ChannelError when the band has no such block around the channel.
    """
    band = band_of(channel)
    if width_mhz == 20:
        return (channel,)
    if band == "2.4":
        if width_mhz == 40 and channel <= 13:
            # Above up to 7, below from 8 on: both ends stay within channels 1-11, which every country allows.
            return (channel, channel + 4) if channel <= 7 else (channel - 4, channel)
        raise ChannelError(
            f"channel {channel} (2.4 GHz) has no {width_mhz} MHz; use 20 or 40 MHz on channels 1-13"
        )
    if found := _block_5_ghz(channel, width_mhz):
        return found
    raise ChannelError(
        f"channel {channel} has no {width_mhz} MHz block; at {width_mhz} MHz use one of "
        f"{_listed(channels_with(width_mhz)) or 'the widths 20, 40, 80, 160 MHz'}"
    )


def channels_with(width_mhz: int) -> tuple[int, ...]:
    """The 5 GHz channels that can be primary of a block of this width."""
    return tuple(channel for channel in CHANNELS_5_GHZ if _block_5_ghz(channel, width_mhz))


def _block_5_ghz(channel: int, width_mhz: int) -> tuple[int, ...]:
    """As `block`, empty where there is none."""
    if width_mhz == 20:
        return (channel,)
    span = width_mhz // 5  # channel numbers a block takes
    for first, last in _BLOCKS_5_GHZ if width_mhz in (40, 80, 160) else ():
        start = first + (channel - first) // span * span
        if first <= channel <= last and start + span - 4 <= last:
            return tuple(range(start, start + span, 4))
    return ()


def secondary(channel: int, width_mhz: int) -> int:
    """Side of the secondary channel of the 40 MHz pair: 1 above, -1 below, 0 at 20 MHz.

    At 80 and 160 MHz it is the side within the primary pair.
    """
    if width_mhz == 20:
        return 0
    block(channel, width_mhz)
    return 1 if block(channel, 40)[0] == channel else -1


def centre_channel(channel: int, width_mhz: int) -> int:
    """Channel number of the block's centre (hostapd's vht_oper_centr_freq_seg0_idx): 42 for 36 at 80 MHz."""
    taken = block(channel, width_mhz)
    return (taken[0] + taken[-1]) // 2


def centre_frequency_mhz(channel: int, width_mhz: int) -> int:
    """Centre of the block in MHz."""
    taken = block(channel, width_mhz)
    return (frequency_mhz(taken[0]) + frequency_mhz(taken[-1])) // 2


def dfs_channels(channel: int, width_mhz: int) -> tuple[int, ...]:
    """Channels of the block on which radar has precedence in most countries (52-64, 100-144)."""
    return tuple(c for c in block(channel, width_mhz) if c in _DFS)


def availability_check_s(channel: int, width_mhz: int) -> int:
    """Seconds an access point must listen for radar before it sends; 0 without radar duty."""
    radar = dfs_channels(channel, width_mhz)
    if not radar:
        return 0
    return _WEATHER_AVAILABILITY_CHECK_S if _WEATHER & set(radar) else _AVAILABILITY_CHECK_S


def channels_without_dfs(width_mhz: int) -> tuple[int, ...]:
    """The 5 GHz channels whose block of this width holds no radar channel."""
    return tuple(c for c in channels_with(width_mhz) if not dfs_channels(c, width_mhz))


def _listed(channels: tuple[int, ...]) -> str:
    return ", ".join(map(str, channels))
