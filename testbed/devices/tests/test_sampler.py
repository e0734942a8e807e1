# SPDX-License-Identifier: Apache-2.0
"""Joining link intervals and CPU time, without sockets or clocks."""

from __future__ import annotations

import json

import pytest
from golden_sentences import raises

import netjoule_contracts
from netjoule_devices.errors import LinkLost
from netjoule_devices.link_stats import StationInterval, parse_line
from netjoule_devices.model import load_model
from netjoule_devices.power import Activity
from netjoule_devices.sampler import Sampler
from netjoule_devices.traffic import Traffic

ORIGIN_NS = 7_000_000_000
MS = 1_000_000


def interval(start_ms: int, end_ms: int, airtime_tx_s: float = 0.0) -> StationInterval:
    activity = Activity((end_ms - start_ms) / 1e3, airtime_tx_s, 0.0, 0, 0, 0, 216.0)
    return StationInterval(ORIGIN_NS + start_ms * MS, ORIGIN_NS + end_ms * MS, activity)


def test_each_interval_gets_cpu_in_proportion_to_its_length() -> None:
    used = iter([99.0, 0.03, 0.0])  # what ran before the start does not count
    sampler = Sampler(load_model("laptop-cpu"), ORIGIN_NS, lambda: next(used), ORIGIN_NS)
    samples = sampler.on_link([interval(0, 100), interval(100, 300)], ORIGIN_NS + 300 * MS)
    assert [(s.t_start_s, s.t_end_s) for s in samples] == [(0.0, 0.1), (0.1, 0.3)]
    assert [s.terms["cpu"] for s in samples] == pytest.approx([1.0, 1.0])
    assert sampler.on_link([], ORIGIN_NS + 310 * MS) == []


def test_sample_fits_its_contract_and_its_power_is_the_sum_of_its_terms() -> None:
    sampler = Sampler(load_model("raspberry-pi"), ORIGIN_NS, None, ORIGIN_NS)
    sample = sampler.on_link([interval(100, 200, 0.01)], 0)[0]
    document = json.loads(sample.to_line())
    netjoule_contracts.validate("device_stream", document)
    assert document["power_w"] == pytest.approx(sum(document["terms"].values()), abs=1e-5)
    assert document["extrapolated"] is True


def test_hole_in_the_statistics_is_an_error() -> None:
    sampler = Sampler(load_model("constant"), ORIGIN_NS, None, ORIGIN_NS)
    with raises(LinkLost):
        sampler.on_link([interval(0, 100), interval(150, 250)], ORIGIN_NS)


def test_grid_sample_charges_cpu_without_a_link() -> None:
    used = iter([0.0, 0.05])
    sampler = Sampler(load_model("laptop-cpu"), ORIGIN_NS, lambda: next(used), ORIGIN_NS)
    sample = sampler.on_grid(ORIGIN_NS, ORIGIN_NS + 100 * MS, ORIGIN_NS + 100 * MS)
    assert sample.power_w == pytest.approx(8 + 1.36 + 5.0)


def test_each_interval_gets_bytes_in_proportion_and_the_connections_of_the_moment() -> None:
    traffic = Traffic(received_bytes=300_000, connections=4)
    sampler = Sampler(load_model("s5-seed"), ORIGIN_NS, None, ORIGIN_NS, lambda _: traffic)
    samples = sampler.on_link([interval(0, 100), interval(100, 300)], ORIGIN_NS + 300 * MS)
    assert [s.terms["rate"] for s in samples] == pytest.approx([0.075 * 8, 0.075 * 8])
    assert [s.terms["connections"] for s in samples] == pytest.approx([0.06, 0.06])


def test_a_late_call_leaves_the_next_stretch_what_is_beyond_its_own() -> None:
    came = iter([190_000, 60_000, 0])
    sampler = Sampler(
        load_model("s5-seed"), ORIGIN_NS, None, ORIGIN_NS, lambda _: Traffic(next(came), connections=1)
    )
    late = sampler.on_link([interval(0, 100)], ORIGIN_NS + 190 * MS)
    soon = sampler.on_link([interval(100, 200)], ORIGIN_NS + 200 * MS)
    quiet = sampler.on_link([interval(200, 300)], ORIGIN_NS + 300 * MS)
    bits = [sample.terms["rate"] / 0.075 * 1e5 for sample in (*late, *soon, *quiet)]
    assert bits == pytest.approx([800_000, 1_200_000, 0])


def test_what_came_long_before_a_stretch_does_not_make_it_late() -> None:
    came = iter([5_000_000, 100_000])
    sampler = Sampler(
        load_model("s5-seed"), ORIGIN_NS, None, ORIGIN_NS, lambda _: Traffic(next(came), connections=1)
    )
    sampler.on_link([interval(4_900, 5_000)], ORIGIN_NS + 5_000 * MS)
    (sample,) = sampler.on_link([interval(5_000, 5_100)], ORIGIN_NS + 5_100 * MS)
    assert sample.terms["rate"] == pytest.approx(0.075 * 8)


LINE = {
    "schema_version": 1,
    "kind": "station",
    "station": "client",
    "t_start_ns": 1,
    "t_end_ns": 2,
    "airtime_tx_s": 0.1,
    "airtime_rx_s": 0.2,
    "frames_tx": 3,
    "frames_rx": 4,
    "retries": 1,
    "phy_rate_mbps": 216.0,
    "a_later_field": None,
}


def test_line_of_another_station_or_kind_is_skipped() -> None:
    activity = Activity(1e-9, 0.1, 0.2, 3, 4, 1, 216.0)
    assert parse_line(json.dumps(LINE).encode(), "client") == StationInterval(1, 2, activity)
    assert parse_line(json.dumps(LINE).encode(), "other") is None
    assert parse_line(json.dumps(LINE | {"kind": "link"}).encode(), "client") is None
    assert parse_line(b"", "client") is None


@pytest.mark.parametrize("line", [b"{", b"[]", b"7", json.dumps(LINE | {"frames_tx": None}).encode()])
def test_line_that_is_no_statistics_is_an_error(line: bytes) -> None:
    with raises(LinkLost):
        parse_line(line, "client")
