# SPDX-License-Identifier: Apache-2.0
"""What the emulated testbed writes for its parts fits their contracts."""

import asyncio
import copy
import json
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path

import pytest
from golden_sentences import raises
from runner_fakes import START_NS, new_campaign, topology, workload

import netjoule_contracts as contracts
from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.loads import load_of
from netjoule.loads.flow import limits
from netjoule.loads.flow.settings import FlowSettings
from netjoule.store.session import Session
from netjoule.testbeds.base import all_or_none
from netjoule.testbeds.emulated.config import check_control, clients, link_config, meter_config, wired
from netjoule.testbeds.emulated.testbed import EmulatedTestbed, open_emulated
from netjoule.topology.paths import asked_paths
from netjoule.topology.topology import Topology
from netjoule.topology.topology import load as load_topology
from netjoule.workload.load import Place


def test_link_config_fits_its_contract() -> None:
    document = link_config(topology(), Path("/run/x/link.sock"))
    contracts.validate("link_config", document)
    station = document["stations"][0]
    assert station["name"] == "client"
    assert station["netns"] == "/run/netns/client"
    assert station["addresses"] == ["10.77.0.2/24", "fd77::2/64"]
    assert document["wired"][0]["addresses"] == ["10.77.0.1/24", "fd77::1/64"]
    assert (document["preset"], document["seed"]) == ("ideal-216", 3)


def test_link_overrides_and_path_go_where_the_link_reads_them() -> None:
    where = topology(
        io="packet", mtu=1400, overrides={"mcs": 7, "streams": 1}, wired={"delay_ms": 5, "rate_mbps": 0}
    )
    document = link_config(where, Path("/run/x/link.sock"))
    contracts.validate("link_config", document)
    assert document["io"] == "packet"
    assert document["overrides"] == {"mcs": 7, "streams": 1}
    assert document["stations"][0]["mtu"] == document["wired"][0]["mtu"] == 1400
    assert document["wired"][0]["elements"] == [{"delay_ms": 5, "rate_mbps": 0}]


def test_the_link_takes_every_path_of_the_routers_that_scale(tmp_path: Path) -> None:
    where = load_topology(programs.shipped("testbed") / "topologies/troubled-marriage.yaml")
    document = link_config(where, tmp_path / "link.sock")
    link = programs.find("netjoule-link")
    presets = where.document["presets"]
    for path, scaling in product(presets["path"], presets["scaling"]):
        asked = asked_paths(where.document, {"path": path, "scaling": scaling})
        document["wired"][0]["elements"] = asked["server"]
        contracts.validate("link_config", document)
        config = tmp_path / f"{path}-{scaling}.json"
        config.write_text(json.dumps(document))
        subprocess.run([link, "check", "--config", config], check=True, capture_output=True)


def test_a_limited_path_keeps_its_rate() -> None:
    document = link_config(topology(wired={"rate_mbps": 20.5, "loss_ratio": 0.01}), Path("/run/x"))
    contracts.validate("link_config", document)
    assert document["wired"][0]["elements"] == [{"rate_mbps": 20.5, "loss_ratio": 0.01}]


def test_a_place_tells_where_its_hosts_are_on_the_test_network(tmp_path: Path) -> None:
    async def place() -> Place:
        with new_campaign(tmp_path / "c") as campaign:
            return EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), tmp_path, AsyncExitStack()).place

    found = asyncio.run(place())
    assert found.test_addresses == {"client": "10.77.0.2", "server": "10.77.0.1"}
    assert found.interfaces == {"client": "wlan0", "server": "eth0"}


def test_control_addresses_come_from_the_topology_or_are_the_usual_ones() -> None:
    where = topology()
    assert wired(where)[0].control_ipv4 == "10.79.0.1"
    where.hosts["server"]["control_address"] = "192.168.7.1"
    assert wired(where)[0].control_ipv4 == "192.168.7.1"
    where.hosts["server"]["control_address"] = "rack.example"
    with raises(UsageError):
        wired(where)


def test_a_control_address_on_the_test_network_is_refused() -> None:
    where = topology()
    check_control(where)
    where.hosts["client"]["control_address"] = "10.77.0.9"
    with raises(UsageError):
        check_control(where)


