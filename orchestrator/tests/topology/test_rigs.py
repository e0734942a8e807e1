# SPDX-License-Identifier: Apache-2.0
"""Rigs of a topology: what each is by itself, and which cannot measure beside another."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_topology import LAB

from netjoule.core.errors import UsageError
from netjoule.topology import topology
from netjoule.topology.topology import Topology

SHIPPED = Path(__file__).parents[3] / "testbed-topology.yaml"
SECOND: dict[str, Any] = {
    "hosts": {
        name: {"control_address": f"192.0.2.{number}"}
        for number, name in enumerate(("laptop", "board", "ap", "tower", "shelf"), 21)
    },
    "wifi": {"channel": 44},
    "meters": {"ap-power": {"resource": "/dev/ttyUSB1"}},
}


def rack(second: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The lab with a rig that is as it says, and a second one."""
    rigs = {"left": {}, "right": copy.deepcopy(SECOND if second is None else second)}
    return copy.deepcopy(LAB) | {"rigs": rigs} | changes


def without(*place: str) -> dict[str, Any]:
    """The second rig without one of its changes."""
    second = copy.deepcopy(SECOND)
    part = second
    for step in place[:-1]:
        part = part[step]
    del part[place[-1]]
    return second


def load(tmp_path: Path, document: dict[str, Any]) -> Topology:
    path = tmp_path / "rack.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return topology.load(path)


def test_a_rig_is_a_topology_of_its_own_with_the_same_names(tmp_path: Path) -> None:
    found = load(tmp_path, rack())
    assert found.rigs == ("left", "right")
    left, right = map(found.of_rig, found.rigs)
    assert (left.rig, right.rig) == ("left", "right")
    assert left.document == {**LAB, "rig": "left"}
    assert left.hosts.keys() == right.hosts.keys()
    assert right.host("laptop").ssh.address == "192.0.2.21"
    assert right.wifi == {**LAB["wifi"], "channel": 44}
    assert [(meter.meter_id, meter.resource) for meter in right.meters] == [
        ("laptop-power", "usbtmc:/dev/usbtmc0"),
        ("ap-power", "/dev/ttyUSB1"),
    ]
    # What campaign.json keeps of it is the same again.
    assert Topology.from_document(right.document, where="campaign.json") == right


def test_null_takes_away_what_a_rig_does_not_have(tmp_path: Path) -> None:
    second = copy.deepcopy(SECOND)
    second["hosts"]["board"] = None
    assert "board" not in load(tmp_path, rack(second)).of_rig("right").hosts


def test_without_a_number_the_first_rig_is_taken_by_itself(tmp_path: Path) -> None:
    assert load(tmp_path, rack()).on_rigs(None).document == {**LAB, "rig": "left"}
    assert topology.load(SHIPPED).on_rigs(None) == topology.load(SHIPPED)


def test_rigs_have_places_of_labgrid_of_their_own(tmp_path: Path) -> None:
    reservation = {"labgrid": "bench-1", "power_cycle": {"laptop": "laptop"}}
    document = rack(SECOND | {"reservation": {"labgrid": "bench-2"}}, reservation=reservation)
    left, right = (load(tmp_path, document).of_rig(rig) for rig in ("left", "right"))
    assert (left.labgrid_place, right.labgrid_place) == ("bench-1", "bench-2")
    assert left.power_cycle == right.power_cycle == {"laptop": "laptop"}


def test_a_number_takes_the_first_rigs_and_no_more_than_there_are(tmp_path: Path) -> None:
    found = load(tmp_path, rack())
    assert found.on_rigs(1).rigs == ("left",)
    assert found.on_rigs(2).rigs == ("left", "right")
    with pytest.raises(UsageError, match="3 rigs are asked for, and topology rack describes 2"):
        found.on_rigs(3)
    with pytest.raises(UsageError, match="2 rigs are asked for, and topology rack describes 1"):
        load(tmp_path, LAB).on_rigs(2)


