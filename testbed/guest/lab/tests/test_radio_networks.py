# SPDX-License-Identifier: Apache-2.0
"""The radio roles on real hostapd and wpa_supplicant, flows over it, every way of reading the radio.

Under software emulation: what is shown is that it works, not how fast it is.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from guest_lab import GuestLab
from radio_flows import carried_by_radio, flow, judge_flow
from radio_watch import Watch, agreement, watching

from netjoule.testbeds.guest.lab import Network

# Both ends are limited to this MCS. The width is not: iw's mask has none, single frames go out at 20 MHz.
PINNED = {"ht40-wpa2": 13, "vht80-sae": 9}


def judge_agreement(watches: Sequence[Watch]) -> None:
    """iw and iwconfig say what nl80211 says, whenever that says the same before and after."""
    fields = ("phy_rate_mbps", "mcs", "streams", "width_mhz", "guard_interval_ns")
    for host, source, names in (
        ("client", "iw", (*fields, *(f"rx_{name}" for name in fields))),
        ("client", "iwconfig", fields[:1]),
        ("access_point", "iw", (*fields, *(f"rx_{name}" for name in fields))),
    ):
        trusted = next(watch for watch in watches if (watch.host, watch.source) == (host, "nl80211"))
        other = next(watch for watch in watches if (watch.host, watch.source) == (host, source))
        same, judged = agreement(trusted.timed(*names), other.timed(*names))
        assert judged >= 5, (host, source)
        # A frame of another rate may pass just between.
        assert same >= 0.8 * judged, (host, source, same, judged)


@pytest.mark.guest
def test_flows_and_readings(lab: GuestLab, network: Network, tmp_path: Path) -> None:
    with watching(lab) as watches:
        before = carried_by_radio(lab, "access_point")
        for transport in ("udp", "dccp-kernel"):
            report = flow(lab, transport)
            judge_flow(report)
        passed = carried_by_radio(lab, "access_point") - before
    assert passed > report["receiver"]["messages_received_unique"]

    for watch in watches:
        rows = watch.write(tmp_path)
        assert {row["mcs"] for row in rows} <= {None, PINNED[network]}, (watch.host, watch.source)
    judge_agreement(watches)
    by_netlink = {watch.host: watch.readings for watch in watches if watch.source == "nl80211"}
    assert PINNED[network] in {row.get("mcs") for row in by_netlink["client"]}
    assert PINNED[network] in {row.get("rx_mcs") for row in by_netlink["access_point"]}
