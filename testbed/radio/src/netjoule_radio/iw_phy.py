# SPDX-License-Identifier: Apache-2.0
"""What a radio can do: the text of `iw phy` -> PhyCapabilities.

Bits are read from iw's hexadecimal masks, not from its words, which changed between versions. Layout: IEEE
Std 802.11-2020 9.4.2.55 (HT Capabilities) and 9.4.2.157 (VHT Capabilities).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntFlag

from netjoule_radio.channels import Band


class Ht(IntFlag):
    """Single bits of the HT Capability Information field that are asked for."""

    LDPC = 1 << 0
    WIDTH_40 = 1 << 1
    SHORT_GI_20 = 1 << 5
    SHORT_GI_40 = 1 << 6
    MAX_AMSDU_7935 = 1 << 11
    DSSS_CCK_40 = 1 << 12


class Vht(IntFlag):
    """Bits of the VHT Capabilities Information field that are asked for; without fields of several bits."""

    RX_LDPC = 1 << 4
    SHORT_GI_80 = 1 << 5
    SHORT_GI_160 = 1 << 6


@dataclass(frozen=True)
class ChannelState:
    """One line of iw's list of frequencies, under the regulatory domain of that moment.

    max_power_dbm: None when disabled.
    """

    number: int
    frequency_mhz: int
    max_power_dbm: float | None
    disabled: bool = False
    no_ir: bool = False
    radar: bool = False


@dataclass(frozen=True)
class BandCapabilities:
    """One band: capability words (None: no HT or no VHT there), rates it receives, channels."""

    ht_capab: int | None = None
    ht_rx_mcs: frozenset[int] = frozenset()
    vht_capab: int | None = None
    vht_rx_mcs: tuple[int, ...] = ()  # highest MCS by stream count, first entry one stream
    channels: tuple[ChannelState, ...] = ()

    @property
    def ht_rx_streams(self) -> int:
        """Streams of 802.11n; 0 without it."""
        return max((1 + mcs // 8 for mcs in self.ht_rx_mcs if mcs < 32), default=0)

    @property
    def vht_rx_streams(self) -> int:
        """Streams of 802.11ac; 0 without it."""
        return len(self.vht_rx_mcs)

    @property
    def ht_rx_stbc(self) -> int:
        """Streams of space-time block codes received with HT, 0-3."""
        return (self.ht_capab or 0) >> 8 & 3

    @property
    def vht_rx_stbc(self) -> int:
        """Streams of space-time block codes received with VHT, 0-4."""
        return (self.vht_capab or 0) >> 8 & 7

    @property
    def vht_max_mpdu(self) -> int:
        """Longest MPDU in octets."""
        return {0: 3895, 1: 7991, 2: 11454}.get((self.vht_capab or 0) & 3, 3895)

    @property
    def vht_max_ampdu_exponent(self) -> int:
        """Longest A-MPDU is 2^(13 + exponent) - 1 octets."""
        return (self.vht_capab or 0) >> 23 & 7

    @property
    def widths_mhz(self) -> tuple[int, ...]:
        """Widths of one contiguous block that the radio takes on this band."""
        if self.vht_capab is not None:
            return (20, 40, 80, 160) if self.vht_capab >> 2 & 3 else (20, 40, 80)
        return (20, 40) if (self.ht_capab or 0) & Ht.WIDTH_40 else (20,)

    def channel(self, number: int) -> ChannelState | None:
        """The channel of that number, or None when the radio does not have it."""
        return next((c for c in self.channels if c.number == number), None)


@dataclass(frozen=True)
class PhyCapabilities:
    """One radio. bands: by "2.4" and "5" (others are not looked at). ciphers: suite selectors, e.g.
    00-0f-ac:4.

    index: kernel's number of the radio, as in `wiphy 0` of `iw dev wlan0 info`; None in iw before 4.0.
    antennas, antennas_used: of sending or receiving, whichever has fewer; 0 where the driver does not tell.
    """

    name: str
    index: int | None = None
    modes: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    ciphers: frozenset[str] = frozenset()
    bands: dict[Band, BandCapabilities] = field(default_factory=dict)
    sae_in_driver_or_kernel: bool = False
    antennas: int = 0
    antennas_used: int = 0

    @property
    def sets_bitrate_mask(self) -> bool:
        """Whether `iw dev X set bitrates` works."""
        return "set_tx_bitrate_mask" in self.commands

    @property
    def protects_management_frames(self) -> bool:
        """802.11w (CMAC): SAE demands it."""
        return "00-0f-ac:6" in self.ciphers


_BAND = re.compile(r"^\tBand \d+:\s*$")
_FREQUENCY = re.compile(r"^\t\t\t?\* (\d+)(?:\.\d+)? MHz \[(-?\d+)\] \(([^)]*)\)(?: \(([^)]*)\))?")
_HT_CAPAB = re.compile(r"^\t\tCapabilities: 0x([0-9a-f]+)")
_HT_MCS = re.compile(r"^\t\tHT (?:TX/RX|RX) MCS rate indexes supported: ([\d, -]+)")
_VHT_CAPAB = re.compile(r"^\t\tVHT Capabilities \(0x([0-9a-f]+)\)")
_VHT_MCS = re.compile(r"^\t\t\t(\d) streams: MCS 0-(\d)")
_CIPHER = re.compile(r"\((00-0f-ac:\d+)\)")
_SAE = ("Device supports SAE with AUTHENTICATE command", "[ SAE_OFFLOAD ]", "[ SAE_OFFLOAD_AP ]")


def parse_iw_phy(text: str) -> tuple[PhyCapabilities, ...]:
    """Every radio in the output of `iw phy` or `iw phy phyN info`; an empty tuple when there is none."""
    parts = re.split(r"(?m)^Wiphy (\S+)\s*$", text)
    return tuple(_radio(name, body) for name, body in zip(parts[1::2], parts[2::2], strict=True))


def _radio(name: str, body: str) -> PhyCapabilities:
    sections = _sections(body.splitlines())
    found = [_band(lines) for title, lines in sections if _BAND.match(title)]
    bands = {name_of_band: band for name_of_band, band in found if name_of_band is not None}
    index = re.search(r"(?m)^\twiphy index: (\d+)", body)
    return PhyCapabilities(
        name=name,
        index=int(index[1]) if index else None,
        modes=frozenset(_items(sections, "Supported interface modes")),
        commands=frozenset(_items(sections, "Supported commands")),
        ciphers=frozenset(_CIPHER.findall("\n".join(_items(sections, "Supported Ciphers")))),
        bands=bands,
        sae_in_driver_or_kernel=any(word in body for word in _SAE),
        antennas=_antennas(body, "Available"),
        antennas_used=_antennas(body, "Configured"),
    )


def _antennas(body: str, which: str) -> int:
    """Bits of "Available Antennas: TX 0x3 RX 0x3"; a driver that knows no antennas says 0 or nothing."""
    told = re.search(rf"(?m)^\t{which} Antennas: TX (0x[0-9a-f]+|0) RX (0x[0-9a-f]+|0)$", body)
    return min(int(mask, 16).bit_count() for mask in told.groups()) if told else 0


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Split at lines indented by one tab: (title, what is indented deeper)."""
    sections: list[tuple[str, list[str]]] = []
    for line in lines:
        if re.match(r"^\t\S", line):
            sections.append((line, []))
        elif sections:
            sections[-1][1].append(line)
    return sections