def test_an_emulated_testbed_has_as_many_as_are_asked_for() -> None:
    found = topology.load(SHIPPED).on_rigs(3)
    assert found.rigs == ("rig1", "rig2", "rig3")
    assert found.of_rig("rig2").document == {**topology.load(SHIPPED).document, "rig": "rig2"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            rack(without("hosts", "tower")),
            r"rigs left and right share the host at 192\.0\.2\.2, port 22 \(hosts\.tower and hosts\.tower\)",
        ),
        (rack(without("meters", "ap-power")), r"share the meter at /dev/ttyUSB0 \(meters\.ap-power"),
        (
            rack(without("wifi", "channel")),
            r"share air time: channel 36 \(40 MHz\) and channel 36 \(40 MHz\) overlap",
        ),
        (
            rack({**SECOND, "wifi": {"channel": 40, "width_mhz": 20}}, room="cellar"),
            r"channel 36 \(40 MHz\) and channel 40 \(20 MHz\) overlap in room cellar",
        ),
        (
            rack(reservation={"labgrid": "bench"}),
            r"rigs left and right share the place bench of labgrid; .*change reservation\.labgrid",
        ),
        (
            rack({**SECOND, "meters": {**SECOND["meters"], "laptop-power": {"node": "board"}}}),
            "do not have the same meters on the same hosts",
        ),
    ],
)
def test_rigs_that_would_disturb_each_other_are_refused(
    tmp_path: Path, document: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        load(tmp_path, document)
    assert "field rigs.right" in str(error.value)


def test_rigs_in_two_rooms_may_have_one_channel(tmp_path: Path) -> None:
    second = without("wifi", "channel") | {"room": "attic"}
    assert load(tmp_path, rack(second)).of_rig("right").wifi["channel"] == 36


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((1, 20), (6, 20), True),
        ((1, 20), (4, 20), False),
        ((1, 40), (6, 20), False),  # 1 and 5
        ((36, 80), (48, 20), False),
        ((36, 80), (149, 80), True),
        ((36, 20), (40, 20), True),
    ],
)
def test_air_is_shared_where_channels_overlap(
    tmp_path: Path, one: tuple[int, int], other: tuple[int, int], apart: bool
) -> None:
    def network(channel: int, width_mhz: int) -> dict[str, Any]:
        return {"channel": channel, "width_mhz": width_mhz, "mode": "11ac" if width_mhz == 80 else "11n"}

    document = rack({**SECOND, "wifi": network(*other)})
    document["wifi"] |= network(*one)
    if apart:
        load(tmp_path, document)
    else:
        with pytest.raises(UsageError, match="share air time"):
            load(tmp_path, document)


def test_a_fault_of_a_rig_is_named_where_it_stands_in_the_file(tmp_path: Path) -> None:
    second = copy.deepcopy(SECOND)
    second["wifi"]["channel"] = 37
    path = tmp_path / "rack.yaml"
    text = yaml.safe_dump(rack(second), sort_keys=False)
    path.write_text(text)
    line = next(number for number, words in enumerate(text.splitlines(), 1) if "channel: 37" in words)
    with pytest.raises(UsageError, match=f"line {line}, field rigs.right.wifi.channel"):
        topology.load(path)


def test_a_meter_of_a_rig_is_named_by_its_meter_id(tmp_path: Path) -> None:
    second = copy.deepcopy(SECOND)
    second["meters"]["ap-power"]["host"] = "nobody"
    with pytest.raises(UsageError, match=r"field rigs\.right\.meters\.ap-power\.host"):
        load(tmp_path, rack(second))


def test_two_rigs_may_read_meters_of_one_name_on_hosts_of_their_own(tmp_path: Path) -> None:
    found = load(tmp_path, rack())
    # usbtmc:/dev/usbtmc0 of both is plugged into a shelf of its own.
    assert {found.of_rig(rig).meters[0].resource for rig in found.rigs} == {"usbtmc:/dev/usbtmc0"}
