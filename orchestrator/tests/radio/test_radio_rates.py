# SPDX-License-Identifier: Apache-2.0
"""Rates in a radio's log against those that the topology allows."""

from typing import Any

import pytest

from netjoule.radio import RadioRecord
from netjoule.radio.rates import RateLimits


def outside(mode: str, rates: Any, **told: Any) -> str:
    return RateLimits.of({"mode": mode, "rates": rates}).outside(RadioRecord(t_s=1.0, **told))


@pytest.mark.parametrize(
    ("mode", "rates", "told"),
    [
        ("11n", "automatic", {"mcs": 7, "streams": 1}),
        ("11n", {}, {"mcs": 7, "streams": 1}),
        ("11n", {"mcs": [10, 12], "streams": 2}, {"mcs": 12, "streams": 2}),
        ("11n", {"mcs": [3, 12], "streams": 2}, {"mcs": 3, "streams": 1}),
        ("11n", {"streams": 2}, {"mcs": 3, "streams": 1}),
        ("11ac", {"streams": 2}, {"mcs": 9, "streams": 1}),
        ("11ac", {"mcs": [9], "streams": 2}, {"mcs": 9, "streams": 2}),
        ("11ac", {"mcs": [9]}, {"mcs": 9, "streams": 1}),
        ("11n", {"mcs": [10], "guard_interval": "long"}, {"mcs": 10, "guard_interval_ns": 800}),
        # Legacy rates, and what iwconfig does not tell.
        ("11n", {"mcs": [10], "guard_interval": "short"}, {"phy_rate_mbps": 6.0, "guard_interval_ns": 800}),
        ("11n", {"mcs": [10]}, {"phy_rate_mbps": 81.0, "streams": 2}),
        ("11n", {"mcs": [10]}, {}),
    ],
)
def test_what_the_topology_allows_or_nobody_tells_is_not_noted(mode: str, rates: Any, told: Any) -> None:
    assert outside(mode, rates, **told) == ""


@pytest.mark.parametrize(
    ("mode", "rates", "told", "words"),
    [
        ("11n", {"mcs": [10], "streams": 2}, {"mcs": 11, "streams": 2}, "sent at MCS 11"),
        ("11n", {"mcs": [10]}, {"mcs": 10, "rx_mcs": 2}, "received at MCS 2"),
        ("11n", {"streams": 1}, {"mcs": 9, "streams": 2}, "sent at 2 streams"),
        ("11n", {"streams": 1}, {"streams": 2}, "sent at 2 streams"),
        ("11ac", {"streams": 2}, {"mcs": 9, "rx_mcs": 9, "rx_streams": 3}, "received at 3 streams"),
        ("11ac", {"mcs": [9], "streams": 2}, {"mcs": 9, "streams": 1}, "sent at 1 stream"),
        (
            "11n",
            {"mcs": [10], "guard_interval": "long"},
            {"mcs": 10, "guard_interval_ns": 400},
            "sent at a guard interval of 400 ns",
        ),
    ],
)
def test_what_the_topology_does_not_allow_is_named(mode: str, rates: Any, told: Any, words: str) -> None:
    assert outside(mode, rates, **told) == words


def test_a_testbed_without_a_radio_network_limits_nothing() -> None:
    assert RateLimits.of({}) == RateLimits()
