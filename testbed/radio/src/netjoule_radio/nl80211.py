# SPDX-License-Identifier: Apache-2.0
"""The kernel itself, asked over nl80211 with pyroute2 (0.7 and later): preferred, for it runs no program.

pyroute2 decodes rates since 0.7.10; older ones (Debian 12: 0.7.2) hand them over as hexadecimal text and
misread the station flags, which is why those are not used here. Source of the numbers: the kernel's
include/uapi/linux/nl80211.h, enum nl80211_rate_info, nl80211_iftype, nl80211_sta_info.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netjoule_radio.snapshot import NO_RATE, Rate, Role, Snapshot, Station, checked_rate, rate_without_mode
from netjoule_radio.source import InterfaceGone, ReadFailed, SourceMissing

_RATE_INFO = (
    "", "BITRATE", "MCS", "40_MHZ_WIDTH", "SHORT_GI", "BITRATE32", "VHT_MCS", "VHT_NSS", "80_MHZ_WIDTH",
    "80P80_MHZ_WIDTH", "160_MHZ_WIDTH", "10_MHZ_WIDTH", "5_MHZ_WIDTH", "HE_MCS", "HE_NSS", "HE_GI", "HE_DCM",
    "HE_RU_ALLOC", "320_MHZ_WIDTH", "EHT_MCS", "EHT_NSS", "EHT_GI", "EHT_RU_ALLOC", "S1G_MCS", "S1G_NSS",
    "1_MHZ_WIDTH", "2_MHZ_WIDTH", "4_MHZ_WIDTH", "8_MHZ_WIDTH", "16_MHZ_WIDTH",
)  # fmt: skip
_WIDTHS_MHZ = {"80P80_MHZ_WIDTH": 160} | {
    f"{w}_MHZ_WIDTH": w for w in (1, 2, 4, 5, 8, 10, 16, 40, 80, 160, 320)
}
_GUARD_NS = {0: 800, 1: 1600, 2: 3200}
_ROLES: Mapping[int, Role] = {2: "client", 3: "access_point"}
_TYPE_MASK = 0x3FFF
_ENODEV = 19
_UNSIGNED = {1: "=B", 2: "=H", 4: "=I", 8: "=Q"}


def _attributes(message: Any, prefix: str) -> dict[str, Any]:
    """A message's attributes by name without `prefix`; of repeated ones the first."""
    found: dict[str, Any] = {}
    for slot in message["attrs"]:
        found.setdefault(str(slot[0]).removeprefix(prefix), slot[1])
    return found


def _from_bytes(data: bytes) -> dict[str, int]:
    """Attributes of a rate as the kernel lays them out: length, type, value, padded to four bytes."""
    found: dict[str, int] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        value = data[4:length]
        if length < 4 or len(value) != length - 4:
            break
        kind &= _TYPE_MASK
        if 0 < kind < len(_RATE_INFO) and (not value or len(value) in _UNSIGNED):
            found.setdefault(_RATE_INFO[kind], struct.unpack(_UNSIGNED[len(value)], value)[0] if value else 1)
        data = data[(length + 3) & ~3 :]
    return found


def rate(value: Any) -> Rate:
    """Read NL80211_STA_INFO_TX_BITRATE or RX_BITRATE, decoded or as hexadecimal text; None is no rate."""
    if value is None:
        return NO_RATE
    if isinstance(value, str):
        fields: dict[str, Any] = _from_bytes(bytes.fromhex(value.replace(":", "")))
    else:
        fields = _attributes(value, "NL80211_RATE_INFO_")
    tenths = fields.get("BITRATE32") or fields.get("BITRATE")  # BITRATE ends at 6.5 Gb/s, with 0
    rate_mbps = tenths / 10 if tenths else None
    width_mhz = next((mhz for name, mhz in _WIDTHS_MHZ.items() if name in fields), 20)
    standard = next((s for s in ("S1G", "EHT", "HE", "VHT") if f"{s}_MCS" in fields), None)
    if standard is None and "MCS" not in fields:
        if width_mhz == 20:
            return rate_without_mode(rate_mbps, legacy_is_legacy=True)
        return checked_rate("legacy", rate_mbps, width_mhz=width_mhz)
    guard_ns = _GUARD_NS.get(fields.get(f"{standard}_GI", 0), 800)
    return checked_rate(
        (standard or "HT").lower(),
        rate_mbps,
        mcs=fields[f"{standard}_MCS" if standard else "MCS"],
        streams=fields.get(f"{standard}_NSS"),
        width_mhz=width_mhz,
        guard_interval_ns=400 if "SHORT_GI" in fields else guard_ns,
    )


def station(message: Any) -> Station:
    """Read one answer to NL80211_CMD_GET_STATION."""
    outer = _attributes(message, "NL80211_ATTR_")
    info = _attributes(outer.get("STA_INFO", {"attrs": ()}), "NL80211_STA_INFO_")
    since_ns = info.get("ASSOC_AT_BOOTTIME")
    return Station(
        str(outer.get("MAC", "")).lower(),
        tx=rate(info.get("TX_BITRATE")),
        rx=rate(info.get("RX_BITRATE")),
        # 0 dBm is told of multi-link devices, whose signal is each link's.
        rssi_dbm=float(info["SIGNAL"]) if info.get("SIGNAL") else None,
        retries=info.get("TX_RETRIES"),
        failed=info.get("TX_FAILED"),
        connected_s=info.get("CONNECTED_TIME"),
        associated_at_s=since_ns / 1e9 if since_ns else None,
        beacons="BEACON_RX" in info,
    )


