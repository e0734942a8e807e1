# SPDX-License-Identifier: Apache-2.0
"""Rates against the tables of IEEE Std 802.11, and modes found back from rates."""

from __future__ import annotations

import pytest
from golden_sentences import raises
from hypothesis import given, settings
from hypothesis import strategies as st

from netjoule_radio.rates import (
    LEGACY_RATES_MBPS,
    PhyMode,
    Standard,
    is_standard,
    modes,
    modes_of,
    phy_rate_mbps,
    printed_rate,
    rate_matches,
)

# One-stream rates in Mb/s, long/short guard interval, MCS 0 upwards; as in the standard's tables.
TABLE = {
    20: "6.5/7.2 13/14.4 19.5/21.7 26/28.9 39/43.3 52/57.8 58.5/65 65/72.2 78/86.7",
    40: "13.5/15 27/30 40.5/45 54/60 81/90 108/120 121.5/135 135/150 162/180 180/200",
    80: "29.3/32.5 58.5/65 87.8/97.5 117/130 175.5/195 234/260 263.3/292.5 292.5/325 351/390 390/433.3",
    160: "58.5/65 117/130 175.5/195 234/260 351/390 468/520 526.5/585 585/650 702/780 780/866.7",
}
TWO_STREAMS = {
    40: "27/30 54/60 81/90 108/120 162/180 216/240 243/270 270/300 324/360 360/400",
    80: "58.5/65 117/130 175.5/195 234/260 351/390 468/520 526.5/585 585/650 702/780 780/866.7",
}
EVERY = list(modes(widths=(20, 40, 80, 160)))
ROWS = [
    (width, streams, mcs, guard, float(value))
    for streams, table in ((1, TABLE), (2, TWO_STREAMS))
    for width, line in table.items()
    for mcs, pair in enumerate(line.split())
    for guard, value in zip((800, 400), pair.split("/"), strict=True)
]


@pytest.mark.parametrize(("width", "streams", "mcs", "guard", "mbps"), ROWS)
def test_rate_is_the_tables(width: int, streams: int, mcs: int, guard: int, mbps: float) -> None:
    assert phy_rate_mbps(PhyMode("vht", mcs, streams, width, guard)) == pytest.approx(mbps, abs=0.051)
    if mcs < 8 and width <= 40:
        ht = PhyMode("ht", mcs + 8 * (streams - 1), streams, width, guard)
        assert phy_rate_mbps(ht) == pytest.approx(mbps, abs=0.051)
        assert printed_rate(ht) == pytest.approx(mbps)


@pytest.mark.parametrize("mcs", range(32))
@pytest.mark.parametrize("width", [20, 40])
def test_every_ht_mcs_is_its_streams_times_one_stream(mcs: int, width: int) -> None:
    streams = 1 + mcs // 8
    one = phy_rate_mbps(PhyMode("ht", mcs % 8, 1, width))
    assert phy_rate_mbps(PhyMode("ht", mcs, streams, width)) == pytest.approx(streams * one)


def test_seed_rates_are_exact() -> None:
    assert phy_rate_mbps(PhyMode("ht", 10, 2, 40)) == 81
    assert phy_rate_mbps(PhyMode("ht", 12, 2, 40)) == 162
    assert phy_rate_mbps(PhyMode("ht", 13, 2, 40)) == 216
    assert printed_rate(PhyMode("ht", 13, 2, 40, 400)) == 240


# As Linux prints them: rounded before they are multiplied with the streams.
@pytest.mark.parametrize(
    ("mode", "printed"),
    [
        (PhyMode("vht", 9, 2, 80, 400), 866.7),
        (PhyMode("vht", 0, 1, 80), 29.3),
        (PhyMode("vht", 0, 2, 80), 58.6),
        (PhyMode("vht", 0, 3, 80), 87.9),
        (PhyMode("vht", 9, 4, 80, 400), 1733.3),
        (PhyMode("vht", 9, 1, 20), 86.7),
        (PhyMode("ht", 15, 2, 20, 400), 144.4),
        (PhyMode("ht", 15, 2, 40, 400), 300.0),
    ],
)
def test_printed_rate_is_linuxs(mode: PhyMode, printed: float) -> None:
    assert printed_rate(mode) == printed


