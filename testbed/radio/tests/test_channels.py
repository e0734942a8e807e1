# SPDX-License-Identifier: Apache-2.0
"""Channel arithmetic against the channel plan of 5 and 2.4 GHz."""

from __future__ import annotations

import pytest
from golden_sentences import raises
from hypothesis import given, settings
from hypothesis import strategies as st

from netjoule_radio.channels import (
    CHANNELS_5_GHZ,
    ChannelError,
    availability_check_s,
    band_of,
    block,
    centre_channel,
    centre_frequency_mhz,
    channels_with,
    channels_without_dfs,
    dfs_channels,
    frequency_mhz,
    secondary,
)

CENTRES = {
    40: {
        36: 38,
        44: 46,
        52: 54,
        60: 62,
        100: 102,
        108: 110,
        116: 118,
        124: 126,
        132: 134,
        140: 142,
        149: 151,
        157: 159,
    },
    80: {36: 42, 52: 58, 100: 106, 116: 122, 132: 138, 149: 155},
    160: {36: 50, 100: 114},
}


@pytest.mark.parametrize(
    ("width", "first", "centre"), [(w, f, c) for w, row in CENTRES.items() for f, c in row.items()]
)
def test_centre_index_of_every_block(width: int, first: int, centre: int) -> None:
    for primary in range(first, first + width // 5, 4):
        assert centre_channel(primary, width) == centre
        assert centre_frequency_mhz(primary, width) == 5000 + 5 * centre
        assert block(primary, width) == tuple(range(first, first + width // 5, 4))


@pytest.mark.parametrize("channel", [36, 44, 52, 60, 100, 108, 116, 124, 132, 140, 149, 157, 1, 6, 7])
def test_secondary_above(channel: int) -> None:
    assert secondary(channel, 40) == 1


@pytest.mark.parametrize("channel", [40, 48, 56, 64, 104, 112, 120, 128, 136, 144, 153, 161, 8, 11, 13])
def test_secondary_below(channel: int) -> None:
    assert secondary(channel, 40) == -1


def test_frequencies() -> None:
    assert [frequency_mhz(c) for c in (1, 13, 14, 36, 165)] == [2412, 2472, 2484, 5180, 5825]
    assert centre_frequency_mhz(36, 40) == 5190
    assert secondary(36, 20) == 0


@pytest.mark.parametrize(
    ("channel", "width"),
    [(165, 40), (165, 80), (149, 160), (132, 160), (36, 60), (14, 40), (6, 80), (0, 20), (38, 40)],
)
def test_block_that_does_not_exist_says_which_do(channel: int, width: int) -> None:
    with raises(ChannelError):
        block(channel, width)


def test_radar() -> None:
    assert channels_without_dfs(40) == channels_without_dfs(80) == (36, 40, 44, 48, 149, 153, 157, 161)
    assert channels_without_dfs(160) == ()
    assert dfs_channels(36, 80) == ()
    assert dfs_channels(36, 160) == (52, 56, 60, 64)
    assert [availability_check_s(c, w) for c, w in ((36, 80), (52, 40), (116, 80), (120, 20))] == [
        0,
        60,
        600,
        600,
    ]


@settings(deadline=None)  # a busy host is no defect
@given(st.sampled_from(CHANNELS_5_GHZ), st.sampled_from([20, 40, 80, 160]))
def test_block_holds_its_primary_and_lies_within_one_wider_block(channel: int, width: int) -> None:
    if channel not in channels_with(width):
        with pytest.raises(ChannelError):
            block(channel, width)
        return
    own = block(channel, width)
    assert channel in own
    assert len(own) == width // 20
    assert band_of(channel) == "5"
    # A block is the same from each of its channels, and narrower ones nest in it.
    assert all(block(other, width) == own for other in own)
    assert width == 20 or set(block(channel, width // 2)) < set(own)
