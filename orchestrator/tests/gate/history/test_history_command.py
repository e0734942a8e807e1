# SPDX-License-Identifier: Apache-2.0
"""netjoule history: lists, files and marks."""

import csv
import json
import random
import re

import pytest
from verdicts import NO_RATIO, failed, pilot, session, verdict

from netjoule.cli.app import run_command
from netjoule.gate.history import store, trend

REASON = {"code": "not_confirmed", "detail": "The confirming session did not fail."}


@pytest.fixture
def kept(gate_folder, tmp_path, monkeypatch):
    """A pilot, three gates and one of another rig."""
    place = tmp_path / "history.sqlite"
    monkeypatch.setenv("NETJOULE_HISTORY", str(place))
    made = [
        pilot(id="pilot-1", finished_utc="2026-11-01T08:00:00Z"),
        verdict(id="gate-a", finished_utc="2026-11-02T08:00:00Z", same_arms=True),
        failed(id="gate-b", finished_utc="2026-11-03T08:00:00Z"),
        verdict(
            id="gate-c",
            finished_utc="2026-11-04T08:00:00Z",
            verdict="inconclusive",
            exit_code=4,
            reason=REASON,
            **NO_RATIO,
        ),
        verdict(id="gate-d", rig="rack-2", workload="page", finished_utc="2026-11-05T08:00:00Z"),
    ]
    for document in made:
        store.record(document, gate_folder(**document))
    return place


def events(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_nothing_yet(capsys, tmp_path):
    assert run_command(["history", "--history", str(tmp_path / "none.sqlite")]) == 0
    assert capsys.readouterr().out == "no gates yet\n"
    assert list(tmp_path.iterdir()) == []


def test_the_list_ends_with_the_newest_and_tells_the_rate_of_false_alarms(capsys, kept):
    assert run_command(["history"]) == 0
    heading, _, *rows, rate = capsys.readouterr().out.splitlines()
    assert heading.split()[:2] == ["decided", "(UTC)"]
    assert [row.split()[2] for row in rows] == ["pilot-1", "gate-a", "gate-b", "gate-c", "gate-d"]
    assert "+1.0 [-1.0 to +2.9]" in rows[1]
    assert rows[1].endswith("base and head are the same")
    assert rows[3].endswith("not_confirmed")
    assert rate.startswith(
        "bench: 0 false alarms in 1 gate with the same base and head (95 % interval 0.0 to 97.5 %)"
    )


def test_one_document_a_gate_for_machines(capsys, kept):
    assert run_command(["history", "--json", "--rig", "bench", "--workload", "gate"]) == 0
    *gates, rate = events(capsys)
    assert [(one["event"], one["id"], one["verdict"]) for one in gates] == [
        ("gate", "pilot-1", "pass"),
        ("gate", "gate-a", "pass"),
        ("gate", "gate-b", "fail"),
        ("gate", "gate-c", "inconclusive"),
    ]
    assert gates[3]["reason_code"] == "not_confirmed"
    assert rate == {"event": "false_alarms", "rig": "bench", "fails": 0, "gates": 1, "low": 0, "high": 0.975}


def test_marks_are_shown_apart_from_the_verdict(capsys, kept):
    assert run_command(["history", "--was-false", "gate-b", "--note", "a fan", "--was-missed", "gate-a"]) == 0
    assert run_command(["history", "--was-false", "gate-b"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "gate-b: marked as was_false",
        "gate-a: marked as was_missed",
        "gate-b: was marked already as was_false",
    ]
    assert run_command(["history", "--rig", "bench"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[4].split()[7] == "fail"
    assert rows[4].endswith("was false")
    assert run_command(["history", "--was-missed", "gate-b"]) == 2
    assert "was an alarm" in capsys.readouterr().err


def test_the_list_as_csv(capsys, kept, tmp_path):
    assert run_command(["history", "--csv", str(tmp_path / "list.csv")]) == 0
    assert capsys.readouterr().out == f"table: {tmp_path / 'list.csv'}\n"
    with (tmp_path / "list.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["id"] for row in rows] == ["pilot-1", "gate-a", "gate-b", "gate-c", "gate-d"]
    assert (rows[1]["same_arms"], rows[1]["ratio_high"], rows[3]["ratio"]) == ("true", "1.029", "")


def test_a_verdict_that_could_not_be_kept_is_taken_in_later(capsys, kept, gate_folder):
    folder = gate_folder(id="late")
    for said in ("late: recorded", "late: was there already"):
        assert run_command(["history", "--record", str(folder)]) == 0
        assert capsys.readouterr().out == said + "\n"


def test_the_health_of_the_rigs(capsys, kept):
    assert run_command(["history", "--health", "--days", "100000", "--json"]) == 0
    (found,) = events(capsys)
    assert (found["event"], found["gates"]) == ("health", {"bench": 4, "rack-2": 1})
    assert [(one["rig"], one["code"], one["gates"]) for one in found["counts"]] == [
        ("bench", "not_confirmed", 1)
    ]
    assert run_command(["history", "--health", "--days", "100000", "--rig", "rack-2"]) == 0
    assert "bench" not in capsys.readouterr().out


@pytest.fixture
def stepped(gate_folder, tmp_path, monkeypatch):
    """30 gates of which the last ten take 6 % more."""
    monkeypatch.setenv("NETJOULE_HISTORY", str(tmp_path / "history.sqlite"))
    draw = random.Random(1)
    for number in range(30):
        value = (1.5 if number < 20 else 1.59) * (1 + draw.gauss(0, 0.004))
        document = verdict(
            id=f"g{number}",
            finished_utc=f"2026-10-{number + 1:02}T00:00:00Z",
            sessions=[session(head_over_reference=value)],
        )
        monkeypatch.setattr(store.contracts, "document_defects", lambda *_: [])
        store.record(document | {"id": f"g<{number}"}, gate_folder(**document))


def test_the_page_has_a_figure_per_series_with_its_changes(capsys, stepped, tmp_path):
    page = tmp_path / "history.html"
    assert run_command(["history", "--html", str(page)]) == 0
    assert capsys.readouterr().out == f"page: {page}\n"
    text = page.read_text()
    assert len(re.findall("<svg ", text)) == 2  # wide and narrow
    assert "A lasting change: +6" in text
    assert "g&lt;20 (2026-10-21)" in text
    assert "<script>" in text
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/[^'\"]*", "", text)


def test_the_page_needs_no_otava_and_says_so(capsys, stepped, tmp_path, monkeypatch):
    monkeypatch.setattr(trend, "is_there", lambda: False)
    page = tmp_path / "history.html"
    assert run_command(["history", "--html", str(page)]) == 0
    assert "the package apache-otava is not installed" in page.read_text()
    assert run_command(["history", "--trend"]) == 3
    assert "requirements-trend.txt" in capsys.readouterr().err


def test_lasting_changes_are_listed(capsys, stepped):
    assert run_command(["history", "--trend", "--json"]) == 0
    (change,) = events(capsys)
    assert (change["event"], change["rig"], change["since"]) == ("change", "bench", "g<20")
    assert change["percent"] == pytest.approx(6, abs=0.5)


def test_nothing_to_draw_is_inconclusive(capsys, tmp_path):
    asked = ["history", "--history", str(tmp_path / "none.sqlite"), "--html", str(tmp_path / "page.html")]
    assert run_command(asked) == 4
    assert "no session with a reference workload" in capsys.readouterr().err
