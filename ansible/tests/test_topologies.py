# SPDX-License-Identifier: Apache-2.0
"""The shipped racks: valid, wired as described, and rendered for each host with a radio (golden files).

Golden files are rewritten with NETJOULE_REWRITE_GOLDEN=1; review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from networks import RACKS, TOPOLOGIES, network_of, rack
from parsers import NO_RADIO, assert_read
from render import render

from netjoule.provisioning.inventory import host_variables
from netjoule.topology.hosts import ROLES
from netjoule_meters.clock import SystemClock
from netjoule_meters.config import meter_configs
from netjoule_meters.meter_factory import build_meter

GOLDEN = Path(__file__).resolve().parent / "golden"
RADIOS = [(name, host) for name in RACKS for host in rack(name).hosts if rack(name).host(host).radio]


def program_of(name: str, host: str) -> str:
    return "hostapd" if "access_point" in rack(name).host(host).roles else "wpa_supplicant"


def test_every_shipped_rack_is_tested() -> None:
    shipped = {path.stem for path in TOPOLOGIES.glob("*.yaml")}
    assert {name for name in shipped if rack(name).kind == "lab"} == set(RACKS)


@pytest.mark.parametrize(("name", "host"), RADIOS)
def test_the_configuration_of_each_host_is_the_reviewed_one(name: str, host: str, tmp_path: Path) -> None:
    program = program_of(name, host)
    interface = host_variables(rack(name), host)["netjoule_radio_interface"]
    rendered = render(network_of(name), RACKS[name], interface=interface)[f"{program}.conf"]
    golden = GOLDEN / f"{name}.{host}.{program}.conf"
    if os.environ.get("NETJOULE_REWRITE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()
    parsed = render(network_of(name), RACKS[name], interface=NO_RADIO, run_dir=str(tmp_path))
    assert_read(program, parsed[f"{program}.conf"], tmp_path)


@pytest.mark.parametrize("name", RACKS)
def test_adapters_know_every_setting_of_the_meters(name: str) -> None:
    fields = ("meter_id", "node", "adapter", "resource", "settings")
    meters = [{key: meter[key] for key in fields} for meter in rack(name).document["meters"]]
    for config in meter_configs({"schema_version": 1, "meters": meters}):
        assert build_meter(config, clock=SystemClock()).update_interval_s > 0


def test_the_rack_of_the_seed_study() -> None:
    seed = rack("seed-2013")
    assert seed.host_with("access_point") == seed.host_with("server") == "router"
    assert seed.hosts_with("client") == ("laptop",)
    assert seed.hosts_with("observer") == ("desk",)
    assert [(m.adapter, m.node, m.update_interval_s) for m in seed.meters] == [
        ("isockets", "laptop", 30),
        ("isockets", "router", 30),
    ]
    wifi = seed.wifi
    assert (wifi["mode"], wifi["width_mhz"], wifi["rates"]["streams"]) == ("11n", 40, 2)
    assert wifi["channel"] >= 36


def test_the_modern_rack() -> None:
    modern = rack("modern")
    assert len(modern.hosts_with("client")) == 3
    assert (modern.wifi["mode"], modern.wifi["width_mhz"]) == ("11ac", 80)
    assert modern.meters[0].settings["model"] == "WT310E"
    assert {m.node for m in modern.meters} == {*modern.hosts_with("client"), "access-point"}
    assert {m.host for m in modern.meters} == {"meter-shelf"}


@pytest.mark.parametrize("name", list(RACKS))
def test_no_host_is_named_like_a_group(name: str) -> None:
    assert not set(rack(name).hosts) & set(ROLES)  # Ansible warns, and --limit could not tell them apart
