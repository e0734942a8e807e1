# SPDX-License-Identifier: Apache-2.0
"""What iwconfig prints of an interface: the last resort, where neither nl80211 nor iw can be asked.

It knows no MCS, width or guard interval, no retries, no direction but sending, and nothing of the stations
of an access point. Source of the forms: wireless-tools 30, iwconfig.c (display_info), iwlib.c
(iw_print_bitrate, iw_print_stats); "=" stands for a fixed value, ":" for one that may change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from netjoule_radio.snapshot import Rate, Role, Snapshot, Station, rate_without_mode
from netjoule_radio.source import InterfaceGone, ReadFailed, Run, find_tool, run_tool

_ROLES: Mapping[str, Role] = {"Managed": "client", "Master": "access_point"}
_SCALE = {"G": 1000.0, "M": 1.0, "k": 0.001}


def rate(text: str) -> Rate:
    """The rate in `Bit Rate=81 Mb/s` or `Bit Rate:81 Mb/s`; one of several modes is rate_ambiguous."""
    told = re.search(r"Bit Rate[:=]\s*(\d+(?:\.\d+)?) ([GMk])b/s", text)
    if told is None:
        return rate_without_mode(None, legacy_is_legacy=False)
    # Printed with six digits: 866.7 Mb/s, but 1.0806 Gb/s.
    return rate_without_mode(round(float(told[1]) * _SCALE[told[2]], 3), legacy_is_legacy=False)


def parse_snapshot(text: str) -> Snapshot:
    """Read `iwconfig X`. Power save is None where no line tells it."""
    mode = re.search(r"Mode[:=](\S+)", text)
    role = _ROLES.get(mode[1] if mode else "", "other")
    told = re.search(r"Power Management([:= ]\S*)", text)
    saves = None if told is None else told[1] != ":off"
    bssid = re.search(r"Access Point: ([0-9A-Fa-f:]{17})", text)
    if role == "access_point":
        return Snapshot(role, None, saves, lists_stations=False)
    if bssid is None:
        return Snapshot(role, None, saves)
    rssi = re.search(r"Signal level[:=](-?\d+) dBm", text)  # "=60/100" is of no unit
    failed = re.search(r"Tx excessive retries[:=](\d+)", text)  # frames given up after all retries
    station = Station(
        bssid[1].lower(),
        tx=rate(text),
        rssi_dbm=float(rssi[1]) if rssi else None,
        failed=int(failed[1]) if failed else None,
    )
    return Snapshot(role, station.station, saves, (station,))


class IwconfigSource:
    """Asks iwconfig: one program a snapshot."""

    name = "iwconfig"

    def __init__(self, interface: str, run: Run = run_tool) -> None:
        """Raises SourceMissing without iwconfig, ReadFailed when it does not run."""
        self._interface = interface
        self._run = run
        self._iwconfig = find_tool("iwconfig") if run is run_tool else "iwconfig"
        version = re.search(r"Wireless-Tools version (\S+)", run([self._iwconfig, "--version"]).out)
        self.version = version[1] if version else ""

    def snapshot(self) -> Snapshot:
        """Ask now. Raises ReadFailed."""
        ran = self._run([self._iwconfig, self._interface])
        if "No such device" in ran.err:
            raise InterfaceGone(f"there is no wireless interface {self._interface}")
        if "no wireless extensions" in ran.err:
            raise ReadFailed(f"{self._interface} has no wireless extensions: it is no radio, or nl80211 only")
        if ran.status != 0 or not ran.out.strip():
            raise ReadFailed(f"iwconfig {self._interface}: {ran.err.strip() or ran.status}")
        return parse_snapshot(ran.out)

    def close(self) -> None:
        """Nothing is kept open."""
