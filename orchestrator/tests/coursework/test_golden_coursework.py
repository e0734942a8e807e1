# SPDX-License-Identifier: Apache-2.0
"""The shipped campaigns of the coursework: run on the emulated testbed, whole, small, able to answer."""

import json
import shutil
from pathlib import Path
from statistics import fmean

import coursework_folders as folders
import pytest
from bundles import differing_anew

from netjoule.cli.app import run_command
from netjoule.coursework import cells
from netjoule.coursework.campaign import campaign_cells
from netjoule.coursework.cells import CannotTell
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.question import Answer, Number, Question, judge
from netjoule.coursework.start import golden_bundle
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign

MOST_BYTES = 4_200_000
EACH = pytest.mark.parametrize("name", EXERCISES)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "coursework"
    assert run_command(["coursework", "start", str(folder), "--golden"]) == 0
    return folder


def test_they_are_small() -> None:
    sizes = [golden_bundle(exercise).stat().st_size for exercise in EXERCISES.values()]
    assert sum(sizes) < MOST_BYTES


@EACH
def test_a_campaign_is_sound_and_of_the_shipped_workload(unpacked: Path, name: str) -> None:
    assert [str(defect) for defect in check_campaign(unpacked / name)] == []
    document = json.loads((unpacked / name / "campaign.json").read_text())
    assert document["workload"]["name"] == EXERCISES[name].workload
    assert document["status"] == "complete"
    rows = read_plan(unpacked / name)
    latest = {row.mini_block: row.attempt for row in rows}
    assert {row.status for row in rows if row.attempt == latest[row.mini_block]} == {"valid"}


@EACH
def test_it_says_that_it_is_modelled(unpacked: Path, name: str) -> None:
    results = [json.loads(path.read_text()) for path in (unpacked / name).glob("runs/*/result.json")]
    for path in (unpacked / name).glob("blocks/*/results.ndjson"):
        results += map(json.loads, path.read_text().splitlines())
    radio = "link-model" if EXERCISES[name].preset else "simulated"
    assert {
        (node["power_source"], node["radio_source"]) for result in results for node in result["nodes"]
    } == {("modelled", radio)}


@EACH
def test_every_question_has_an_answer_in_it(unpacked: Path, name: str) -> None:
    found = campaign_cells(unpacked, EXERCISES[name])
    for question in EXERCISES[name].questions:
        try:
            right = question.right(found)
        except CannotTell as why:
            pytest.fail(f"{question.name}: {why}")
        if isinstance(right, frozenset):
            assert right
            assert right <= set(question.choices)
        assert isinstance(right, frozenset) == bool(question.choices)


def slightly_wrong(question: Question, right: Answer) -> list[Answer]:
    """The right number 6 % off, or 0.0015 where that is more, to either side; every other choice."""
    if question.choices:
        return [choice for choice in question.choices if choice != right]
    assert isinstance(right, float)
    off = max(0.06 * right, 0.0015)
    return [right - off, right + off]


@EACH
def test_right_answers_are_accepted_and_slightly_wrong_ones_are_not(unpacked: Path, name: str) -> None:
    """What is right is worked out without the code under test."""
    found = campaign_cells(unpacked, EXERCISES[name])
    right = folders.right_answers(unpacked)[name]
    for question in EXERCISES[name].questions:
        answer = right[question.name]
        assert judge(name, question, answer, found).verdict == "right", question.name
        for wrong in slightly_wrong(question, answer):
            assert judge(name, question, wrong, found).verdict == "wrong", (question.name, wrong)


def test_a_loss_of_some_thousandths_is_held_to_a_thousandth_and_never_below_0(unpacked: Path) -> None:
    found = campaign_cells(unpacked, EXERCISES["congestion"])
    question = next(q for q in EXERCISES["congestion"].questions if q.name == "dccp_loss_ratio")
    right = question.right(found)
    assert isinstance(right, Number)
    assert right.value == pytest.approx(0.00449, abs=5e-6)
    for answer in (0.0045, 0.005, 0.0036):
        assert judge("congestion", question, answer, found).verdict == "right"
    for answer in (0.0, 0.003, 0.006, 0.01):
        assert judge("congestion", question, answer, found).verdict == "wrong"
    refused = judge("congestion", question, -0.0005, found)
    assert (refused.verdict, refused.words) == ("wrong", f"it cannot be below 0; {question.look_at}")


