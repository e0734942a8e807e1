# SPDX-License-Identifier: Apache-2.0
"""What iw prints of an interface: `station dump`, `link`, `get power_save`, `info`.

Source of the forms: iw 5.19 and later, station.c (parse_bitrate, print_sta_handler), link.c, interface.c.
Name and value are separated by a tab in `station dump` (some padded with spaces), by one space in `link`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

from netjoule_radio.snapshot import NO_RATE, Rate, Role, Snapshot, Station, checked_rate, rate_without_mode
from netjoule_radio.source import InterfaceGone, ReadFailed, Run, find_tool, run_tool

SLOW_EVERY = 10
"""Role, address and power save change seldom and cost a program each: every tenth snapshot asks them."""

_GUARD_NS = {0: 800, 1: 1600, 2: 3200}  # of HE-GI and EHT-GI, enum nl80211_he_gi
_STANDARDS = {"MCS": "ht", "VHT-MCS": "vht", "HE-MCS": "he", "EHT-MCS": "eht", "S1G-MCS": "s1g"}
_WIDTH = re.compile(r"(\d+)(P\d+)?MHz", re.IGNORECASE)  # "40Mhz" until iw 4.9
# What stands deeper is of one link of a multi-link device (iw 6.17 and later), whatever comes first.
_FIELD = re.compile(r"(?m)^(?:\t| +)([^\s:][^:\n]*):[ \t]*(.*?)[ \t]*$")
_STATION = re.compile(r"^Station ([0-9a-fA-F:]{17}) \(on [^)]*\)", re.M)
_ROLES: Mapping[str, Role] = {"managed": "client", "AP": "access_point"}
_NO_DEVICE = "(-19)"
_NOT_SUPPORTED = "(-95)"


def rate(text: str) -> Rate:
    """Read what follows `tx bitrate:` or `rx bitrate:`, e.g. "270.0 MBit/s MCS 15 40MHz".

    No width is 20 MHz, no "short GI" the long guard interval; "(unknown)" is no rate.
    """
    words = text.replace("short GI", "short-GI").split()
    told = re.match(r"\s*(\d+(?:\.\d+)?) MBit/s", text)
    rate_mbps = float(told[1]) if told else None
    numbers = {word: int(value) for word, value in itertools.pairwise(words) if value.isdigit()}
    word = next((w for w in reversed(_STANDARDS) if w in numbers), None)
    widths = [match for match in map(_WIDTH.fullmatch, words) if match]
    width_mhz = int(widths[0][1]) * (2 if widths[0][2] else 1) if widths else 20
    if word is None:
        alone = rate_without_mode(rate_mbps, legacy_is_legacy=True)
        return replace(alone, width_mhz=width_mhz) if widths and rate_mbps else alone
    prefix = word.removesuffix("MCS")
    guard_ns = 400 if "short-GI" in words else _GUARD_NS.get(numbers.get(f"{prefix}GI", 0), 800)
    return checked_rate(
        _STANDARDS[word],
        rate_mbps or None,
        mcs=numbers[word],
        streams=numbers.get(f"{prefix}NSS") if prefix else None,
        width_mhz=width_mhz,
        guard_interval_ns=guard_ns,
    )


def station_dump(text: str) -> tuple[Station, ...]:
    """Read `iw dev X station dump`: every station in its order."""
    parts = _STATION.split(text)[1:]
    return tuple(
        _station(address.lower(), block) for address, block in zip(parts[::2], parts[1::2], strict=True)
    )


def link(text: str) -> Station | None:
    """Read `iw dev X link` of a client; None when it is not connected. It tells no retries and failures."""
    connected = re.match(r"\s*Connected to ([0-9a-fA-F:]{17})", text)
    return _station(connected[1].lower(), text[connected.end() :]) if connected else None


def power_save(text: str) -> bool | None:
    """Read `iw dev X get power_save`."""
    told = re.search(r"Power save: (on|off)", text)
    return None if told is None else told[1] == "on"


def interface(text: str) -> tuple[Role, str | None]:
    """Read `iw dev X info`: what the interface is, and its own hardware address."""
    kind = re.search(r"(?m)^\s*type (.+?)\s*$", text)
    address = re.search(r"(?m)^\s*addr ([0-9a-fA-F:]{17})", text)
    return _ROLES.get(kind[1] if kind else "", "other"), address[1].lower() if address else None


def _station(address: str, block: str) -> Station:
    fields = dict(_FIELD.findall(block))
    rates = {way: rate(fields[f"{way} bitrate"]) for way in ("tx", "rx") if f"{way} bitrate" in fields}
    rssi, connected = _number(fields, "signal"), _number(fields, "connected time")
    retries, failed = _number(fields, "tx retries"), _number(fields, "tx failed")
    return Station(
        address,
        tx=rates.get("tx", NO_RATE),
        rx=rates.get("rx", NO_RATE),
        rssi_dbm=rssi or None,  # 0 dBm is told of multi-link devices, whose signal is each link's
        retries=None if retries is None else int(retries),
        failed=None if failed is None else int(failed),
        connected_s=connected,
        associated_at_s=_number(fields, "associated at [boottime]"),
        beacons="beacon rx:" in block,  # at any depth: iw 6.17 prints the station's own as a link's
    )


def _number(fields: Mapping[str, str], name: str) -> float | None:
    """The number that a field begins with, e.g. -58 of "-58 [-61, -60] dBm"."""
    match = re.match(r"-?\d+(?:\.\d+)?", fields.get(name, ""))
    return float(match[0]) if match else None


class IwSource:
    """Asks iw: one program a snapshot, three at every tenth."""

    name = "iw"

    def __init__(self, interface: str, run: Run = run_tool) -> None:
        """Raises SourceMissing without iw, ReadFailed when it does not run."""
        self._interface = interface
        self._run = run
        self._iw = find_tool("iw") if run is run_tool else "iw"
        self.version = run([self._iw, "--version"]).out.strip().removeprefix("iw version ")
        self._looks = 0
        self._dumps = True
        self._slow: tuple[Role, str | None, bool | None] = ("other", None, None)

    def snapshot(self) -> Snapshot:
        """Ask now. Raises ReadFailed."""
        if self._looks % SLOW_EVERY == 0:
            role, address = interface(self._ask("info"))
            self._slow = role, address, power_save(self._ask("get", "power_save", may_lack=True))
        self._looks += 1
        role, address, saves = self._slow
        stations = self._stations(role)
        if not stations:
            self._looks = 0  # it may become another kind of interface
        if role != "client":
            return Snapshot(role, address if role == "access_point" else None, saves, stations)
        own = sorted(stations, key=lambda station: not station.beacons)[:1]  # others are TDLS peers
        return Snapshot(role, own[0].station if own else None, saves, tuple(own))

    def close(self) -> None:
        """Nothing is kept open."""

    def _stations(self, role: Role) -> tuple[Station, ...]:
        """Those listed; of a client the one that is asked for, where a driver refuses or empties the list."""
        if self._dumps:
            text = self._ask("station", "dump", may_lack=True)
            listed = () if text == _NOT_SUPPORTED else station_dump(text)
            self._dumps = text != _NOT_SUPPORTED
            if listed or (self._dumps and role != "client"):
                return listed
        own = link(self._ask("link"))
        return () if own is None else (own,)

    def _ask(self, *words: str, may_lack: bool = False) -> str:
        """What iw says; the words of "not supported" when that may be. Raises ReadFailed."""
        try:
            ran = self._run([self._iw, "dev", self._interface, *words])
        except ReadFailed:
            self._looks = 0
            raise
        if ran.status == 0:
            return ran.out
        if may_lack and _NOT_SUPPORTED in ran.err:
            return _NOT_SUPPORTED
        self._looks = 0  # after a trouble everything is asked anew
        if _NO_DEVICE in ran.err:
            raise InterfaceGone(f"there is no wireless interface {self._interface}")
        raise ReadFailed(f"iw dev {self._interface} {' '.join(words)}: {ran.err.strip() or ran.status}")
