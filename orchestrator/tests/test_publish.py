# SPDX-License-Identifier: Apache-2.0
"""`netjoule publish`: no canary leaves unless asked for; bundles are whole, the same again, and usable."""

import errno
import fcntl
import gzip
import hashlib
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import canaries
import lab_topology
import pytest
import synthetic
import yaml
from canaries import CANARIES, EUI64, HOST, SECRETS, SERVER
from found_in import Found
from tiny_campaign import table

from netjoule import analysis, topology, workload
from netjoule.check import check_campaign
from netjoule.cli import run_command
from netjoule.errors import InvalidData, RunFailed, UsageError
from netjoule.publishing import archive, bundle
from netjoule.publishing.bundle import publish
from netjoule.publishing.kinds import Kind
from netjoule.topology import Topology

GOLDEN = Path(__file__).parents[2] / "results/golden/guest-hwsim"


@pytest.fixture(scope="session")
def canary_campaign(tmp_path_factory) -> Path:
    return canaries.campaign(tmp_path_factory.mktemp("canaries") / "bench")


@pytest.fixture(autouse=True)
def secrets_of_this_host(monkeypatch):
    monkeypatch.setenv(canaries.SECRET_VARIABLE, canaries.SECRET_VALUE)


def unpacked(made: Path, folder: Path) -> Path:
    """The one folder that a bundle holds."""
    shutil.unpack_archive(made, folder, {".zip": "zip", ".xz": "xztar"}.get(made.suffix, "gztar"))
    (found,) = folder.iterdir()
    return found


def published(campaign: Path, folder: Path, *kept: Kind) -> Path:
    folder.mkdir(parents=True)
    return unpacked(publish(campaign, folder / "b.zip", kept=frozenset(kept)).path, folder / "unpacked")


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
    assert workload.load(folder / "workload.yaml").document | {"seed": 11} == document["workload"]


@pytest.mark.parametrize("name", ["seed-2013", "modern", "two-clients"])
def test_shipped_racks_stay_valid_when_they_are_masked(name, tmp_path):
    place = topology.load(Path(__file__).parents[2] / f"testbed/topologies/{name}.yaml")
    _as_topology_of(tmp_path / "c", place)
    folder = published(tmp_path / "c", tmp_path / "x")
    masked = topology.load(folder / "topology.yaml")
    assert masked.name == place.name
    assert [meter.adapter for meter in masked.meters] == [meter.adapter for meter in place.meters]
    assert [meter.device_model for meter in masked.meters] == [meter.device_model for meter in place.meters]


def test_a_lab_with_routes_stays_valid_when_it_is_masked(tmp_path):
    _as_topology_of(tmp_path / "c", Topology.from_document(lab_topology.LAB, where="test"))
    masked = topology.load(published(tmp_path / "c", tmp_path / "x") / "topology.yaml")
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
    assert ("capture.pcapng (a capture;" in (folder / "README.md").read_text()) is not there


def test_a_capture_that_names_somebody_stays_out(canary_campaign, tmp_path):
    copy = tmp_path / "c"
    shutil.copytree(canary_campaign, copy)
    capture = next(copy.glob("runs/*/capture.pcapng"))
    capture.write_bytes(b"\0" * (bundle._BLOCK - 5) + canaries.SSID.encode() + b"\0" * 99)
    made = publish(copy, tmp_path / "b.zip", kept=frozenset((Kind.IP, Kind.MAC)))
    assert [name for name in made.terms.left_out if "a name which is masked" in name]
    everything = publish(copy, tmp_path / "c.zip", kept=frozenset((Kind.IP, Kind.MAC, Kind.SSID)))
    assert not [name for name in everything.terms.left_out if "capture" in name]


# -- what a bundle is -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", archive.SUFFIXES)
def test_the_same_campaign_gives_the_same_bytes(canary_campaign, tmp_path, suffix):
    copy = tmp_path / "elsewhere" / "other-folder"
    shutil.copytree(canary_campaign, copy)
    for path in copy.rglob("*"):
        path.touch()
    one, other = (publish(c, tmp_path / f"{n}{suffix}") for n, c in enumerate((canary_campaign, copy)))
    assert one.path.read_bytes() == other.path.read_bytes()
    assert one.sha256 == hashlib.sha256(one.path.read_bytes()).hexdigest()


