# SPDX-License-Identifier: Apache-2.0
"""Ranges that a topology leaves open, and the arguments of every emulated instrument."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import raises
from runner_fakes import PLACE, START_NS, Script, fake_load, new_campaign, topology, workload

from netjoule.core import programs
from netjoule.core.errors import RunFailed, UsageError
from netjoule.design import instruments
from netjoule.execution import ranging
from netjoule.hosts.host import LocalHost
from netjoule.loads.flow.flows import flows_of, heaviest
from netjoule.loads.flow.settings import FlowSettings
from netjoule.store.campaign import Campaign
from netjoule.testbeds.base import MeterPlace
from netjoule.testbeds.emulated.config import (
    check_emulations,
    fault_requests,
    fault_socket,
    instrument_arguments,
)
from netjoule.topology.topology import Meter, Topology
from netjoule_meters.emulated.registry import EMULATED

AUTO = {"voltage_range_v": "auto", "current_range_a": "auto"}


def meter(adapter: str, **settings: object) -> Meter:
    return Meter("m0", "client", adapter, "emulated", dict(settings), {"model": "constant"})


def open_ranges() -> Topology:
    document = topology().document
    document["meters"][0]["settings"] = dict(AUTO)
    return Topology.from_document(document, where="test")


def test_the_heaviest_flows_are_greatest_rate_with_both_extreme_sizes() -> None:
    load = workload(payload_bytes=[64, 500, 1440], offered_rate_mbps=[1, 30])
    found = [condition.factors for condition in heaviest(FlowSettings.of(load))]
    assert [(f["payload_bytes"], f["offered_rate_mbps"], f["transport"]) for f in found] == [
        (1440, 30.0, "udp"),
        (64, 30.0, "udp"),
    ]


def test_a_pass_has_all_flows_of_a_run_at_every_client() -> None:
    load = workload(clients=2, direction="both", beside=[{"transport": "tcp", "offered_rate_mbps": 5}])
    (condition,) = heaviest(FlowSettings.of(load))
    flows = flows_of(FlowSettings.of(load), condition, ["a", "b"])
    each = [("udp", "up", 10.0), ("udp", "down", 10.0), ("tcp", "up", 5.0), ("tcp", "down", 5.0)]
    assert [(flow.client, flow.transport, flow.direction, flow.offered_rate_mbps) for flow in flows] == [
        (client, *what) for client in ("a", "b") for what in each
    ]


def test_a_pass_is_a_dozen_updates_of_the_slowest_meter() -> None:
    assert ranging.pass_s([meter("wt210", **AUTO)]) == ranging.LEAST_PASS_S
    assert ranging.pass_s([meter("wt210", **AUTO, update_interval_s=5)]) == 60.0


def test_auto_is_a_range_of_the_topology_and_counts_as_the_widest_before_the_pass() -> None:
    where = open_ranges()
    assert instruments.wants_ranging(where.meters[0])
    assert instruments.instrument_of(where.meters[0]).measuring_range.power_w == 600.0 * 20.0
    assert [instruments.pace_of(meter) for meter in where.meters]
    assert not instruments.wants_ranging(topology().meters[0])


class Bed:
    """A testbed with its meters on this host."""

    place = PLACE

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self._meters = MeterPlace(LocalHost("here"), str(folder / "m.json"), campaign.topology.meters)

    async def meter_places(self) -> list[MeterPlace]:
        return [self._meters]


def run_pass(tmp_path: Path, monkeypatch, said: str, status: int = 0) -> tuple[dict, Script]:
    """A pass whose `netjoule-meters range` is a shell script that says `said`."""
    program = tmp_path / "netjoule-meters"
    stream = "" if status == 0 else " >&2"
    program.write_text(f"#!/bin/sh\necho '{said}'{stream}\nexit {status}\n")
    program.chmod(0o755)
    script = Script()
    monkeypatch.setattr(programs, "find", lambda _name: str(program))
    with new_campaign(tmp_path / "c", where=open_ranges()) as campaign:
        bed: Any = Bed(tmp_path, campaign)
        found = asyncio.run(ranging.find_ranges(campaign, bed, fake_load(script)))
        campaign.fix_settings({name: one["settings"] for name, one in found.items()})
        kept = json.loads((campaign.path / "campaign.json").read_text())
    assert kept["topology"]["meters"][0]["settings"] == found["m0"]["settings"]
    return found, script


def test_a_pass_sends_the_heaviest_flows_and_fixes_what_it_found(tmp_path, monkeypatch) -> None:
    settings = {"voltage_range_v": 300.0, "current_range_a": 0.1}
    seen = {"settings": settings, "most_v": 230.5, "most_a": 0.054, "most_w": 12.5, "readings": 40, "over": 0}
    found, script = run_pass(tmp_path, monkeypatch, json.dumps(seen))
    assert found == {"m0": seen}
    assert script.of("go") == ["ranging"] and script.of("end") == ["ranging"]
    assert ranging.words("m0", seen) == (
        "m0: at most 230.5 V, 0.054 A, 12.5 W under the heaviest work; "
        "now fixed: voltage_range_v 300, current_range_a 0.1"
    )


@pytest.mark.parametrize(("status", "kind"), [(2, UsageError), (1, RunFailed), (3, RunFailed)])
def test_a_pass_that_fails_says_why(tmp_path, monkeypatch, status, kind) -> None:
    with raises(kind):
        run_pass(tmp_path, monkeypatch, "netjoule-meters: no range holds 30 A", status)


def test_a_campaign_with_fixed_ranges_needs_no_pass(tmp_path) -> None:
    with new_campaign(tmp_path / "c", where=fixed()) as campaign:
        bed: Any = Bed(tmp_path, campaign)
        nothing = asyncio.run(ranging.find_ranges(campaign, bed, fake_load(Script())))
    assert nothing == {}


def fixed() -> Topology:
    document = topology().document
    document["meters"][0]["settings"] = {"voltage_range_v": 300, "current_range_a": 0.1}
    return Topology.from_document(document, where="test")


@pytest.mark.parametrize("name", [n for n, m in EMULATED.items() if m.adapter == n])
def test_every_emulated_instrument_can_stand_in_for_its_adapter(name, tmp_path) -> None:
    argv = instrument_arguments(meter(name), tmp_path / "m.tty", origin_ns=START_NS, seed=5)
    assert argv[:4] == ["emulate", name, "--power-stream", "-"]
    assert ("--link" in argv) != ("--listen" in argv)
    assert "--seed" in argv and f"--origin-ns={START_NS}" in argv


@pytest.mark.parametrize(
    ("emulated", "variant"),
    [
        (meter("wt310", model="WT310E"), "wt310e"),
        (meter("wt310"), "wt310"),
        (meter("socket", preset="tasmota"), "tasmota"),
        (meter("isockets", format="csv", request="/reading.csv"), "csv"),
    ],
)
def test_the_settings_say_which_variant_stands_in(emulated, variant, tmp_path) -> None:
    argv = instrument_arguments(emulated, tmp_path / "m.tty", origin_ns=0, seed=5)
    assert argv[argv.index("--variant") + 1] == variant


def test_options_and_faults_of_an_emulated_instrument_are_handed_on(tmp_path) -> None:
    lossy = Meter(
        "m0", "client", "cc128", "emulated", {}, {"model": "constant"},
        faults=({"t_s": 3, "fault": "drop", "with": {"count": 2}}, {"t_s": 1, "fault": "silence"}),
        emulation={"miss_ratio": 0, "history": False},
    )  # fmt: skip
    argv = instrument_arguments(lossy, tmp_path / "m0.tty", origin_ns=0, seed=5)
    assert argv[argv.index("--set") :][:4] == ["--set", "miss_ratio=0", "--set", "history=false"]
    assert argv[argv.index("--control") + 1] == str(fault_socket(tmp_path / "m0.tty"))
    assert fault_requests(lossy) == [(1.0, {"fault": "silence"}), (3.0, {"fault": "drop", "count": 2})]


@pytest.mark.parametrize("name", ["faults", "emulation"])
def test_only_emulated_meters_have_faults_and_options(name) -> None:
    document = topology().document
    value = [{"t_s": 1, "fault": "drop"}] if name == "faults" else {"miss_ratio": 0}
    plug = {"meter_id": "m", "node": "client", "adapter": "cc128", "resource": "/dev/ttyS0", name: value}
    with raises(UsageError):
        Topology.from_document({**document, "meters": [plug]}, where="test")


def test_an_adapter_without_an_emulated_instrument_is_refused() -> None:
    document = topology().document
    document["meters"][0]["adapter"] = "rapl"
    with raises(UsageError):
        check_emulations(Topology.from_document(document, where="test"))
