# SPDX-License-Identifier: Apache-2.0
"""A radio's state at one instant, the same for nl80211, iw and iwconfig; rows made of successive snapshots.

A snapshot holds counters as the kernel keeps them (totals since the association); a row holds what was
counted since the row before. Rates are recomputed from their fields, and what does not follow is flagged;
each rate once, so that a snapshot costs the same CPU time whatever rate it meets (idle has others than load).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from netjoule_radio.rates import LEGACY_RATES_MBPS, PhyMode, Standard, modes_of, rate_matches

Role = Literal["client", "access_point", "other"]

CONNECTED_SLACK_S = 2.0
"""Connected time is told in whole seconds, and a row's time is not the kernel's."""
_TOLD_TOLERANCE_MBPS = 0.05  # rates are printed in steps of 0.1
_ALL_WIDTHS_MHZ = (20, 40, 80, 160)
_RATES_KEPT = 1024  # more than there are


@dataclass(frozen=True)
class Rate:
    """The rate of the last frame in one direction; None is what this way of asking does not tell.

    Attributes:
        flag: empty, or why the rate is doubtful: rate_mismatch (does not follow from its fields),
            rate_ambiguous (the fields were not told and more than one mode has this rate; what these modes
            share is filled in), rate_unchecked (802.11ax or later, or a width other than 20 to 160 MHz),
            rate_unknown (none told).
    """

    phy_rate_mbps: float | None = None
    mcs: int | None = None
    streams: int | None = None
    width_mhz: int | None = None
    guard_interval_ns: int | None = None
    flag: str = ""


NO_RATE = Rate(flag="rate_unknown")


@dataclass(frozen=True)
class Station:
    """One peer: a client's access point, or one of an access point's clients.

    Attributes:
        station: its hardware address, lower case; empty when not told.
        tx: rate of the last frame sent to it.
        rx: rate of the last frame received from it.
        rssi_dbm: signal strength of what it sends.
        retries: frames sent again since the association.
        failed: frames given up since the association.
        connected_s: duration of the association, whole seconds.
        associated_at_s: its beginning on CLOCK_BOOTTIME.
        beacons: whether beacons of it are counted (then it is the client's access point).
    """

    station: str
    tx: Rate = NO_RATE
    rx: Rate = NO_RATE
    rssi_dbm: float | None = None
    retries: int | None = None
    failed: int | None = None
    connected_s: float | None = None
    associated_at_s: float | None = None
    beacons: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The state of one interface at one instant.

    Attributes:
        bssid: address of the basic service set, lower case; None outside of one or when not told.
        power_save: None when not told.
        stations: of a client at most one, its access point; of an access point all its clients.
        lists_stations: False when this way of asking cannot list them (iwconfig on an access point).
    """

    role: Role
    bssid: str | None = None
    power_save: bool | None = None
    stations: tuple[Station, ...] = ()
    lists_stations: bool = True


@functools.lru_cache(maxsize=_RATES_KEPT)
def checked_rate(
    standard: str,
    phy_rate_mbps: float | None,
    *,
    mcs: int | None = None,
    streams: int | None = None,
    width_mhz: int = 20,
    guard_interval_ns: int = 800,
) -> Rate:
    """A rate told with its fields, held to them. `standard`: ht, vht or another, which is not recomputed.

    HT tells no stream count: its MCS holds it.
    """
    if standard == "ht" and mcs is not None and streams is None:
        streams = 1 + mcs // 8
    told = Rate(phy_rate_mbps, mcs, streams, width_mhz, guard_interval_ns)
    if phy_rate_mbps is None:
        return replace(told, flag="rate_unknown")
    if standard not in ("ht", "vht") or width_mhz not in _ALL_WIDTHS_MHZ:
        return replace(told, flag="rate_unchecked")
    known: Standard = "ht" if standard == "ht" else "vht"
    try:
        fits = rate_matches(phy_rate_mbps, PhyMode(known, mcs, streams, width_mhz, guard_interval_ns))
    except ValueError:  # no such mode: fields that contradict each other
        fits = False
    return told if fits else replace(told, flag="rate_mismatch")


@functools.lru_cache(maxsize=_RATES_KEPT)
def rate_without_mode(phy_rate_mbps: float | None, *, legacy_is_legacy: bool) -> Rate:
    """A rate told without its fields: what all modes of this rate share is filled in.

    Args:
        phy_rate_mbps: as printed; None or 0 when none was told.
        legacy_is_legacy: iw prints no field for 802.11a/b/g only, so that its "54.0 MBit/s" is no HT rate;
            iwconfig never prints any.
    """
    if not phy_rate_mbps:
        return NO_RATE
    if legacy_is_legacy and phy_rate_mbps in LEGACY_RATES_MBPS:
        return Rate(phy_rate_mbps, width_mhz=20, guard_interval_ns=800)
    found = modes_of(phy_rate_mbps, widths=_ALL_WIDTHS_MHZ, tolerance_mbps=_TOLD_TOLERANCE_MBPS)
    if not found:
        return Rate(phy_rate_mbps, flag="rate_unchecked")  # none of 802.11a/b/g/n/ac

    def shared(field: str) -> Any:
        values = {getattr(mode, field) for mode in found}
        return values.pop() if len(values) == 1 else None

    return Rate(
        phy_rate_mbps,
        mcs=shared("mcs"),
        streams=shared("streams"),
        width_mhz=shared("width_mhz"),
        guard_interval_ns=shared("guard_interval_ns"),
        flag="rate_ambiguous" if len(found) > 1 else "",
    )


def was_reset(before: Station, now: Station, elapsed_s: float) -> bool:
    """Whether the counters of `now` began anew since `before`, `elapsed_s` seconds ago."""
    counters = ((before.retries, now.retries), (before.failed, now.failed))
    if any(was is not None and is_ is not None and is_ < was for was, is_ in counters):
        return True
    if before.associated_at_s is not None and now.associated_at_s is not None:
        return before.associated_at_s != now.associated_at_s
    if before.connected_s is None or now.connected_s is None:
        return False
    return now.connected_s + CONNECTED_SLACK_S < before.connected_s + elapsed_s


class RowBuilder:
    """Makes rows of successive snapshots; time is an argument."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Station, int]] = {}
        self._bssid: str | None = None

    def rows(self, snapshot: Snapshot, t_ns: int) -> Iterator[dict[str, Any]]:
        """One row for each station of the snapshot, one without figures when there is none.

        retries and failed are those since the station's row before, None in its first one. Flags, joined by
        ";": disassociated, roamed (another BSSID than at the association before), counter_reset (a new
        association: what was counted in between is not known), rx_ or nothing before the rates' flags.
        """
        roamed = (
            snapshot.role == "client"
            and None not in (snapshot.bssid, self._bssid)
            and snapshot.bssid != self._bssid
        )
        self._bssid = snapshot.bssid or self._bssid
        common = {"role": snapshot.role, "bssid": snapshot.bssid, "power_save": snapshot.power_save}
        for station in snapshot.stations:
            flags = ["roamed"] if roamed else []
            yield {"state": "associated", **common, **self._figures(station, t_ns, flags)}
        if not snapshot.stations:
            state = "disassociated" if snapshot.lists_stations else None
            flag = "disassociated" if snapshot.lists_stations else "rate_unknown"
            yield {"state": state, **common, **_figures_of(Station(""), None, None), "flag": flag}

    def _figures(self, station: Station, t_ns: int, flags: list[str]) -> dict[str, Any]:
        before, since_ns = self._seen.get(station.station, (None, 0))
        self._seen[station.station] = station, t_ns
        if before is not None and was_reset(before, station, (t_ns - since_ns) / 1e9):
            flags.append("counter_reset")
            before = None
        if "roamed" in flags:
            before = None  # totals of an earlier stay there say nothing of the time since the row before
        retries = _since(before.retries if before else None, station.retries)
        failed = _since(before.failed if before else None, station.failed)
        flags += [station.tx.flag] if station.tx.flag else []
        # A direction without any frame yet is no defect of the row; what is told and cannot be true is.
        flags += [f"rx_{station.rx.flag}"] if station.rx.flag not in ("", "rate_unknown") else []
        return {**_figures_of(station, retries, failed), "flag": ";".join(flags)}


def _since(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def _figures_of(station: Station, retries: int | None, failed: int | None) -> dict[str, Any]:
    tx, rx = asdict(station.tx), asdict(station.rx)
    del tx["flag"], rx["flag"]
    return {
        "station": station.station or None,
        **tx,
        **{f"rx_{name}": value for name, value in rx.items()},
        "rssi_dbm": station.rssi_dbm,
        "retries": retries,
        "failed": failed,
    }