def test_checksums_are_those_that_sha256sum_checks(campaign_dir, tmp_path):
    made = publish(campaign_dir, tmp_path / "b.tar.gz")
    folder = unpacked(made.path, tmp_path / "unpacked")
    checked = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(": OK\n") == made.files - 1
    (folder / "plan.csv").write_text("x")
    assert subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, check=False
    ).returncode


def test_archives_hold_one_folder_with_safe_names_and_no_owner(canary_campaign, tmp_path):
    made = publish(canary_campaign, tmp_path / "b.tar.gz")
    with tarfile.open(made.path) as packed:
        members = packed.getmembers()
    assert {m.name.split("/")[0] for m in members} == {"user-2-on-host-1"}
    assert {(m.uid, m.gid, m.uname, m.gname, m.mode, m.isfile()) for m in members} == {
        (0, 0, "", "", 0o644, True)
    }
    assert all(set(m.name) <= set(archive_letters()) and ".." not in m.name for m in members)
    with gzip.open(made.path) as packed:
        assert packed.read(1)
    assert made.path.read_bytes()[4:8] == bytes(4)  # no time of day
    with zipfile.ZipFile(publish(canary_campaign, tmp_path / "b.zip").path) as zipped:
        assert [entry.filename for entry in zipped.infolist()] == [m.name for m in members]
        assert zipped.testzip() is None


def archive_letters() -> str:
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"


def test_citation_licence_and_data_package_say_the_same(campaign_dir, tmp_path):
    authors = ("Doe, Jo", "A Group")
    made = publish(campaign_dir, tmp_path / "b.zip", licence="ODbL-1.0", authors=authors)
    folder = unpacked(made.path, tmp_path / "unpacked")
    citation = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert (citation["cff-version"], citation["type"], citation["license"]) == (
        "1.2.0",
        "dataset",
        "ODbL-1.0",
    )
    assert citation["authors"] == [{"family-names": "Doe", "given-names": "Jo"}, {"name": "A Group"}]
    assert {"message", "title", "authors", "cff-version"} <= set(citation)
    package = json.loads((folder / "datapackage.json").read_text())
    assert package["licenses"][0]["name"] == "ODbL-1.0"
    assert package["contributors"][0] == {"title": "Doe, Jo", "roles": ["creator"]}
    assert "ODbL-1.0" in (folder / "LICENCE.txt").read_text()
    assert "in this model" in (folder / "README.md").read_text()


def test_without_authors_the_citation_is_anonymous(campaign_dir, tmp_path):
    folder = unpacked(publish(campaign_dir, tmp_path / "b.zip").path, tmp_path / "unpacked")
    citation = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert citation["authors"] == [{"name": "anonymous"}]
    assert citation["license"] == "CC-BY-4.0"


def test_derived_and_foreign_files_are_left_out_and_the_latter_named(campaign_dir, tmp_path):
    for name in ("tables/runs.csv", "figures/ea.svg", "report.html", "notes.txt", "runs/b01m001-udp-a1/log"):
        (campaign_dir / name).parent.mkdir(exist_ok=True)
        (campaign_dir / name).write_text("x")
    made = publish(campaign_dir, tmp_path / "b.zip")
    folder = unpacked(made.path, tmp_path / "unpacked")
    assert made.terms.left_out == ("notes.txt", "runs/b01m001-udp-a1/log")
    assert not any(
        (folder / name).exists() for name in ("tables", "figures", "report.html", "notes.txt", ".lock")
    )


def test_a_profile_travels_as_a_file_of_its_own(tmp_path):
    root = Path(__file__).parents[2]
    talk = workload.load(root / "workloads/talk.yaml")
    synthetic.create(tmp_path / "c", workload=talk).close()
    folder = published(tmp_path / "c", tmp_path / "x")
    again = workload.load(folder / "workload.yaml")
    assert again.document["profile"] == talk.document["profile"]


