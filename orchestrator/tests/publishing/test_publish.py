# SPDX-License-Identifier: Apache-2.0
"""`netjoule publish`: no canary leaves unless asked for, and what is masked is still a campaign."""

import json
import shutil
from pathlib import Path

import canaries
import lab_topology
import pytest
import synthetic
from bundles import published
from canaries import CANARIES, EUI64, HOST, SECRETS, SERVER
from found_in import Found
from tiny_campaign import table

from netjoule import loads
from netjoule.publishing import bundle
from netjoule.publishing.bundle import publish
from netjoule.publishing.identifiers import Kind
from netjoule.topology import topology
from netjoule.topology.topology import Topology
from netjoule.validation.check import check_campaign

pytestmark = pytest.mark.usefixtures("secrets_of_this_host")


# -- canaries ---------------------------------------------------------------------------------------


def test_the_canaries_are_all_in_the_campaign(canary_campaign):
    assert list(check_campaign(canary_campaign)) == []
    found = Found(canary_campaign)
    assert [name for names in CANARIES.values() for name in names if name not in found] == []
    assert [secret for secret in SECRETS[1:] if secret not in found] == []
    assert EUI64 in found


def test_no_canary_is_in_the_bundle(canary_campaign, tmp_path):
    folder = published(canary_campaign, tmp_path / "x")
    found = Found(folder)
    left = [name for names in CANARIES.values() for name in names if name in found]
    assert left == []
    assert EUI64 not in found
    assert "kanari" not in found
    assert "knri" not in found
    assert list(check_campaign(folder)) == []


@pytest.mark.parametrize("kind", list(Kind))
def test_only_the_kind_that_is_asked_for_stays(canary_campaign, tmp_path, kind):
    found = Found(published(canary_campaign, tmp_path / "x", kind))
    assert [name for name in CANARIES[kind] if name not in found] == []
    others = [name for other, names in CANARIES.items() if other is not kind for name in names]
    assert [name for name in others if name in found] == []
    assert EUI64 not in found


def test_with_all_kinds_everything_stays_but_secrets(canary_campaign, tmp_path):
    folder = published(canary_campaign, tmp_path / "x", *Kind)
    found = Found(folder)
    assert [name for names in CANARIES.values() for name in names if name not in found] == []
    assert EUI64 in found
    events = next(canary_campaign.glob("runs/*/events.csv"))
    details = [row["detail"] for row in table(events)]
    masked = [row["detail"] for row in table(folder / events.relative_to(canary_campaign))]
    changed = {before for before, after in zip(details, masked, strict=True) if before != after}
    assert changed == {text for text in details if any(secret in text for secret in SECRETS)}


@pytest.mark.parametrize("kept", [(), tuple(Kind)])
def test_secrets_never_leave(canary_campaign, tmp_path, kept):
    folder = published(canary_campaign, tmp_path / "x", *kept)
    found = Found(folder)
    assert [secret for secret in SECRETS if secret in found] == []
    document = json.loads((folder / "campaign.json").read_text())["topology"]
    references = {
        document["wifi"]["passphrase"],
        document["meters"][0]["settings"]["password"],
        document["traffic_secret"],
    }
    assert references == {"env:NETJOULE_SECRET_1", "env:NETJOULE_SECRET_2"}
    assert canaries.SECRET_VARIABLE not in found