@pytest.mark.parametrize("name", folders.designs())
def test_every_cell_has_all_its_blocks(unpacked: Path, name: str) -> None:
    design = folders.designs()[name]
    blocks = json.loads((unpacked / name / "campaign.json").read_text())["workload"]["blocks"]
    found = cells.read(unpacked / name)
    for transport in design.transports:
        for size in design.payload_bytes:
            for rate in design.offered_rate_mbps:
                cell = found.at(transport, size, rate)
                assert len(cell.by_block("delta_p_w")) == blocks, str(cell)


def test_every_cell_of_the_simulated_one_has_all_its_blocks(unpacked: Path) -> None:
    document = json.loads((unpacked / "scaling/campaign.json").read_text())["workload"]
    found = cells.read(unpacked / "scaling", ("path",))
    for way in document["factors"]["scaling"]:
        for path in document["factors"]["path"]:
            cell = found.at(way, path)
            assert len(cell.by_block("service_rate_mbps")) == document["blocks"], str(cell)


def test_every_cell_of_the_transfers_has_all_its_blocks_at_every_meter(unpacked: Path) -> None:
    document = json.loads((unpacked / "transfers/campaign.json").read_text())["workload"]
    for http in document["factors"]["http"]:
        for connections in map(str, document["factors"]["connections"]):
            for meter in folders.METERS:
                runs = folders.fetched(unpacked / "transfers", http, connections, meter)
                assert len(runs) == document["blocks"], (http, connections, meter)


def test_a_conclusion_on_transfers_hangs_on_the_fitted_term_and_others_do_not(unpacked: Path) -> None:
    """What the page lets students find."""

    def least_j(http: str, connections: str, meter: str) -> float:
        runs = folders.fetched(unpacked / "transfers", http, connections, meter)
        return fmean(run["e_d_j"] for run in runs)

    without, double = folders.METERS[1], folders.METERS[3]
    assert least_j("2", "32", without) < least_j("2", "1", without)
    assert least_j("2", "32", double) > least_j("2", "1", double)
    for meter in folders.METERS:
        assert least_j("1.1", "32", meter) < least_j("1.1", "1", meter) / 2
        assert least_j("2", "1", meter) < least_j("1.1", "1", meter) / 2


def test_what_the_page_says_of_them_holds(unpacked: Path) -> None:
    envelope, floor, congestion = (campaign_cells(unpacked, EXERCISES[name]) for name in folders.designs())
    for transport in ("udp", "tcp", "quic"):
        for load in (6, 12, 24):
            small, large = (envelope.at(transport, size, load).mean("ea_j_per_mbit") for size in (64, 1440))
            assert 1 < small / large < 1440 / 64
    loss, held_back = (
        congestion.at("udp", 64, 20).mean("loss_ratio"),
        1 - congestion.at("dccp", 64, 20).mean("achieved_ratio"),
    )
    assert loss == pytest.approx(1 - 6.144 / 20, abs=0.03)
    assert held_back > 0.5
    assert congestion.at("dccp", 64, 20).mean("loss_ratio") < loss / 5
    right = next(q for q in EXERCISES["floor"].questions if q.name == "floor_grows_with").right(floor)
    assert right == frozenset({"messages_per_second"})


@pytest.mark.parametrize("name", [*folders.designs(), "transfers"])
def test_its_results_are_computed_anew(unpacked: Path, name: str) -> None:
    assert differing_anew(unpacked / name) == {}


def test_a_run_of_the_simulated_one_is_the_same_again(unpacked: Path, tmp_path: Path) -> None:
    campaign = shutil.copytree(unpacked / "scaling", tmp_path / "scaling")
    for row in read_plan(campaign)[::53]:
        assert run_command(["resume", str(campaign), "--write-out", row.run_id]) == 0, row.run_id
