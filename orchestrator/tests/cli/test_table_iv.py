# SPDX-License-Identifier: Apache-2.0
"""``netjoule table-iv`` with R replaced by what it says."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import same_sentence

from netjoule.analysis import analysis
from netjoule.analysis.analysis import EventSink
from netjoule.cli.app import run_command

UDP: dict[str, Any] = {
    "event": "table_iv",
    "campaign_label": None,
    "in_this_model": True,
    "application": "skype",
    "transport": "udp",
    "n": 8,
    "hollow": False,
    "node": "client",
    "meter_id": "client-cpu",
    "device_model": "laptop-cpu",
    "power_source": "modelled",
    "radio_source": "link-model",
    "below_resolution_n": 0,
    "ea_cell": "2",
    "ea_j_per_mbit_mean": 2.0,
    "ea_ci95_low": 1.9,
    "ea_ci95_high": 2.1,
    "u95_meter": 0.3,
    "ea_upper_limit_j_per_mbit": None,
    "published_ea_j_per_mbit": 454,
    "differs": "power_source;client",
    "published_difference_j_per_mbit": None,
    "published_difference_percent": None,
    "difference_j_per_mbit": None,
    "difference_percent": None,
    "difference_p_a_w": None,
}
DCCP = UDP | {
    "transport": "dccp",
    "ea_cell": "1.5",
    "ea_j_per_mbit_mean": 1.5,
    "ea_ci95_high": 1.6,
    "published_ea_j_per_mbit": 334,
    "difference_j_per_mbit": -0.5,
    "difference_percent": -25.0,
    "difference_p_a_w": -0.0325,
    "published_difference_j_per_mbit": -120,
    "published_difference_percent": -26,
}
UNRESOLVED = UDP | {
    "application": "youtube",
    "below_resolution_n": 8,
    "ea_cell": "< 0.15 °",
    "ea_upper_limit_j_per_mbit": 0.15,
    "published_ea_j_per_mbit": 45,
    "meter_id": "client-cross-factor",
    "hollow": True,
}

Answers = Callable[[Sequence[dict[str, Any]]], list[list[Path]]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    def make(rows: Sequence[dict[str, Any]]) -> list[list[Path]]:
        asked: list[list[Path]] = []

        def fake_r(campaigns: list[Path], sink: EventSink) -> None:
            asked.append(campaigns)
            for row in rows:
                sink(row)

        monkeypatch.setattr(analysis, "run_table_iv", fake_r)
        return asked

    return make


def test_ours_and_the_published_values_stand_side_by_side(
    campaign_dir: Path, answers: Answers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answers([UDP, DCCP, UNRESOLVED])
    other = Path(shutil.copytree(campaign_dir, tmp_path / "other"))
    assert run_command(["table-iv", str(campaign_dir), str(other)]) == 0
    assert asked == [[campaign_dir, other]]
    text = capsys.readouterr().out
    cells = [line.split() for line in text.splitlines() if line.split()[:1] in (["skype"], ["youtube"])]
    assert cells == [
        ["skype", "udp", "here", "2", "0.1", "0.3", "8"],
        ["skype", "udp", "published", "454"],
        ["skype", "dccp", "here", "1.5", "0.1", "0.3", "-0.5", "-25", "-0.0325", "8"],
        ["skype", "dccp", "published", "334", "-120", "-26"],
        ["youtube", "udp", "here", "<", "0.15", "°", "0.1", "0.3", "8"],
        ["youtube", "udp", "published", "45"],
    ]
    words = " ".join(text.split())
    assert words.count("E_A of applications at client (meter client-") == 2
    assert (
        "Published values are of another setup (power_source, client); nothing is scaled, dE_A has our sign."
        in words
    )
    assert "In this model" in words


def test_a_model_of_the_radio_alone_is_said_too(
    campaign_dir: Path, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = UDP | {"power_source": "measured", "device_model": None}
    for in_this_model in (True, False):
        answers([measured | {"in_this_model": in_this_model}])
        assert run_command(["table-iv", str(campaign_dir)]) == 0
        assert ("In this model" in capsys.readouterr().out) == in_this_model


def test_an_application_of_several_campaigns_names_them(
    campaign_dir: Path, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    long = UDP | {"campaign_label": "the flight of an evening in autumn"}
    answers([UDP | {"campaign_label": "skype-1"}, long, DCCP])
    assert run_command(["table-iv", str(campaign_dir)]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines() if line.split()[:1] == ["skype"]]
    assert rows[0] == ["skype", "udp", "skype-1", "2", "0.1", "0.3", "8"]
    assert rows[2][2] == "the"
    assert all(word in text.split() for word in long["campaign_label"].split())
    assert rows[4][2] == "here"


def test_a_campaign_that_is_given_twice_is_refused_by_any_path(
    campaign_dir: Path, answers: Answers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answers([UDP])
    link = tmp_path / "link"
    link.symlink_to(campaign_dir)
    for again in (campaign_dir, link):
        assert run_command(["table-iv", str(campaign_dir), str(again)]) == 2
        seen = capsys.readouterr()
        assert seen.out == ""
        assert seen.err == f"netjoule: the campaign {again} is given twice; name each campaign once\n"
    assert asked == []


def test_machines_get_the_rows_as_r_gives_them(
    campaign_dir: Path, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    answers([UDP, DCCP])
    assert run_command(["table-iv", str(campaign_dir), "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [UDP, DCCP]


def test_a_name_of_a_profile_is_text_and_no_markup(
    campaign_dir: Path, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    answers([UDP | {"application": "[red]skype"}])
    assert run_command(["table-iv", str(campaign_dir)]) == 0
    assert "[red]skype" in capsys.readouterr().out


def test_what_is_no_campaign_is_named_before_r_is_asked(
    answers: Answers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answers([])
    assert run_command(["table-iv", str(tmp_path / "nowhere")]) == 2
    same_sentence(capsys.readouterr().err)
    assert asked == []
