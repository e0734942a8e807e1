# SPDX-License-Identifier: Apache-2.0
"""Rows out of snapshots: differences of counters, re-association, roaming, no association."""

from dataclasses import replace
from typing import Any

import pytest

import netjoule_radio.snapshot
from netjoule_radio.snapshot import (
    NO_RATE,
    Rate,
    RowBuilder,
    Snapshot,
    Station,
    checked_rate,
    rate_without_mode,
    was_reset,
)

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
MODE = Rate(216.0, 13, 2, 40, 800)
OWN = Station(
    A, tx=MODE, rx=Rate(81.0, 10, 2, 40, 800), rssi_dbm=-50.0, retries=100, failed=3, connected_s=60.0
)


def client(station: Station | None) -> Snapshot:
    return Snapshot("client", station.station if station else None, False, (station,) if station else ())


def rows(*snapshots: Snapshot, every_s: float = 1.0) -> list[dict[str, Any]]:
    row_builder = RowBuilder()
    return [
        row
        for k, snapshot in enumerate(snapshots)
        for row in row_builder.rows(snapshot, round(k * every_s * 1e9))
    ]


def later(station: Station, seconds: float = 1.0, **changed: Any) -> Station:
    assert station.connected_s is not None
    return replace(station, **{"connected_s": station.connected_s + seconds} | changed)


def test_counters_are_told_as_differences_from_the_second_row_on() -> None:
    first, second, third = rows(
        client(OWN), client(later(OWN, retries=107)), client(later(OWN, 2, retries=107, failed=4))
    )
    assert (first["retries"], first["failed"], first["flag"]) == (None, None, "")
    assert (second["retries"], second["failed"]) == (7, 0)
    assert (third["retries"], third["failed"], third["flag"]) == (0, 1, "")


def test_a_row_holds_both_directions() -> None:
    (row,) = rows(client(OWN))
    assert row == {
        "state": "associated",
        "role": "client",
        "bssid": A,
        "power_save": False,
        "station": A,
        "phy_rate_mbps": 216.0,
        "mcs": 13,
        "streams": 2,
        "width_mhz": 40,
        "guard_interval_ns": 800,
        "rx_phy_rate_mbps": 81.0,
        "rx_mcs": 10,
        "rx_streams": 2,
        "rx_width_mhz": 40,
        "rx_guard_interval_ns": 800,
        "rssi_dbm": -50.0,
        "retries": None,
        "failed": None,
        "flag": "",
    }


def test_after_a_new_association_there_is_no_difference_and_no_negative_number() -> None:
    anew = replace(OWN, retries=2, failed=0, connected_s=0.0)
    _, reset, after = rows(client(OWN), client(anew), client(later(anew, retries=5)))
    assert (reset["retries"], reset["failed"], reset["flag"]) == (None, None, "counter_reset")
    assert (after["retries"], after["failed"], after["flag"]) == (3, 0, "")


def test_disassociated_and_back_at_the_same_access_point() -> None:
    anew = replace(OWN, retries=0, failed=0, connected_s=1.0)
    _, away, back = rows(client(OWN), client(None), client(anew))
    assert (away["state"], away["bssid"], away["phy_rate_mbps"], away["flag"]) == (
        "disassociated",
        None,
        None,
        "disassociated",
    )
    assert (back["state"], back["flag"]) == ("associated", "counter_reset")


def test_another_bssid_is_roaming_also_over_a_gap() -> None:
    there = replace(OWN, station=B, connected_s=0.0, retries=0)
    _, at_once, _ = rows(client(OWN), client(there), client(later(there)))
    assert (at_once["bssid"], at_once["flag"], at_once["retries"]) == (B, "roamed", None)
    assert rows(client(OWN), client(None), client(there))[2]["flag"] == "roamed"


def test_coming_back_from_roaming_counts_nothing_of_the_first_stay() -> None:
    there = replace(OWN, station=B, connected_s=0.0, retries=0)
    back = replace(OWN, connected_s=1.0, retries=500)  # more than when it left
    _, _, home = rows(client(OWN), client(there), client(back))
    assert (home["flag"], home["retries"]) == ("roamed;counter_reset", None)


def test_an_access_point_has_a_row_for_each_client() -> None:
    other = replace(OWN, station=B, retries=1)
    both = Snapshot("access_point", "02:00:00:00:00:01", False, (OWN, other))
    grown = Snapshot(
        "access_point", "02:00:00:00:00:01", False, (later(OWN, retries=101), later(other, retries=11))
    )
    told = rows(both, grown, Snapshot("access_point", "02:00:00:00:00:01", False))
    assert [(r["station"], r["retries"], r["flag"]) for r in told] == [
        (A, None, ""),
        (B, None, ""),
        (A, 1, ""),
        (B, 10, ""),
        (None, None, "disassociated"),
    ]


def test_iwconfig_on_an_access_point_tells_no_state() -> None:
    (row,) = rows(Snapshot("access_point", None, None, lists_stations=False))
    assert (row["state"], row["flag"], row["phy_rate_mbps"]) == (None, "rate_unknown", None)


def test_flags_of_both_rates_are_told() -> None:
    wrong = replace(MODE, flag="rate_mismatch")
    (row,) = rows(client(replace(OWN, tx=wrong, rx=wrong)))
    assert row["flag"] == "rate_mismatch;rx_rate_mismatch"
    (row,) = rows(client(replace(OWN, tx=NO_RATE, rx=NO_RATE)))
    assert row["flag"] == "rate_unknown"


@pytest.mark.parametrize(
    ("now", "elapsed_s", "reset"),
    [
        (later(OWN), 1.0, False),
        (later(OWN, 0.0), 1.0, False),  # whole seconds
        (later(OWN, 9.0), 10.0, False),
        (later(OWN, 7.0), 10.0, True),  # associated anew three seconds later, counters by chance higher
        (replace(OWN, connected_s=None), 10.0, False),
        (replace(OWN, connected_s=None, failed=2), 10.0, True),
        (replace(OWN, connected_s=None, retries=None), 10.0, False),
    ],
)
def test_when_counters_began_anew(now: Station, elapsed_s: float, reset: bool) -> None:
    assert was_reset(OWN, now, elapsed_s) is reset


def test_the_time_of_association_decides_where_it_is_told() -> None:
    told = replace(OWN, associated_at_s=12.5)
    assert not was_reset(told, later(told, 0.0), 10.0)
    assert was_reset(told, later(told, 10.0, associated_at_s=13.0), 10.0)
    assert was_reset(told, later(told, 10.0, retries=99), 10.0)


def test_a_rate_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle meets other rates than load: what working one out costs must not be in only one of both."""
    checked_rate.cache_clear()
    rate_without_mode.cache_clear()
    worked_out: list[float] = []

    def count(rate_mbps: float, *_: Any, **__: Any) -> tuple[()]:
        worked_out.append(rate_mbps)
        return ()

    monkeypatch.setattr(netjoule_radio.snapshot, "modes_of", count)
    monkeypatch.setattr(netjoule_radio.snapshot, "rate_matches", count)
    try:
        for _ in range(3):
            rate_without_mode(6.0, legacy_is_legacy=True)
            rate_without_mode(81.0, legacy_is_legacy=False)
            checked_rate("ht", 216.0, mcs=13, width_mhz=40)
    finally:
        checked_rate.cache_clear()
        rate_without_mode.cache_clear()
    assert worked_out == [81.0, 216.0]
