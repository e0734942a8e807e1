# SPDX-License-Identifier: Apache-2.0
"""What is shipped for the coursework: contract, workloads, page, and what `coursework start` makes."""

import errno
import json
import os
import subprocess
import zipfile
from pathlib import Path

import coursework_folders as folders
import pytest
from golden_sentences import raises, same_sentence

import netjoule_contracts as contracts
from netjoule import loads
from netjoule.cli.app import run_command
from netjoule.core import programs, yamlfile
from netjoule.core.errors import RunFailed
from netjoule.coursework import start as starting
from netjoule.coursework.cells import Cells
from netjoule.coursework.congestion import CAP_MBPS
from netjoule.coursework.exercises import EXERCISES
from netjoule.design.duration import forecast
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology import topology
from netjoule.validation.check import check_campaign
from netjoule.workload.workload import find

ROOT = Path(__file__).parents[3]


def test_the_contract_has_the_questions():
    exercises = contracts.schema("coursework_answers")["properties"]["exercises"]["properties"]
    assert list(exercises) == list(EXERCISES)
    for name, exercise in EXERCISES.items():
        fields = exercises[name]["properties"]
        assert list(fields) == [question.name for question in exercise.questions]
        for question in exercise.questions:
            field = fields[question.name]
            assert field["description"] == question.asks
            if question.choices in ((True, False), ()):
                kind = "boolean" if question.choices else "number"
                assert field["type"] == [kind, "null"]
            else:
                assert field["enum"] == [*question.choices, None]
            if not question.choices:
                assert field["unit"] == question.unit


def test_the_workloads_are_those_of_the_exercises_and_take_less_than_an_hour():
    total_s = 0.0
    for exercise in EXERCISES.values():
        workload = loads.read(find(exercise.workload, ROOT / "workloads"))
        where = topology.load(ROOT / (exercise.testbed or "testbed-topology.yaml"))
        assert workload.blocks >= 5, "three would make wide intervals"
        if where.kind == "simulated":
            assert not exercise.preset
            continue
        assert where.document["link"]["preset"] == exercise.preset
        if workload.load == "transfer":  # nobody can tell beforehand how long its runs take
            assert where.meters[0].meter_id == "s5-seed", "hints name it"
            continue
        of, design = FlowSettings.of(workload), folders.designs()[exercise.name]
        assert set(of.transports) == set(design.transports)
        assert set(of.payload_bytes) == set(design.payload_bytes)
        assert set(of.offered_rate_mbps) == set(design.offered_rate_mbps)
        assert where.meters[0].meter_id == "client-cpu", "hints name it"
        total_s += forecast(workload, where).duration_s
    assert total_s < 30 * 60, "an hour with set-up, analysis and thinking"


def test_what_the_exercise_on_transfers_predicts_from_is_what_its_campaign_has():
    workload = loads.read(find("coursework-transfers", ROOT / "workloads"))
    where = topology.load(ROOT / EXERCISES["transfers"].testbed)
    sydney = where.document["elements"]["sydney"]
    ((group,),) = workload.document["transfer"]["sets"].values()
    question = next(q for q in EXERCISES["transfers"].questions if q.name == "predicted_one_mbps")
    bits = 8 * group["mean_bytes"]
    file_s = 2e-3 * sydney["delay_ms"] + bits / (1e6 * sydney["rate_mbps"])
    assert question.right(Cells([])).value == pytest.approx(bits / 1e6 / file_s)
    assert {meter.meter_id for meter in where.meters} == set(folders.METERS)


def test_hints_that_read_a_row_name_its_meter():
    """There are two meters, and so two rows."""
    for _, question in folders.QUESTIONS:
        if "the row of" in question.look_at:
            same_sentence(question.look_at)


def test_the_cap_is_that_of_the_links_preset():
    told = subprocess.run(
        [programs.find("netjoule-link"), "presets", "--json"], capture_output=True, text=True, check=True
    )
    presets = {one["name"]: one["radio"] for one in map(json.loads, told.stdout.splitlines())}
    cap_mbps = presets[EXERCISES["congestion"].preset]["packet_rate_cap_pps"] * 64 * 8e-6
    assert pytest.approx(cap_mbps) == CAP_MBPS
    assert pytest.approx(cap_mbps) == folders.CAP_MBPS


def test_the_page_asks_what_is_checked_and_gives_the_commands():
    page = (ROOT / "docs/coursework.md").read_text(encoding="utf-8")
    for exercise in EXERCISES.values():
        assert exercise.run_command("results/coursework") in page
        for question in exercise.questions:
            assert f"`{question.name}`" in page, question.name