@pytest.mark.parametrize(
    ("width", "mcs", "streams", "exists"),
    [(20, 9, 1, False), (20, 9, 2, False), (20, 9, 3, True), (20, 9, 4, False), (20, 8, 1, True)]
    + [(80, 6, 3, False), (80, 6, 2, True), (80, 9, 4, True), (160, 9, 3, False), (160, 9, 4, True)]
    + [(40, 9, n, True) for n in range(1, 5)],
)
def test_vht_modes_that_the_standard_leaves_out(width: int, mcs: int, streams: int, exists: bool) -> None:
    assert is_standard(PhyMode("vht", mcs, streams, width)) is exists


def test_coded_bits_divide_in_every_standard_mode_with_one_encoder() -> None:
    """Why some are left out: bits per symbol must be whole (below 600 Mb/s there is one encoder)."""
    for mode in EVERY:
        if mode.standard == "vht" and mode.guard_interval_ns == 400 and phy_rate_mbps(mode) <= 600:
            bits_per_symbol = phy_rate_mbps(mode) * 3.6
            assert bits_per_symbol == pytest.approx(round(bits_per_symbol)), str(mode)


def test_number_of_modes() -> None:
    count = {s: sum(m.standard == s for m in EVERY) for s in ("legacy", "ht", "vht")}
    # HT 32 MCS x 2 widths x 2 guard intervals; VHT 10 x 4 x 4 x 2 without the five left out.
    assert count == {"legacy": 1, "ht": 128, "vht": 320 - 2 * 5}


def test_81_mbps_is_ambiguous_at_40_mhz() -> None:
    found = modes_of(81.0, standards=("ht",))
    assert [(m.mcs, m.streams, m.width_mhz, m.guard_interval_ns) for m in found] == [
        (4, 1, 40, 800),
        (10, 2, 40, 800),
        (17, 3, 40, 800),
    ]
    assert [m.mcs for m in modes_of(81.0, standards=("ht",), max_streams=2)] == [4, 10]


def test_216_mbps_is_mcs_13_with_long_guard_interval() -> None:
    assert [m.mcs for m in modes_of(216.0, standards=("ht",), max_streams=2)] == [13]
    assert not rate_matches(216.0, PhyMode("ht", 13, 2, 40, 400))


@pytest.mark.parametrize("rate", LEGACY_RATES_MBPS)
def test_legacy_rates(rate: float) -> None:
    assert modes_of(rate)[0] == PhyMode("legacy", None, None, 20)


@pytest.mark.parametrize("rate", [0.0, 217.3, -1.0, 1e9])
def test_rate_of_nothing(rate: float) -> None:
    assert modes_of(rate) == ()


@settings(deadline=None)  # a busy host is no defect
@given(st.sampled_from([m for m in EVERY if m.standard != "legacy"]))
def test_every_mode_is_found_back_from_what_is_printed(mode: PhyMode) -> None:
    assert mode in modes_of(printed_rate(mode), widths=(20, 40, 80, 160))
    assert rate_matches(phy_rate_mbps(mode), mode)


@settings(deadline=None)  # a busy host is no defect
@given(st.floats(0, 4000), st.sampled_from(EVERY))
def test_a_rate_off_by_more_than_rounding_never_matches(rate: float, mode: PhyMode) -> None:
    if mode.standard != "legacy" and rate_matches(rate, mode):
        # Rounding before multiplying costs at most 0.05 for each stream, a ninth more with short guard.
        assert abs(rate - phy_rate_mbps(mode)) <= 0.1 + 0.05 * 4 * 10 / 9 + 0.05 + 1e-6


@pytest.mark.parametrize(
    ("standard", "mcs", "streams", "width", "guard"),
    [
        ("ht", 32, 5, 40, 800),
        ("ht", 10, 1, 40, 800),
        ("ht", 7, 1, 80, 800),
        ("vht", 10, 1, 80, 800),
        ("vht", 9, 0, 80, 800),
        ("vht", 9, 9, 80, 800),
        ("vht", -1, 1, 80, 800),
        ("vht", None, 1, 80, 800),
        ("vht", 1, 1, 80, 1600),
        ("legacy", 3, None, 20, 800),
        ("legacy", None, None, 40, 800),
    ],
)
def test_modes_that_contradict_themselves(
    standard: Standard, mcs: int | None, streams: int | None, width: int, guard: int
) -> None:
    with raises(ValueError):
        PhyMode(standard, mcs, streams, width, guard)