def parse_snapshot(interface: Any, power_save: Sequence[Any], stations: Iterable[Any]) -> Snapshot:
    """The answers to GET_INTERFACE, GET_POWER_SAVE and GET_STATION as one snapshot."""
    own = _attributes(interface, "NL80211_ATTR_")
    address = str(own["MAC"]).lower() if "MAC" in own else None
    role = _ROLES.get(int(own.get("IFTYPE", 0)), "other")
    saves = _power_save(power_save)
    found = tuple(station(message) for message in stations)
    if role != "client":
        return Snapshot(role, address if role == "access_point" else None, saves, found)
    peers = sorted(found, key=lambda peer: not peer.beacons)[:1]  # others are TDLS peers
    return Snapshot(role, peers[0].station if peers else None, saves, tuple(peers))


def _power_save(answers: Sequence[Any]) -> bool | None:
    """NL80211_ATTR_PS_STATE, a 32-bit number that pyroute2 leaves as hexadecimal text."""
    for answer in answers:
        state = _attributes(answer, "NL80211_ATTR_").get("PS_STATE")
        if isinstance(state, str):
            return any(bytes.fromhex(state.replace(":", "")))
        if state is not None:
            return bool(state)
    return None


class Nl80211Source:
    """Asks the kernel: three messages a snapshot."""

    name = "nl80211"

    def __init__(self, interface: str) -> None:
        """Raises SourceMissing without pyroute2 or without nl80211 in the kernel."""
        self._interface = interface
        try:
            self._names = importlib.import_module("pyroute2.netlink.nl80211")
            self._request = importlib.import_module("pyroute2.netlink").NLM_F_REQUEST
            make = importlib.import_module("pyroute2").IW
        except ImportError as error:
            # A Python that is not the distribution's does not see the distribution's packages.
            raise SourceMissing(f"pyroute2 is not installed for {sys.executable} ({error})") from None
        self.version = _version()
        try:
            self._iw: Any = make()
        except Exception as error:  # pyroute2's own kinds differ between its versions
            raise SourceMissing(f"the kernel does not answer over nl80211: {error}") from None

    def snapshot(self) -> Snapshot:
        """Ask now. Raises ReadFailed."""
        try:
            index = socket.if_nametoindex(self._interface)  # anew: an interface that came back has another
        except OSError:
            raise InterfaceGone(f"there is no interface {self._interface}") from None
        try:
            # Asked for its stations, an interface that is gone has none: the question that fails comes first.
            interfaces = list(self._iw.get_interface_by_ifindex(index))
            power_save = self._ask_power_save(index)
            stations = list(self._iw.get_stations(index)) or self._ask_associated(interfaces, index)
        except Exception as error:  # pyroute2's own kinds differ between its versions
            if getattr(error, "code", None) == _ENODEV:
                raise InterfaceGone(f"{self._interface} is not a wireless interface (any more)") from None
            raise ReadFailed(f"nl80211 about {self._interface}: {error}") from None
        if not interfaces:
            raise ReadFailed(f"nl80211 says nothing of {self._interface}")
        return parse_snapshot(interfaces[0], power_save, stations)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(Exception):
            self._iw.close()

    def _ask_power_save(self, index: int) -> Sequence[Any]:
        return self._ask("GET_POWER_SAVE", [["NL80211_ATTR_IFINDEX", index]])

    def _ask_associated(self, interfaces: Sequence[Any], index: int) -> Sequence[Any]:
        """The access point of a client whose driver lists no stations, by the list of networks, as `iw link`.

        Asked for by its address it may still tell rates; else there is its address only.
        """
        own = _attributes(interfaces[0], "NL80211_ATTR_") if interfaces else {}
        if _ROLES.get(int(own.get("IFTYPE", 0))) != "client":
            return ()
        network = self._iw.get_associated_bss(index)
        bss = {} if network is None else _attributes(network, "NL80211_ATTR_").get("BSS", {"attrs": ()})
        bssid = _attributes(bss, "NL80211_BSS_").get("BSSID") if bss else None
        if bssid is None:
            return ()
        address = ["NL80211_ATTR_MAC", bssid]
        return self._ask("GET_STATION", [["NL80211_ATTR_IFINDEX", index], address]) or ({"attrs": [address]},)

    def _ask(self, command: str, attributes: list[list[Any]]) -> Sequence[Any]:
        """The answers to a command that a driver may lack; none then."""
        message = self._names.nl80211cmd()
        message["cmd"] = self._names.NL80211_NAMES[f"NL80211_CMD_{command}"]
        message["attrs"] = attributes
        try:
            return list(self._iw.nlm_request(message, msg_type=self._iw.prid, msg_flags=self._request))
        except Exception as error:
            if getattr(error, "code", None) == _ENODEV:
                raise
            return ()


def _version() -> str:
    from importlib import metadata  # slow to load, and only needed here

    try:
        return metadata.version("pyroute2")
    except metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module("pyroute2"), "__version__", ""))