def test_start_makes_a_sheet_that_is_read_and_asks_every_question(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    folder = tmp_path / "new"
    assert run_command(["coursework", "start", str(folder)]) == 0
    assert capsys.readouterr().out.split() == [str(folder / "answers.yaml"), str(folder / "report.Rmd")]
    document = yamlfile.load(folder / "answers.yaml")
    yamlfile.hold(document, "coursework_answers")
    asked = [f"{name}.{field}" for name, fields in document.value["exercises"].items() for field in fields]
    assert asked == folders.NAMES
    assert {value for fields in document.value["exercises"].values() for value in fields.values()} == {None}
    text = " ".join((folder / "answers.yaml").read_text().replace("#", "").split())
    assert all(question.asks in text for _, question in folders.QUESTIONS)
    assert "title:" in (folder / "report.Rmd").read_text()
    assert run_command(["coursework", "check", str(folder)]) == 1
    assert run_command(["coursework", "start", str(folder)]) == 2
    same_sentence(capsys.readouterr().err)


@pytest.fixture
def bundles(finished, tmp_path, monkeypatch):
    """Bundles as `netjoule publish` packs them, where the shipped ones are looked for."""
    golden = tmp_path / "results/golden"
    golden.mkdir(parents=True)
    for exercise in EXERCISES.values():
        with zipfile.ZipFile(golden / f"{exercise.workload}.zip", "w") as bundle:
            source = finished / exercise.name
            bundle.writestr("some-name/", "")  # as `zip -r` has it
            for path in sorted(p for p in source.rglob("*") if p.is_file()):
                bundle.write(path, f"some-name/{path.relative_to(source).as_posix()}")
    own = programs.shipped
    monkeypatch.setattr(programs, "shipped", lambda name: tmp_path / name if "golden" in name else own(name))
    return golden


def test_start_with_golden_gives_campaigns_to_answer_from(bundles, right, tmp_path, capsys):
    folder = tmp_path / "new"
    assert run_command(["coursework", "start", str(folder), "--golden"]) == 0
    for name in EXERCISES:
        assert list(check_campaign(folder / name)) == []
    folders.answer(folder, right)
    assert folders.checked(folder) == 0


@pytest.mark.parametrize("name", ["/tmp/evil", "a/../../evil"])
def test_nothing_of_a_bundle_leaves_its_folder(tmp_path, name):
    bundle = tmp_path / "x.zip"
    with zipfile.ZipFile(bundle, "w") as packed:
        packed.writestr(zipfile.ZipInfo(name), "x")
    starting.unpack(bundle, tmp_path / "out/in")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["evil", "in", "out", "x.zip"]


def test_a_bundle_of_a_file_alone_is_refused(tmp_path):
    bundle = tmp_path / "x.zip"
    with zipfile.ZipFile(bundle, "w") as packed:
        packed.writestr(zipfile.ZipInfo("alone"), "x")
    with raises(starting.InvalidData):
        starting.unpack(bundle, tmp_path / "out/in")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["out", "x.zip"]


def test_a_bundle_of_two_folders_is_refused_and_none_is_put_over_another(tmp_path):
    bundle, folder = tmp_path / "x.zip", tmp_path / "out"
    with zipfile.ZipFile(bundle, "w") as packed:
        packed.writestr("one/x", "x")
    starting.unpack(bundle, folder)
    assert (folder / "x").read_text() == "x"
    with raises(RunFailed):
        starting.unpack(bundle, folder)
    with zipfile.ZipFile(bundle, "a") as packed:
        packed.writestr("two/x", "y")
    with raises(starting.InvalidData):
        starting.unpack(bundle, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_start_that_fails_leaves_nothing_in_the_way_of_the_next(bundles, tmp_path, capsys):
    (bundles / "coursework-congestion.zip").write_bytes(b"no archive")
    folder = tmp_path / "new"
    assert run_command(["coursework", "start", str(folder), "--golden"]) == 4
    assert "not a ZIP file" in capsys.readouterr().err
    assert not folder.exists()
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert run_command(["coursework", "start", str(link), "--golden"]) == 4
    assert list(folder.iterdir()) == []
    assert run_command(["coursework", "start", str(link)]) == 0


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EACCES,
        errno.EROFS,
        errno.EIO,
    ],
)
def test_a_folder_that_cannot_be_written_is_told_with_what_helps_here(tmp_path, monkeypatch, capsys, number):
    def refuse(_descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    folder = tmp_path / "new"
    assert run_command(["coursework", "start", str(folder)]) == 1
    same_sentence(capsys.readouterr().err)
    assert not folder.exists()


def test_a_file_or_a_link_to_nowhere_in_the_folders_place_is_left_and_told(tmp_path, capsys):
    place = tmp_path / "answers"
    place.write_text("mine")
    assert run_command(["coursework", "start", str(place)]) == 2
    same_sentence(capsys.readouterr().err)
    assert place.read_text() == "mine"
    assert run_command(["coursework", "start", str(place / "in")]) == 1
    same_sentence(capsys.readouterr().err)
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert run_command(["coursework", "start", str(link)]) == 1
    same_sentence(capsys.readouterr().err)
    assert link.is_symlink()