def test_numbers_are_those_of_the_campaign(canary_campaign, tmp_path):
    folder = published(canary_campaign, tmp_path / "x")
    for name in ("plan.csv",):
        assert (folder / name).read_bytes() == (canary_campaign / name).read_bytes()
    for run in canary_campaign.glob("runs/*"):
        result, masked = (
            json.loads((f / "runs" / run.name / "result.json").read_text()) for f in (canary_campaign, folder)
        )
        for node, other in zip(result["nodes"], masked["nodes"], strict=True):
            assert {k: v for k, v in node.items() if k not in ("node", "meter_id")} == {
                k: v for k, v in other.items() if k not in ("node", "meter_id")
            }
        assert (run / "intervals.csv").read_bytes() == (
            folder / "runs" / run.name / "intervals.csv"
        ).read_bytes()


def test_the_golden_campaign_is_published_and_checked(tmp_path):
    folder = published(GOLDEN, tmp_path / "x")
    assert list(check_campaign(folder)) == []
    found = Found(folder)
    assert "netjoule-guest" not in found
    assert "10.77.0.2" not in found
    assert "02:00:00:00:01:00" not in found
    assert {path.name for path in (folder / "radio").iterdir()} == {"access_point.csv", "client.csv"}


def test_the_re_analysis_gives_the_tables_of_the_campaign(tmp_path):
    campaign = tmp_path / "guest-hwsim"
    shutil.copytree(GOLDEN, campaign)
    folder = published(campaign, tmp_path / "x")
    analysis.run_analysis("analyse", folder, lambda _: None)
    for path in (GOLDEN / "tables").glob("*.csv"):
        assert (folder / "tables" / path.name).read_bytes() == path.read_bytes(), path.name
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert checked.returncode == 0
    assert list(check_campaign(folder)) == []


# -- what is refused, and what a failure leaves ----------------------------------------------------------


def nothing_left(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == []


def test_a_campaign_with_a_defect_is_refused_with_exit_code_4(campaign_dir, tmp_path, capsys):
    (campaign_dir / "plan.csv").write_text("x\n")
    place = tmp_path / "made"
    place.mkdir()
    assert run_command(["publish", str(campaign_dir), "--out", str(place / "b.zip")]) == 4
    said = capsys.readouterr().err
    assert "plan.csv" in said
    assert "netjoule check" in said
    assert nothing_left(place)


def test_there_is_no_force(campaign_dir):
    assert run_command(["publish", str(campaign_dir), "--force"]) == 2


@pytest.mark.parametrize("words", ["b.rar", "b", ".zip", "nowhere/b.zip"])
def test_a_name_that_can_be_no_bundle_is_refused_before_any_work(campaign_dir, tmp_path, words, monkeypatch):
    monkeypatch.setattr(bundle, "check_campaign", lambda _: pytest.fail("work was done"))
    with pytest.raises(UsageError):
        publish(campaign_dir, tmp_path / words)


def test_nothing_is_overwritten(campaign_dir, tmp_path):
    taken = tmp_path / "b.zip"
    taken.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        publish(campaign_dir, taken)
    (tmp_path / "c.zip").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="exists"):
        publish(campaign_dir, tmp_path / "c.zip")
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_meanwhile_is_left_alone(campaign_dir, tmp_path, monkeypatch, links):
    place = tmp_path / "made"
    place.mkdir()
    whole = archive.written

    def written(*arguments):
        whole(*arguments)
        (place / "b.zip").write_text("mine")

    monkeypatch.setattr(archive, "written", written)
    if not links:
        monkeypatch.setattr(archive.os, "link", refusing(errno.EPERM))
    with pytest.raises(UsageError, match="exists"):
        publish(campaign_dir, place / "b.zip")
    assert [path.name for path in place.iterdir()] == ["b.zip"]
    assert (place / "b.zip").read_text() == "mine"


def refusing(number: int):
    def refuse(*_arguments, **_named):
        raise OSError(number, "refused")

    return refuse


def test_a_file_system_without_hard_links_will_do(campaign_dir, tmp_path, monkeypatch):
    expected = publish(campaign_dir, tmp_path / "a.zip").path.read_bytes()
    monkeypatch.setattr(archive.os, "link", refusing(errno.EPERM))
    assert publish(campaign_dir, tmp_path / "b.zip").path.read_bytes() == expected