def test_a_start_that_fails_half_way_tells_its_own_reason(tmp_path: Path) -> None:
    async def start() -> None:
        with new_campaign(tmp_path / "c") as campaign:
            async with AsyncExitStack() as stack:
                bed = EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), tmp_path, stack)
                bed.watch(await bed._start("cat", "-"), "link_stopped")
                await asyncio.sleep(0)  # the watch reads
                raise HostLacks("no meters")

    with raises(HostLacks):
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

    with raises(RunFailed):
        asyncio.run(all_or_none([waits(), fails()]))  # type: ignore[list-item]
    assert seen == ["ended"]


def test_meter_config_fits_its_contract() -> None:
    where = topology("constant", "linear")
    told = {name: [{"name": name, "form": name}] for name in ("constant", "linear")}
    ports = {"m0": "/dev/pts/3", "m1": "/dev/pts/4"}
    document = meter_config(where, ports, {"m0": told["constant"], "m1": told["linear"]})
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
            bed._watches = [link, device]
            return await bed.failed()

    assert asyncio.run(first_seen()).code == "link_stopped"


async def _dies(code: str, after_ticks: int) -> RunFailed:
    for _ in range(after_ticks):
        await asyncio.sleep(0)
    return RunFailed("gone", code=code)


def test_outside_the_sandbox_nothing_is_touched(tmp_path: Path) -> None:
    async def enter() -> None:
        with new_campaign(tmp_path / "c") as campaign:
            load = load_of(campaign.workload, campaign.topology)
            async with open_emulated(campaign, Session(1, "b", START_NS, 0.0), load):
                raise AssertionError("came up outside the sandbox")

    with raises(HostLacks):
        asyncio.run(enter())


# --- two clients -----------------------------------------------------------------------------------


def two_clients() -> Topology:
    return load_topology(programs.shipped("testbed") / "topologies/two-clients.yaml")


def test_every_client_is_a_station_in_a_namespace_of_its_own() -> None:
    document = link_config(two_clients(), Path("/run/x/link.sock"))
    contracts.validate("link_config", document)
    stations = [(s["name"], s["netns"], s["addresses"][0]) for s in document["stations"]]
    assert stations == [
        ("laptop", "/run/netns/client", "10.77.0.2/24"),
        ("tablet", "/run/netns/client-2", "10.77.0.3/24"),
    ]
    assert document["wired"][0]["netns"] == "/run/netns/server"


def test_further_clients_have_control_addresses_without_the_topologys_help() -> None:
    where = two_clients()
    for host in where.hosts.values():
        host.pop("control_address", None)
    check_control(where)
    spots = [*wired(where), *clients(where)]
    assert [spot.control_ipv4 for spot in spots] == ["10.79.0.1", "10.79.0.2", "10.79.0.3"]
    assert [spot.control_ipv6 for spot in spots] == ["fd79::1", "fd79::2", "fd79::3"]


def test_hosts_with_one_control_address_are_refused() -> None:
    where = two_clients()
    where.hosts["laptop"]["control_address"] = "10.79.0.3"  # what the tablet has
    with raises(UsageError):
        check_control(where)


def test_a_workload_of_two_clients_fits_a_testbed_of_two() -> None:
    limits.require_fit(FlowSettings.of(workload(clients=2)), two_clients())
    with raises(UsageError):
        limits.require_fit(FlowSettings.of(workload(clients=3)), two_clients())


@pytest.mark.parametrize("taking_part", [1, 2])
def test_all_clients_are_read_and_those_that_take_part_have_flows(tmp_path: Path, taking_part: int) -> None:
    async def look() -> None:
        with new_campaign(tmp_path / "c", workload(clients=taking_part), two_clients()) as campaign:
            bed = EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), tmp_path, AsyncExitStack())
            load = load_of(campaign.workload, campaign.topology)
            sending = bed.place.hosts("client", load.hosts["client"])
            assert [host.name for host in sending] == ["laptop", "tablet"][:taking_part]
            assert [reader.node for reader in bed.radio_readers] == ["laptop", "tablet"]
            rows = await bed.clock_rows(1.0)
            assert [row["host"] for row in rows] == ["laptop", "tablet", "server"]

    asyncio.run(look())


