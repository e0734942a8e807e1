# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in the air while a network is up: how the radio's records and the run's reasons tell it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from guest_lab import GuestLab
from radio_flows import SERVER, report_of, sending
from radio_watch import Watch, watching

from netjoule.execution.outages import Outages
from netjoule.radio import RadioRecord
from netjoule.radio.log import RadioLog

# On a busy host; on an idle one each takes a tenth of it.
NOTICED_WITHIN_S = 120.0
WATCHED = (("client", "iw"),)
FLOW_S = 30
RUN = "/run/netjoule"
# Killed, hostapd leaves the kernel sending beacons: a power cut ends these too.
POWER_CUT = f"pkill -9 --pidfile {RUN}/hostapd-wlan0.pid; ip link set wlan0 down"
START = f"hostapd -B -P {RUN}/hostapd-$0.pid -f {RUN}/hostapd-$0.log {RUN}/hostapd-$0.conf"
ASK_CLIENT = f"wpa_cli -p {RUN}/wpa_supplicant -i wlan0"
COPY = f"sed s/^interface=wlan0/interface=wlan1/ {RUN}/hostapd-wlan0.conf >{RUN}/hostapd-wlan1.conf"
END_SECOND = f"pkill --pidfile {RUN}/hostapd-wlan1.pid; rm {RUN}/hostapd-wlan1.conf"
# On the network's channel only: all of them take half a minute.
FIND = (
    f"until {ASK_CLIENT} scan_results | grep -q $0; do {ASK_CLIENT} scan freq=5180; sleep 1; done; "
    f"{ASK_CLIENT} roam $0"
)

pytestmark = [pytest.mark.guest, pytest.mark.parametrize("network", ["ht40-wpa2"], indirect=True)]


class _Replayed:
    """A reader that gives these records, then stays silent."""

    node = "client"

    def __init__(self, records: list[RadioRecord]) -> None:
        self._records = iter(records)
        self.given = asyncio.Event()

    async def open(self) -> None:
        return None

    async def read(self) -> RadioRecord | None:
        for record in self._records:
            return record
        self.given.set()
        await asyncio.Event().wait()
        return None

    async def close(self) -> None:
        return None


class _Nothing:
    """Neither hosts nor a folder are needed to judge records."""

    async def returned(self) -> None:
        return None

    def append_radio(self, node: str, rows: Any) -> None:
        return None


def reasons(watch: Watch) -> list[str]:
    """Codes of the reasons why a run over all readings does not count."""

    async def judged() -> list[str]:
        reader = _Replayed(watch.records())
        async with RadioLog(_Nothing(), [reader], ["client"]) as log:
            await reader.given.wait()
            return [reason.code for reason in Outages(_Nothing(), log).reasons(0.0, float("inf"))]

    return asyncio.run(judged())


def associated(reading: dict[str, Any]) -> bool:
    return reading["state"] == "associated"


def test_an_access_point_that_dies_and_returns(lab: GuestLab, network: str, tmp_path: Path) -> None:
    with watching(lab, WATCHED) as (watch,):
        with sending(lab, "udp", FLOW_S) as sender:
            watch.wait_for(associated, NOTICED_WITHIN_S)
            lab.ask("access_point", "sh", "-c", POWER_CUT)
            watch.wait_for(lambda reading: reading["state"] == "disassociated", NOTICED_WITHIN_S)
            lab.ask("access_point", "sh", "-c", START, "wlan0")
            watch.wait_for(associated, NOTICED_WITHIN_S)
            report = report_of(sender)
        # The way to the server is whole again, without anybody's help.
        lab.ask("client", "ping", "-c", "1", "-w", str(int(NOTICED_WITHIN_S)), SERVER)
    assert report["receiver"]["messages_lost"] > 0
    flags = [row["flag"] for row in watch.write(tmp_path)]
    assert "disassociated" in flags
    assert "disassociated" not in (flags[0], flags[-1])
    assert reasons(watch) == ["radio_disassociated"]


def test_a_client_that_roams(lab: GuestLab, network: str, tmp_path: Path) -> None:
    first, second = (
        lab.ask("access_point", "cat", f"/sys/class/net/{interface}/address").strip()
        for interface in ("wlan0", "wlan1")
    )
    with watching(lab, WATCHED) as (watch,):
        watch.wait_for(associated, NOTICED_WITHIN_S)
        lab.ask("access_point", "sh", "-c", f"{COPY} && {START}", "wlan1")
        lab.ask("client", "sh", "-c", FIND, second)
        watch.wait_for(lambda reading: associated(reading) and reading["bssid"] == second, NOTICED_WITHIN_S)
        lab.ask("access_point", "sh", "-c", END_SECOND)
        watch.wait_for(lambda reading: associated(reading) and reading["bssid"] == first, NOTICED_WITHIN_S)
    assert "roamed" in {flag for row in watch.write(tmp_path) for flag in row["flag"].split(";")}
    assert "radio_roamed" in reasons(watch)