@pytest.mark.parametrize("where", ["papers", "archive", "place"])
def test_a_full_disk_leaves_nothing(campaign_dir, tmp_path, monkeypatch, where):
    place = tmp_path / "made"
    place.mkdir()
    if where == "papers":
        monkeypatch.setattr(bundle.papers, "write", refusing(errno.ENOSPC))
    elif where == "archive":
        monkeypatch.setattr(archive.shutil, "copyfileobj", refusing(errno.ENOSPC))
    else:
        monkeypatch.setattr(archive.os, "link", refusing(errno.ENOSPC))
    with pytest.raises(RunFailed, match="the disk is full; nothing was left behind; free some space"):
        publish(campaign_dir, place / "b.zip")
    assert nothing_left(place)


def test_a_stop_leaves_nothing(campaign_dir, tmp_path, monkeypatch):
    place = tmp_path / "made"
    place.mkdir()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle.papers, "write_sums", stopped)
    assert run_command(["publish", str(campaign_dir), "--out", str(place / "b.zip")]) != 0
    assert nothing_left(place)


def test_a_campaign_that_is_being_written_is_refused(campaign_dir, tmp_path):
    with (campaign_dir / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another netjoule is writing"):
            publish(campaign_dir, tmp_path / "b.zip")


def test_the_campaign_stays_as_it_was(canary_campaign, tmp_path):
    before = {p: p.read_bytes() for p in canary_campaign.rglob("*") if p.is_file()}
    publish(canary_campaign, tmp_path / "b.zip")
    assert {p: p.read_bytes() for p in canary_campaign.rglob("*") if p.is_file()} == before


def test_a_link_out_of_the_campaign_is_refused(campaign_dir, tmp_path):
    (campaign_dir / "meters" / "m.csv").unlink()
    (campaign_dir / "meters" / "m.csv").symlink_to("/etc/hostname")
    with pytest.raises(InvalidData, match="symbolic link"):
        publish(campaign_dir, tmp_path / "b.zip")


def test_the_last_check_finds_what_masking_missed(canary_campaign, tmp_path, monkeypatch):
    monkeypatch.setattr("netjoule.publishing.masking.Masker.free", lambda _, text: text)
    place = tmp_path / "made"
    place.mkdir()
    with pytest.raises(RunFailed, match="a defect of netjoule"):
        publish(canary_campaign, place / "b.zip")
    assert nothing_left(place)


# -- the command ------------------------------------------------------------------------------------------


def test_the_command_tells_what_it_did(canary_campaign, tmp_path, capsys):
    words = ["publish", str(canary_campaign), "--out", str(tmp_path / "b.zip"), "--include", "MAC, ip"]
    assert run_command([*words, "--author", "Doe, Jo"]) == 0
    said = capsys.readouterr().out
    assert "kept: ip, mac" in said
    assert "masked: ssid 3, host" in said
    assert "left out: notes-of-user-2.txt" in said
    assert "CC-BY-4.0 (--licence chooses)" in said
    assert "b.zip" in said.splitlines()[-1]
    assert not any(name in said for name in ("kanari", "KNRI"))


def test_for_machines_it_is_one_document(campaign_dir, tmp_path, capsys):
    assert run_command(["publish", str(campaign_dir), "--out", str(tmp_path / "b.tgz"), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert told["event"] == "published"
    assert told["sha256"] == hashlib.sha256((tmp_path / "b.tgz").read_bytes()).hexdigest()
    assert set(told["masked"]) == set(Kind)


def test_by_default_the_bundle_stands_beside_the_campaign(campaign_dir):
    assert run_command(["publish", str(campaign_dir)]) == 0
    assert (campaign_dir.parent / "tiny.zip").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--include", "ssid,names"],
            "no kind 'names' to include; there are ssid, mac, ip, host, user, serial",
        ),
        (["--licence", "mine"], "no licence 'mine' for data; there are CC-BY-4.0"),
        (["--author", ", Jo"], "--author ', Jo' is no name"),
        (["--author", "Doe,"], "is no name"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(campaign_dir, words, message, capsys):
    assert run_command(["publish", str(campaign_dir), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_is_no_campaign_is_refused(tmp_path, capsys):
    assert run_command(["publish", str(tmp_path)]) == 2
    assert "is not a campaign" in capsys.readouterr().err