def test_a_device_model_counts_the_air_and_cpu_time_of_the_client_it_is_on(tmp_path: Path) -> None:
    with new_campaign(tmp_path / "c", where=two_clients()) as campaign:
        bed = EmulatedTestbed(campaign, Session(1, "b", START_NS, 0.0), tmp_path, AsyncExitStack())
        told = [bed._device_arguments(meter) for meter in campaign.topology.meters]
    read = [
        (
            argv[argv.index("--station") + 1],
            argv[argv.index("--cpu-netns") + 1],
            argv[argv.index("--log") + 1],
        )
        for argv in told
    ]
    assert read == [
        ("laptop", "/run/netns/client", str(campaign.devices_dir / "laptop-cpu.ndjson")),
        ("tablet", "/run/netns/client-2", str(campaign.devices_dir / "tablet-cpu.ndjson")),
    ]


# --- several hosts behind the access point ---------------------------------------------------------


def several_hosts() -> Topology:
    document = copy.deepcopy(topology(wired={"delay_ms": 1}).document)
    hosts = {"dsl-proxy": "proxy", "origin-a": "origin", "origin-b": "origin"}
    document["hosts"] = {
        name: {"roles": [role], "test_addresses": {"ipv4": f"10.77.0.{number}"}}
        for number, (name, role) in enumerate(hosts.items(), 11)
    } | document["hosts"]
    document["elements"] = {"core": {"delay_ms": 10}, "dsl": {"delay_ms": 5}}
    document["presets"] = {"path": {"far": {"rtt_ms": 120}}}
    document["link"]["paths"] = {"origin-a": {"rtt_ms": 40}, "origin-b": {"elements": ["core", "dsl"]}}
    return Topology.from_document(document, where="test")


def test_every_host_behind_the_access_point_is_at_the_end_of_a_path_of_its_own() -> None:
    document = link_config(several_hosts(), Path("/run/x/link.sock"))
    contracts.validate("link_config", document)
    assert [(host["name"], host["netns"], host["elements"]) for host in document["wired"]] == [
        ("server", "/run/netns/server", [{"delay_ms": 1}]),
        ("dsl-proxy", "/run/netns/proxy", [{"delay_ms": 1}]),
        ("origin-a", "/run/netns/origin", [{"delay_ms": 20}]),
        ("origin-b", "/run/netns/origin-2", [{"delay_ms": 10}, {"delay_ms": 5}]),
    ]
    addresses = [spot.control_ipv4 for spot in wired(several_hosts())]
    assert addresses == ["10.79.0.1", "10.79.0.3", "10.79.0.4", "10.79.0.5"]


@pytest.mark.netns
def test_hosts_of_every_role_are_up_and_one_path_changes_without_the_others(tmp_path: Path) -> None:
    where = tmp_path / "topology.json"
    where.write_text(json.dumps(several_hosts().document))
    script = [sys.executable, str(Path(__file__).parent / "several_hosts.py")]
    done = subprocess.run(
        [*script, str(where), str(tmp_path / "c")],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["roles"] == {
        "client": ["client"],
        "server": ["server"],
        "proxy": ["dsl-proxy"],
        "origin": ["origin-a", "origin-b"],
        "dns": [],
        "router": [],
    }
    assert told["in_force"]["path.origin-a"]["elements"][0]["delay_ms"] == 60
    paths_ms = {"server": 2, "dsl-proxy": 2, "origin-a": 40, "origin-b": 30}
    for name, rtt_ms in told["before_ms"].items():
        ends = name.split(" ")
        least_ms = sum(paths_ms.get(end, 0) for end in ends)
        assert least_ms <= rtt_ms < least_ms + 35, (name, rtt_ms)
    assert set(told["control_ms"]) == set(told["after_ms"]) == set(told["before_ms"])
    for name, rtt_ms in told["after_ms"].items():
        assert (rtt_ms >= 120) is ("origin-a" in name), (name, rtt_ms)
    assert max(told["control_ms"].values()) < 100, "control traffic takes no path under test"
