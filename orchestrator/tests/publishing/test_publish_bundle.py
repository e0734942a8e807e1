# SPDX-License-Identifier: Apache-2.0
"""What a bundle of `netjoule publish` is: whole, the same again, and usable."""

import gzip
import hashlib
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import synthetic
import yaml
from bundles import published, unpacked
from found_in import Found
from golden_sentences import same_sentence

from netjoule import loads
from netjoule.analysis import analysis
from netjoule.cli.app import run_command
from netjoule.publishing import archive
from netjoule.publishing.bundle import publish
from netjoule.publishing.papers import LICENCES, absent
from netjoule.validation.check import check_campaign
from netjoule_contracts.documents import typed
from netjoule_contracts.types.topology import Topology

DATA = Path(__file__).parents[1] / "data"
GOLDEN = Path(__file__).parents[3] / "results/golden/guest-hwsim"

pytestmark = pytest.mark.usefixtures("secrets_of_this_host")


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


@pytest.mark.parametrize("suffix", archive.SUFFIXES)
def test_checksums_are_those_that_sha256sum_checks(campaign_dir, tmp_path, suffix):
    made = publish(campaign_dir, tmp_path / f"b{suffix}")
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
    readme = (folder / "README.md").read_text()
    assert "in this model" in readme
    assert ", 1 block; power" in readme


def test_nobody_is_named_and_no_licence_is_granted_without_being_told(campaign_dir, tmp_path):
    folder = unpacked(publish(campaign_dir, tmp_path / "b.zip").path, tmp_path / "unpacked")
    citation = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert citation["authors"] == [{"name": "anonymous"}]
    assert "license" not in citation
    assert "licenses" not in json.loads((folder / "datapackage.json").read_text())
    said = (folder / "LICENCE.txt").read_text()
    same_sentence(said)
    assert not any(name in said + (folder / "README.md").read_text() for name in LICENCES)


def test_derived_and_foreign_files_are_left_out_and_the_latter_named(campaign_dir, tmp_path):
    for name in ("tables/runs.csv", "figures/ea.svg", "report.html", "notes.txt", "runs/b01m001-udp-a1/log"):
        (campaign_dir / name).parent.mkdir(exist_ok=True)
        (campaign_dir / name).write_text("x")
    made = publish(campaign_dir, tmp_path / "b.zip")
    folder = unpacked(made.path, tmp_path / "unpacked")
    assert made.terms.left_out == ("notes.txt", "runs/b01m001-udp-a1/log")
    assert not any(b"notes.txt" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert "Not in this bundle: captures 0, other files 2." in (folder / "README.md").read_text()
    package = json.loads((folder / "datapackage.json").read_text())
    assert package["left_out"] == {"captures": 0, "others": 2}
    assert not any(
        (folder / name).exists() for name in ("tables", "figures", "report.html", "notes.txt", ".lock")
    )


def test_a_profile_travels_as_a_file_of_its_own(tmp_path):
    root = Path(__file__).parents[3]
    talk = loads.read(root / "workloads/flow/talk.yaml")
    synthetic.create(tmp_path / "c", workload=talk).close()
    folder = published(tmp_path / "c", tmp_path / "x", incomplete=True)
    again = loads.read(folder / "workload.yaml")
    assert again.document["factors"]["profile"] == talk.document["factors"]["profile"]


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
    for place in (campaign, folder):
        analysis.run_analysis("analyse", place, lambda _: None)
    tables = list((campaign / "tables").glob("*.csv"))
    assert {path.name for path in tables} == {path.name for path in (GOLDEN / "tables").glob("*.csv")}
    for path in tables:
        assert (folder / "tables" / path.name).read_bytes() == path.read_bytes(), path.name
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert checked.returncode == 0
    assert list(check_campaign(folder)) == []


def test_an_imported_campaign_can_be_published(tmp_path):
    logs = [str(path) for path in sorted((DATA / "iperf3").glob("*-up.json"))]
    assert run_command(["import", *logs, "--out", str(tmp_path / "old"), "--radio-source", "wired"]) == 0
    folder = published(tmp_path / "old", tmp_path / "x")
    assert list(check_campaign(folder)) == []
    readme = (folder / "README.md").read_text()
    assert "no power was logged" in readme
    assert "| iperf3 | 3.12 |" in readme
    assert "netjoule run" not in readme
    assert yaml.safe_load((folder / "CITATION.cff").read_text())["type"] == "dataset"


def test_files_that_the_topology_names_and_the_bundle_has_not_are_told(
    canary_campaign, campaign_dir, tmp_path
):
    made = publish(canary_campaign, tmp_path / "b.zip")
    assert made.absent == ("calibration of meter host-1-power",)
    readme = (unpacked(made.path, tmp_path / "unpacked") / "README.md").read_text()
    assert "that are not here: calibration of meter host-1-power." in readme
    assert publish(campaign_dir, tmp_path / "c.zip").absent == ()
    topology = json.loads((campaign_dir / "campaign.json").read_text())["topology"]
    meter = {"meter_id": "m", "node": "client", "adapter": "wt210", "resource": "emulated"}
    topology["meters"] = [meter | {"device": {"model": "mine/laptop.yaml"}}]
    assert list(absent(typed(Topology, topology))) == ["device model of meter m"]
