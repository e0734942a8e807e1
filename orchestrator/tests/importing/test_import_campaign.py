# SPDX-License-Identifier: Apache-2.0
"""``netjoule import`` from the files to the tables: old results stand where new ones do, without E_A."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import same_sentence

from netjoule.analysis import analysis
from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign

DATA = Path(__file__).parents[1] / "data"
NAMES = ("udp-up", "udp-down", "tcp-up", "tcp-down")
ALL_OF_IPERF3 = [str(DATA / "iperf3" / f"{name}.json") for name in NAMES]
DITG = [str(DATA / "ditg" / f"udp-{end}.txt") for end in ("sender", "receiver")]


def documents(campaign: Path, name: str) -> dict[str, Any]:
    return {path.parent.name: json.loads(path.read_text()) for path in campaign.glob(f"runs/*/{name}")}


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    out = tmp_path / "old"
    assert run_command(["import", *ALL_OF_IPERF3, "--out", str(out), "--radio-source", "wired"]) == 0
    return out


def test_an_imported_campaign_has_no_defects_and_one_run_per_flow(imported: Path) -> None:
    assert [str(defect) for defect in check_campaign(imported)] == []
    rows = read_plan(imported)
    assert [(r.arm, r.cell["direction"], r.status) for r in rows] == [
        ("udp", "up", "valid"),
        ("udp", "down", "valid"),
        ("tcp", "up", "valid"),
        ("tcp", "down", "valid"),
    ]
    assert [r.mini_block for r in rows] == [1, 2, 3, 4]
    started = [run["started_utc"] for run in documents(imported, "run.json").values()]
    assert min(started) == "2026-11-21T03:46:59.000Z"


def test_it_says_that_it_is_imported_by_what_and_of_which_version(imported: Path) -> None:
    campaign = json.loads((imported / "campaign.json").read_text())
    assert campaign["imported"]["generator_versions"] == ["3.12"]
    first = campaign["imported"]["files"][0]
    assert (first["file"], first["generator_version"]) == ("udp-up.json", "3.12")
    assert first["system"] == "Linux 6.1.0 x86_64"
    assert first["runs"] == ["b01m001-udp-a1"]
    assert campaign["versions"]["iperf3"] == "3.12"
    assert campaign["topology"]["kind"] == "imported"
    assert campaign["status"] == "complete"
    for run in documents(imported, "run.json").values():
        assert run["versions"] == {"iperf3": "3.12"}


def test_goodput_holds_and_energy_is_empty_with_its_reason(imported: Path) -> None:
    results = documents(imported, "result.json")
    assert len(results) == 4
    for result in results.values():
        assert result["valid"]
        assert result["work"]["work_per_s"] == pytest.approx(3.006, abs=0.003)
        (node,) = result["nodes"]
        assert (node["ea_j_per_mbit"], node["ea_reason"]) == (None, "no_power_logged")
        assert (node["p_a_w"], node["p_i_w"], node["grade"]) == (None, None, None)
        assert (node["power_source"], node["radio_source"]) == ("unknown", "wired")
        assert "no_power_logged" in [reason["code"] for reason in result["reasons"]]


def test_repetitions_of_a_cell_are_blocks(tmp_path: Path) -> None:
    document = json.loads((DATA / "iperf3" / "udp-up.json").read_text())
    for number in range(3):
        document["start"]["cookie"] = f"test{number}"
        document["start"]["timestamp"]["timesecs"] += 60
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
    out = tmp_path / "old"
    assert run_command(["import", str(tmp_path), "--out", str(out)]) == 0
    assert [row.run_id for row in read_plan(out)] == [
        "b01m001-udp-a1",
        "b02m002-udp-a1",
        "b03m003-udp-a1",
    ]
    assert list(check_campaign(out)) == []


def test_ditgs_logs_become_a_campaign(tmp_path: Path) -> None:
    out = tmp_path / "old"
    words = ["import", *DITG, "--out", str(out), "--transport", "udp", "--day", "2026-11-21"]
    assert run_command([*words, "--generator-version", "2.8.1"]) == 0
    assert list(check_campaign(out)) == []
    (run,) = documents(out, "run.json").values()
    assert run["started_utc"].startswith("2026-11-21T16:51:32")
    (result,) = documents(out, "result.json").values()
    # Whole intervals only, so not the part of one at the flow's end.
    assert result["work"]["work_per_s"] == pytest.approx(2.94, rel=0.02)
    assert "offered_rate_assumed" in [reason["code"] for reason in result["reasons"]]


def test_netperfmeters_dccp_has_no_ccid_that_nobody_told(tmp_path: Path) -> None:
    # The figures are those of UDP; which CCID the kernel had stands in none of its files.
    files = [str(path) for path in sorted((DATA / "netperfmeter").glob("udp-up-*"))]
    out = tmp_path / "old"
    assert run_command(["import", *files, "--out", str(out), "--transport", "dccp-kernel"]) == 0
    assert [str(defect) for defect in check_campaign(out)] == []
    (flow,) = documents(out, "flow.json").values()
    assert flow["transport_options"] == {}
    assert "ccid" not in (out / "campaign.json").read_text()


def test_several_programs_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "old"
    assert run_command(["import", ALL_OF_IPERF3[0], *DITG, "--transport", "udp", "--out", str(out)]) == 2
    told = capsys.readouterr().err
    same_sentence(told)
    assert not out.exists()


def test_no_flow_at_all_is_invalid_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    assert run_command(["import", str(tmp_path), "--out", str(tmp_path / "old")]) == 4
    told = capsys.readouterr().err
    assert "left out: " in told
    same_sentence(told)
    assert not (tmp_path / "old").exists()


def test_an_empty_path_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "udp-up.json").write_text(Path(ALL_OF_IPERF3[0]).read_text())
    monkeypatch.chdir(tmp_path)
    assert run_command(["import", "", "--out", "old"]) == 2
    same_sentence(capsys.readouterr().err)
    assert run_command(["import", ".", "--out", "old"]) == 0


def test_files_that_are_left_out_for_one_reason_are_told_together(
    imported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_command(["import", str(imported), "--out", str(tmp_path / "again")]) == 4
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("left out")]
    reasons = [line.split(": ", 2)[2] for line in told if line.startswith("left out: ")]
    assert len(reasons) == len(set(reasons)) < 5
    assert any(line.startswith(f"left out likewise: {imported}/") and " more" in line for line in told)
    assert run_command(["import", str(imported), "--out", str(tmp_path / "again"), "--json"]) == 4
    events = capsys.readouterr().out.splitlines()
    files = [path for path in imported.rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert len(events) == len(files)


def test_a_folder_that_holds_something_is_not_touched(imported: Path) -> None:
    before = (imported / "campaign.json").read_bytes()
    assert run_command(["import", ALL_OF_IPERF3[0], "--out", str(imported)]) == 2
    assert (imported / "campaign.json").read_bytes() == before


def test_nothing_is_left_to_resume(imported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["resume", str(imported)]) == 0
    same_sentence(capsys.readouterr().out)


def test_check_sees_a_run_that_no_file_contains(imported: Path) -> None:
    path = imported / "campaign.json"
    campaign = json.loads(path.read_text())
    campaign["imported"]["files"][0]["runs"] = ["b09m009-udp-a1"]
    path.write_text(json.dumps(campaign))
    found = [str(defect) for defect in check_campaign(imported)]
    assert any("none of the imported files contains this run" in words for words in found)
    assert any("plan.csv has no run 'b09m009-udp-a1'" in words for words in found)


def test_r_puts_them_into_the_same_tables_with_the_version(imported: Path) -> None:
    try:
        analysis.require_r()
    except HostLacks as error:
        pytest.skip(str(error))
    analysis.run_analysis("report", imported, lambda _: None)
    with (imported / "tables" / "runs.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["generator"] for row in rows] == ["iperf3"] * 4
    assert {row["generator_version"] for row in rows} == {"3.12"}
    assert {row["ea_j_per_mbit"] for row in rows} == {""}
    assert {row["ea_reason"] for row in rows} == {"no_power_logged"}
    with (imported / "tables" / "ea_summary.csv").open(newline="") as handle:
        cells = list(csv.DictReader(handle))
    assert {cell["transport"] for cell in cells} == {"udp", "tcp"}
    assert {cell["generator_version"] for cell in cells} == {"3.12"}
    report = (imported / "report.html").read_text()
    assert "imported from iperf3 3.12" in report
    said, glossary, _ = report.partition('<section id="glossary"')
    assert glossary, "the report has its glossary last"
    assert "in this model" not in said.lower()
