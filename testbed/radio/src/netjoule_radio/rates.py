# SPDX-License-Identifier: Apache-2.0
"""PHY rates of 802.11n (HT) and 802.11ac (VHT): rate from mode, and which modes a rate may stand for.

    rate = streams x data subcarriers x bits per subcarrier x coding rate / symbol time

Source: IEEE Std 802.11-2020, sections 19.5 (HT-MCS) and 21.5 (VHT-MCS), BCC coding. What Linux prints is
rounded on the way (net/wireless/util.c, cfg80211_calculate_bitrate): `printed_rate` does the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Standard = Literal["ht", "vht", "legacy"]

LONG_GUARD_NS = 800
SHORT_GUARD_NS = 400
HT_STREAMS = 4
VHT_STREAMS = 8
WIDTHS_MHZ = {"ht": (20, 40), "vht": (20, 40, 80, 160), "legacy": (20,)}
LEGACY_RATES_MBPS = (1.0, 2.0, 5.5, 6.0, 9.0, 11.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0)

_DATA_SUBCARRIERS = {20: 52, 40: 108, 80: 234, 160: 468}
_SYMBOL_WITHOUT_GUARD_NS = 3200
# Modulation and coding of one stream: bits per subcarrier x coding rate, by MCS 0-9 (HT knows 0-7).
_BITS = tuple(
    Fraction(bits) * Fraction(coding)
    for bits, coding in (
        (1, "1/2"), (2, "1/2"), (2, "3/4"), (4, "1/2"), (4, "3/4"),
        (6, "2/3"), (6, "3/4"), (6, "5/6"), (8, "3/4"), (8, "5/6"),
    )
)  # fmt: skip
# (width, MCS): stream counts whose coded bits do not divide among the encoders; the standard's tables leave
# them out. Some drivers report them all the same, so they have a rate here and `is_standard` says no.
_VHT_EXCLUDED = {
    (20, 9): frozenset({1, 2, 4, 5, 7, 8}),
    (80, 6): frozenset({3, 7}),
    (80, 9): frozenset({6}),
    (160, 9): frozenset({3}),
}


@dataclass(frozen=True)
class PhyMode:
    """How one frame is sent. mcs: HT 0-31 (its streams are 1 + mcs // 8), VHT 0-9, legacy None.

    streams: spatial streams, legacy None. width_mhz: 20, 40, 80 or 160. guard_interval_ns: 800 or 400.
    ValueError when the parts contradict each other.
    """

    standard: Standard
    mcs: int | None
    streams: int | None
    width_mhz: int
    guard_interval_ns: int = LONG_GUARD_NS

    def __post_init__(self) -> None:
        fault = _fault(self)
        if fault:
            raise ValueError(f"{self.standard} mode: {fault}")

    def __str__(self) -> str:
        if self.standard == "legacy":
            return "legacy"
        streams = "" if self.standard == "ht" else f" {self.streams}SS"
        guard = "short" if self.guard_interval_ns == SHORT_GUARD_NS else "long"
        return f"{self.standard.upper()} MCS {self.mcs}{streams} {self.width_mhz} MHz {guard} guard interval"


def _fault(mode: PhyMode) -> str | None:
    if mode.width_mhz not in WIDTHS_MHZ[mode.standard]:
        return f"width {mode.width_mhz} MHz is not one of {WIDTHS_MHZ[mode.standard]}"
    if mode.guard_interval_ns not in (LONG_GUARD_NS, SHORT_GUARD_NS):
        return f"guard interval {mode.guard_interval_ns} ns is neither 800 nor 400"
    if mode.standard == "legacy":
        return None if mode.mcs is None and mode.streams is None else "has neither MCS nor streams"
    if mode.mcs is None or mode.streams is None:
        return "needs MCS and streams"
    highest, streams = (31, (1 + mode.mcs // 8,)) if mode.standard == "ht" else (9, range(1, VHT_STREAMS + 1))
    if 0 <= mode.mcs <= highest and mode.streams in streams:
        return None
    return f"MCS {mode.mcs} with {_counted(mode.streams)} does not exist"


def _counted(streams: int) -> str:
    return f"{streams} stream" if streams == 1 else f"{streams} streams"


def is_standard(mode: PhyMode) -> bool:
    """Whether the standard has this mode: it leaves out e.g. VHT MCS 9 at 20 MHz with one stream."""
    if mode.standard != "vht" or mode.mcs is None:
        return True
    return mode.streams not in _VHT_EXCLUDED.get((mode.width_mhz, mode.mcs), frozenset())


def _exact_mbps(mode: PhyMode) -> Fraction:
    if mode.mcs is None or mode.streams is None:
        raise ValueError("a legacy mode has no rate of its own: LEGACY_RATES_MBPS lists what it may be")
    index = mode.mcs % 8 if mode.standard == "ht" else mode.mcs
    bits_per_symbol = _DATA_SUBCARRIERS[mode.width_mhz] * _BITS[index] * mode.streams
    return bits_per_symbol * 1000 / (_SYMBOL_WITHOUT_GUARD_NS + mode.guard_interval_ns)


def phy_rate_mbps(mode: PhyMode) -> float:
    """Rate in Mb/s, unrounded: data bits per symbol / symbol time. ValueError for a legacy mode."""
    return float(_exact_mbps(mode))


def _tenths(value: Fraction) -> Fraction:
    """Round to 0.1, halves upwards."""
    return Fraction(int(value * 10 + Fraction(1, 2)), 10)


def printed_rate(mode: PhyMode) -> float:
    """Rate in Mb/s as kernel, iw and iwconfig print it.

    Linux rounds the one-stream long-guard rate to 0.1 before it multiplies: VHT MCS 0 at 80 MHz with two
    streams prints as 58.6, though 58.5 is sent.
    """
    if mode.mcs is None or mode.streams is None:
        raise ValueError("a legacy mode has no rate of its own: LEGACY_RATES_MBPS lists what it may be")
    index = mode.mcs % 8 if mode.standard == "ht" else mode.mcs
    single = _tenths(_exact_mbps(PhyMode("vht", index, 1, mode.width_mhz)))
    rate = single * mode.streams
    if mode.guard_interval_ns == SHORT_GUARD_NS:
        rate = rate * 10 / 9
    return float(_tenths(rate))


def rate_matches(rate_mbps: float, mode: PhyMode, *, tolerance_mbps: float = 0.1) -> bool:
    """Whether a printed rate can be this mode's: within the tolerance of the exact or of the printed rate."""
    allowed = tolerance_mbps + 1e-9
    if mode.standard == "legacy":
        return any(abs(rate_mbps - legacy) <= allowed for legacy in LEGACY_RATES_MBPS)
    return any(abs(rate_mbps - own) <= allowed for own in (phy_rate_mbps(mode), printed_rate(mode)))


def modes(
    *,
    widths: tuple[int, ...] = (20, 40),
    standards: tuple[Standard, ...] = ("legacy", "ht", "vht"),
    max_streams: int = 4,
) -> Iterator[PhyMode]:
    """Every mode of the standards at these widths (MHz), without those the standard leaves out."""
    if "legacy" in standards and 20 in widths:
        yield PhyMode("legacy", None, None, 20)
    guards = (LONG_GUARD_NS, SHORT_GUARD_NS)
    for standard in (s for s in standards if s != "legacy"):
        most, per_stream = (
            (min(max_streams, HT_STREAMS), 8) if standard == "ht" else (min(max_streams, VHT_STREAMS), 10)
        )
        for width in (w for w in widths if w in WIDTHS_MHZ[standard]):
            for streams in range(1, most + 1):
                first = 8 * (streams - 1) if standard == "ht" else 0
                made = (
                    PhyMode(standard, first + i, streams, width, g) for i in range(per_stream) for g in guards
                )
                yield from filter(is_standard, made)


def modes_of(
    rate_mbps: float,
    *,
    widths: tuple[int, ...] = (20, 40),
    tolerance_mbps: float = 0.1,
    standards: tuple[Standard, ...] = ("legacy", "ht", "vht"),
    max_streams: int = 4,
) -> tuple[PhyMode, ...]:
    """Every mode that a rate without further words (iwconfig's) may stand for; more than one: ambiguous.

    At 40 MHz 81 Mb/s is MCS 4 of one stream, MCS 10 of two or MCS 17 of three. Order: legacy, HT, VHT; then
    width, streams, MCS, long guard interval first.
    """
    candidates = modes(widths=widths, standards=standards, max_streams=max_streams)
    return tuple(m for m in candidates if rate_matches(rate_mbps, m, tolerance_mbps=tolerance_mbps))