def _items(sections: list[tuple[str, list[str]]], title: str) -> list[str]:
    return [
        line.strip().removeprefix("*").strip()
        for heading, lines in sections
        if heading.strip().startswith(title)
        for line in lines
    ]


def _band(lines: list[str]) -> tuple[Band | None, BandCapabilities]:
    channels = tuple(c for c in map(_channel, lines) if c is not None)
    ht = next((int(m[1], 16) for m in map(_HT_CAPAB.match, lines) if m), None)
    ht_mcs = next((_indexes(m[1]) for m in map(_HT_MCS.match, lines) if m), frozenset())
    vht = next((int(m[1], 16) for m in map(_VHT_CAPAB.match, lines) if m), None)
    band = BandCapabilities(ht, ht_mcs, vht, _vht_streams(lines), channels)
    if any(2400 < c.frequency_mhz < 2500 for c in channels):
        return "2.4", band
    # 6 GHz has channel numbers of its own that repeat those of 2.4 and 5 GHz.
    return ("5" if any(5000 < c.frequency_mhz < 5900 for c in channels) else None), band


def _channel(line: str) -> ChannelState | None:
    match = _FREQUENCY.match(line)
    if not match:
        return None
    frequency, number, power, flags = int(match[1]), int(match[2]), match[3], match[4] or ""
    if power == "disabled":
        return ChannelState(number, frequency, None, disabled=True)
    # Kernels before 3.14 said "passive scanning, no IBSS" for today's "no IR".
    no_ir = any(word in flags for word in ("no IR", "passive scan", "no IBSS"))
    return ChannelState(
        number, frequency, float(power.removesuffix(" dBm")), no_ir=no_ir, radar="radar" in flags
    )


def _indexes(text: str) -> frozenset[int]:
    """Read "0-15, 32" as the set of its numbers."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _vht_streams(lines: list[str]) -> tuple[int, ...]:
    """Highest MCS by stream count, from "VHT RX MCS set:"; "not supported" and a count out of turn end it."""
    start = next((i for i, line in enumerate(lines) if line.startswith("\t\tVHT RX MCS set:")), None)
    if start is None:
        return ()
    highest: list[int] = []
    for line in lines[start + 1 :]:
        match = _VHT_MCS.match(line)
        if not match or int(match[1]) != len(highest) + 1:
            break
        highest.append(int(match[2]))
    return tuple(highest)
