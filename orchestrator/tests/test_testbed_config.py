# SPDX-License-Identifier: Apache-2.0
"""What the emulated testbed writes for its parts fits their contracts."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from runner_fakes import START_NS, new_campaign, topology

import netjoule_contracts as contracts
from netjoule.emulated_config import check_control, control_address, link_config, meter_config
from netjoule.errors import HostLacks, RunFailed, UsageError
from netjoule.session import Session
from netjoule.testbed_emulated import EmulatedTestbed, open_emulated
from netjoule.testbed_parts import all_or_none


def test_link_config_fits_its_contract() -> None:
    document = link_config(topology(), Path("/run/x/link.sock"))
    contracts.validate("link_config", document)
    station = document["stations"][0]
    assert station["name"] == "client"
    assert station["netns"] == "/run/netns/client"
    assert station["addresses"] == ["10.77.0.2/24", "fd77::2/64"]
    assert document["wired"]["addresses"] == ["10.77.0.1/24", "fd77::1/64"]
    assert (document["preset"], document["seed"]) == ("ideal-216", 3)


def test_link_overrides_and_path_go_where_the_link_reads_them() -> None:
    where = topology(
        io="packet", mtu=1400, overrides={"mcs": 7, "streams": 1}, wired={"delay_ms": 5, "rate_mbps": 0}
    )
    document = link_config(where, Path("/run/x/link.sock"))
    contracts.validate("link_config", document)
    assert document["io"] == "packet"
    assert document["overrides"] == {"mcs": 7, "streams": 1}
    assert document["stations"][0]["mtu"] == document["wired"]["mtu"] == 1400
    assert document["wired"]["delay_ms"] == 5
    assert "rate_mbps" not in document["wired"]  # 0 in a topology means unlimited


def test_a_limited_path_keeps_its_rate() -> None:
    document = link_config(topology(wired={"rate_mbps": 20.5, "loss_ratio": 0.01}), Path("/run/x"))
    contracts.validate("link_config", document)
    assert (document["wired"]["rate_mbps"], document["wired"]["loss_ratio"]) == (20.5, 0.01)


def test_control_addresses_come_from_the_topology_or_are_the_usual_ones() -> None:
    where = topology()
    assert control_address(where, "server") == "10.79.0.1"
    where.hosts["server"]["control_address"] = "192.168.7.1"
    assert control_address(where, "server") == "192.168.7.1"
    where.hosts["server"]["control_address"] = "rack.example"
    with pytest.raises(
        UsageError, match=r"control_address of server is 'rack\.example', not an IPv4 address"
    ):
        control_address(where, "server")


def test_a_control_address_on_the_test_network_is_refused() -> None:
    where = topology()
    check_control(where)
    where.hosts["client"]["control_address"] = "10.77.0.9"
    with pytest.raises(
        UsageError, match=r"client is 10\.77\.0\.9, on the test flows' network 10\.77\.0\.0/24"
    ):
        check_control(where)


def test_a_start_that_fails_half_way_tells_its_own_reason(tmp_path: Path) -> None:
    async def start() -> None:
        with new_campaign(tmp_path / "c") as campaign:
            async with AsyncExitStack() as stack:
                bed = EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), tmp_path, stack)
                bed._parts.watch(await bed._start("link_stopped", "cat", "-"), "link_stopped")
                await asyncio.sleep(0)  # the watch reads
                raise HostLacks("no meters")

    with pytest.raises(HostLacks, match="no meters"):
        asyncio.run(start())


def test_a_part_that_fails_ends_its_siblings_first() -> None:
    seen = []

    async def fails() -> None:
        raise RunFailed("no")

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    with pytest.raises(RunFailed, match="no"):
        asyncio.run(all_or_none([waits(), fails()]))  # type: ignore[list-item]
    assert seen == ["ended"]


def test_meter_config_fits_its_contract() -> None:
    where = topology("constant", "linear")
    document = meter_config(
        where, {"m0": "/dev/pts/3", "m1": "/dev/pts/4"}, {"m0": "constant", "m1": "linear"}
    )
    contracts.validate("meter_config", document)
    assert [m["resource"] for m in document["meters"]] == ["/dev/pts/3", "/dev/pts/4"]
    assert [m["device_form"] for m in document["meters"]] == ["constant", "linear"]
    assert {m["power_source"] for m in document["meters"]} == {"modelled"}


def test_a_dead_link_is_named_before_what_it_took_along(tmp_path: Path) -> None:
    async def first_seen() -> RunFailed:
        with new_campaign(tmp_path / "c") as campaign:
            bed = EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), tmp_path, AsyncExitStack())
            link: asyncio.Task[RunFailed] = asyncio.ensure_future(_dies("link_stopped", after_ticks=20))
            device = asyncio.ensure_future(_dies("device_stopped", after_ticks=1))
            bed._parts._watches = [link, device]
            return await bed.failed()

    assert asyncio.run(first_seen()).code == "link_stopped"


async def _dies(code: str, after_ticks: int) -> RunFailed:
    for _ in range(after_ticks):
        await asyncio.sleep(0)
    return RunFailed("gone", code=code)


def test_outside_the_sandbox_nothing_is_touched(tmp_path: Path) -> None:
    async def enter() -> None:
        with new_campaign(tmp_path / "c") as campaign:
            async with open_emulated(campaign, Session(1, "b", START_NS, 0.0)):
                raise AssertionError("came up outside the sandbox")

    with pytest.raises(HostLacks, match="runs only inside its sandbox"):
        asyncio.run(enter())