def test_joins_hold(canary_campaign, tmp_path):
    folder = published(canary_campaign, tmp_path / "x")
    document = json.loads((folder / "campaign.json").read_text())
    client, server = (
        next(name for name, host in document["topology"]["hosts"].items() if role in host["roles"])
        for role in ("client", "server")
    )
    assert {client, server}.isdisjoint({HOST, SERVER})
    assert [path.stem for path in (folder / "radio").glob("*.csv")] == [client]
    assert {row["host"] for row in table(folder / "clocks.csv")} == {client}
    meters = {meter["meter_id"]: meter for meter in document["topology"]["meters"]}
    assert {path.stem for path in (folder / "meters").glob("*.csv")} == set(meters)
    serials = [passport["serial"] for passport in document["meters"]]
    assert len(set(serials)) == 2
    assert all(serial.startswith("serial-") for serial in serials)
    told, typed = document["meters"][0], meters[document["meters"][0]["meter_id"]]
    assert told["serial"] == typed["serial"]
    assert told["serial"] in told["identification"]
    for run in folder.glob("runs/*/run.json"):
        assert json.loads(run.read_text())["hosts"] == {"client": client, "server": server}
        nodes = json.loads((run.parent / "result.json").read_text())["nodes"]
        assert {(node["node"], node["meter_id"] in meters) for node in nodes} == {(client, True)}
        assert json.loads((run.parent / "flow.json").read_text())["sender"]["host"] == client
    address = document["topology"]["hosts"][client]["test_addresses"]["ipv4"].partition("/")[0]
    rows = [row["detail"] for path in folder.glob("runs/*/events.csv") for row in table(path)]
    assert any(f"{address}:5301 refused" in text for text in rows)


def test_what_is_masked_is_still_a_topology_and_a_workload(canary_campaign, tmp_path):
    folder = published(canary_campaign, tmp_path / "x")
    document = json.loads((folder / "campaign.json").read_text())
    assert topology.load(folder / "topology.yaml").document == document["topology"]
    assert loads.read(folder / "workload.yaml").document | {"seed": 11} == document["workload"]


@pytest.mark.parametrize("name", ["seed-2013", "modern", "two-clients"])
def test_shipped_racks_stay_valid_when_they_are_masked(name, tmp_path):
    place = topology.load(Path(__file__).parents[3] / f"testbed/topologies/{name}.yaml")
    _as_topology_of(tmp_path / "c", place)
    folder = published(tmp_path / "c", tmp_path / "x", incomplete=True)
    masked = topology.load(folder / "topology.yaml")
    assert masked.name == place.name
    assert [meter.adapter for meter in masked.meters] == [meter.adapter for meter in place.meters]
    assert [meter.device_model for meter in masked.meters] == [meter.device_model for meter in place.meters]


def test_a_lab_with_routes_stays_valid_when_it_is_masked(tmp_path):
    _as_topology_of(tmp_path / "c", Topology.from_document(lab_topology.LAB, where="test"))
    masked = topology.load(published(tmp_path / "c", tmp_path / "x", incomplete=True) / "topology.yaml")
    assert masked.document["hosts"]["ap"]["control_address"].startswith("198.18.")
    assert set(masked.hosts) == {"host-1", "host-2", "ap", "host-3", "host-4"}


def _as_topology_of(path: Path, place: Topology) -> None:
    """A campaign that was made but not run, on another testbed."""
    synthetic.create(path, topology=place).close()


# -- captures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "there"), [((), False), ((Kind.IP,), False), ((Kind.IP, Kind.MAC), True), (tuple(Kind), True)]
)
def test_captures_go_along_only_with_addresses(canary_campaign, tmp_path, kept, there):
    folder = published(canary_campaign, tmp_path / "x", *kept)
    captures = list(folder.glob("runs/*/*.pcapng"))
    assert bool(captures) is there
    number = len(list(canary_campaign.glob("runs/*/*.pcapng")))
    said = (folder / "README.md").read_text()
    assert f"Not in this bundle: captures {0 if there else number}, other files 1." in said


def test_a_capture_that_names_somebody_stays_out(canary_campaign, tmp_path):
    copy = tmp_path / "c"
    shutil.copytree(canary_campaign, copy)
    capture = next(copy.glob("runs/*/capture.pcapng"))
    capture.write_bytes(b"\0" * (bundle._BLOCK - 5) + canaries.SSID.encode() + b"\0" * 99)
    made = publish(copy, tmp_path / "b.zip", kept=frozenset((Kind.IP, Kind.MAC)))
    assert [name for name in made.terms.left_out if "a name which is masked" in name]
    everything = publish(copy, tmp_path / "c.zip", kept=frozenset((Kind.IP, Kind.MAC, Kind.SSID)))
    assert not [name for name in everything.terms.left_out if "capture" in name]
