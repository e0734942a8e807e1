# SPDX-License-Identifier: Apache-2.0
"""Verdicts into either database and out again."""

import json
import threading

import pytest
from sqlalchemy import select
from verdicts import FINGERPRINT, NO_RATIO, failed, pilot, session, verdict

from netjoule.analysis import intervals
from netjoule.core.errors import HostLacks, InvalidData, UsageError
from netjoule.gate.history import database, store
from netjoule.gate.history.tables import arms, cells, gates, marks, sessions
from netjoule.gate.settings import Pilot


def record(made, folder, url, document):
    return store.record(document, made(**document) if folder is None else folder, url)


def rows(table, url):
    with database.reading(url) as connection:
        return (
            [] if connection is None else [dict(row) for row in connection.execute(select(table)).mappings()]
        )


def test_a_verdict_is_kept_with_its_arms_sessions_and_cells(gate_folder, url):
    folder = gate_folder()
    document = json.loads((folder / "verdict.json").read_text())
    assert store.record(document, folder, url)
    (gate,) = rows(gates, url)
    plain = {name: document[name] for name in document if name in gate}
    assert {name: gate[name] for name in plain} == plain
    assert len(plain) == 19
    assert {name: gate[name] for name in ("kernel", "cpu_model")} == {
        name: FINGERPRINT[name] for name in ("kernel", "cpu_model")
    }
    assert json.loads(gate["meters"]) == FINGERPRINT["meters"]
    assert (gate["folder"], gate["same_arms"]) == (str(folder), False)
    assert [(row["name"], row["sha256"]) for row in rows(arms, url)] == [
        ("base", "a" * 64),
        ("head", "b" * 64),
    ]
    (kept,) = rows(sessions, url)
    # As far as its last look: of eight blocks.
    wanted = {"place": 0, "role": "first", "campaign": "session-1", "blocks_max": 11, "blocks": 8}
    assert wanted.items() <= kept.items()
    assert (kept["log_ratio_sd"], kept["head_over_reference"]) == (0.02, 1.5)
    first, second = rows(cells, url)
    assert json.loads(first["cell"]) == {"payload_bytes": 64, "transport": "udp"}
    assert (first["p_holm"], second["method"], second["ratio"]) == (0.04, "left_out", None)


def test_the_same_id_a_second_time_changes_nothing(gate_folder, url):
    folder = gate_folder()
    document = json.loads((folder / "verdict.json").read_text())
    assert store.record(document, folder, url)
    before = [rows(table, url) for table in (gates, arms, sessions, cells)]
    assert not store.record(document | {"verdict": "fail", "exit_code": 1}, folder, url)
    assert [rows(table, url) for table in (gates, arms, sessions, cells)] == before


def test_a_verdict_without_anything_is_kept_too(gate_folder, url):
    reason = {"code": "rig_noisy", "detail": "The reference workload scatters by 4 %."}
    document = verdict(
        verdict="skipped",
        exit_code=4,
        reason=reason,
        arms=[],
        sessions=[session(looks=[], cells=[])],
        **NO_RATIO,
    )
    store.record(document, gate_folder(**document), url)
    (gate,) = rows(gates, url)
    assert (gate["reason_code"], gate["ratio"]) == ("rig_noisy", None)
    assert rows(sessions, url)[0]["blocks"] is None


def test_what_is_no_verdict_is_refused_before_anything_is_made(gate_folder, tmp_path):
    folder = gate_folder()
    place = tmp_path / "other" / "history.sqlite"
    with pytest.raises(InvalidData, match="verdict"):
        store.record(verdict() | {"verdict": "maybe"}, folder, str(place))
    with pytest.raises(HostLacks, match="nowhere"):
        store.record(verdict(), tmp_path / "nowhere", str(place))
    assert not place.parent.exists()


def test_the_folder_is_on_disk_before_its_row_is(gate_folder, url, monkeypatch):
    folder = gate_folder()
    flushed = []
    real = store._fsync

    def noted(path):
        assert rows(gates, url) == []
        flushed.append(path)
        real(path)

    monkeypatch.setattr(store, "_fsync", noted)
    store.record(json.loads((folder / "verdict.json").read_text()), folder, url)
    files = {path for path in folder.rglob("*") if not path.is_symlink()}
    assert set(flushed) == {folder, folder.parent, *files}
    # A folder after what is in it.
    places = [flushed.index(place) for place in (folder / "session-1/runs", folder / "session-1", folder)]
    assert places == sorted(places)


def test_writers_at_once_lose_nothing(gate_folder, url):
    folder = gate_folder()
    refused = []

    def write(first):
        try:
            for number in range(first, first + 5):
                store.record(verdict(id=f"g{number}"), folder, url)
        except Exception as error:
            refused.append(error)

    writers = [threading.Thread(target=write, args=(first,)) for first in (0, 3, 6, 9)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert refused == []
    assert sorted(row["id"] for row in rows(gates, url)) == sorted(f"g{number}" for number in range(14))
    assert len(rows(cells, url)) == 28


def test_the_latest_pilot_of_this_rig_as_it_is_now(gate_folder, url):
    asked = {
        "rig": "bench",
        "fingerprint": FINGERPRINT,
        "workload": "gate",
        "workload_version": "0123456789ab",
        "objective": "energy",
        "url": url,
    }
    assert store.pilot_of(**asked) is None
    made = [
        pilot(id="old", finished_utc="2026-11-01T00:00:00Z"),
        pilot(
            id="new",
            created_utc="2026-11-02T23:45:00Z",
            finished_utc="2026-11-03T00:00:00Z",
            pilot=pilot()["pilot"] | {"blocks": 15},
            verdict="inconclusive",
            exit_code=4,
            reason={"code": "pilot_biased", "detail": "they differ"},
        ),
        pilot(id="middle", finished_utc="2026-11-02T00:00:00Z"),
        pilot(id="other-rig", rig="rack-2", finished_utc="2026-11-09T00:00:00Z"),
        pilot(id="other-version", workload_version="ba9876543210", finished_utc="2026-11-09T00:00:00Z"),
        pilot(
            id="other-kernel",
            fingerprint=FINGERPRINT | {"kernel": "6.2"},
            finished_utc="2026-11-09T00:00:00Z",
        ),
        pilot(id="other-objective", objective="throughput", finished_utc="2026-11-09T00:00:00Z"),
        pilot(
            id="other-meter", fingerprint=FINGERPRINT | {"meters": ["m"]}, finished_utc="2026-11-02T00:00:00Z"
        ),
        pilot(id="skipped", pilot=None, verdict="skipped", exit_code=4, finished_utc="2026-11-09T00:00:00Z"),
        verdict(id="no-pilot", finished_utc="2026-11-09T00:00:00Z"),
    ]
    for document in made:
        store.record(document, gate_folder(**document), url)
    unknown = store.pilot_of(**(asked | {"fingerprint": FINGERPRINT | {"meters": []}}))
    assert unknown == store.pilot_of(**asked)  # before any meter has answered
    found = store.pilot_of(**asked)
    assert found == Pilot(FINGERPRINT, 15, 60.0, 0.015, 0.9, 0.011, biased=True)
    assert store.pilot_of(**(asked | {"workload": "other"})) is None
    none_left = pilot(id="newest", finished_utc="2026-11-04T00:00:00Z", verdict="inconclusive", exit_code=4)
    none_left["pilot"] |= {"log_ratio_sd": None, "half_width_percent": None}
    store.record(none_left, gate_folder(**none_left), url)
    assert store.pilot_of(**asked) is None, "the meter resolves nothing any more"


def test_false_alarms_are_fails_of_the_same_arms_on_this_rig(gate_folder, url, monkeypatch):
    monkeypatch.setattr(intervals, "binomial", lambda k, n: (k / 100, n / 100))
    assert store.false_alarms("bench", url) == store.FalseAlarms(0, 0, 0.0, 1.0)
    made = [
        verdict(same_arms=True),
        failed(same_arms=True),
        verdict(same_arms=True, verdict="inconclusive", exit_code=4),
        verdict(same_arms=True, verdict="skipped", exit_code=4),
        failed(),
        failed(),
        failed(same_arms=True, rig="rack-2"),
        failed(same_arms=True, reason={"code": "anchor", "detail": "against the anchor: a regression"}),
        pilot(),
    ]
    for number, document in enumerate(made):
        store.record(document | {"id": f"g{number}"}, gate_folder(id=f"g{number}"), url)
    assert store.false_alarms("bench", url) == store.FalseAlarms(1, 4, 0.01, 0.04)
    # What somebody marks is no A/A gate.
    store.mark("g5", "was_false", "a fan", url)
    assert store.false_alarms("bench", url).fails == 1


def test_the_interval_of_a_rate_is_clopper_and_pearsons():
    assert intervals.binomial(0, 0) == (0.0, 1.0)
    assert intervals.binomial(0, 20) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))
    # Published: Newcombe 1998, Statistics in Medicine 17, table I: 81 of 263.
    assert intervals.binomial(81, 263) == pytest.approx((0.2527, 0.3676), abs=5e-5)


def test_marks_stand_apart_and_are_given_once(gate_folder, url):
    for document in (verdict(id="passed"), failed(id="failed")):
        store.record(document, gate_folder(**document), url)
    assert store.mark("failed", "was_false", "the fan ran", url)
    assert not store.mark("failed", "was_false", "again", url)
    assert store.mark("passed", "was_missed", url=url)
    kept = {row["gate"]: row for row in rows(marks, url)}
    assert kept["failed"]["note"] == "the fan ran"
    assert kept["failed"]["marked_utc"].endswith("Z")
    assert {row["id"]: (row["verdict"], row["marks"]) for row in store.listed(url=url)} == {
        "passed": ("pass", ["was_missed"]),
        "failed": ("fail", ["was_false"]),
    }


@pytest.mark.parametrize(
    ("gate", "as_what", "says"),
    [
        ("nothing", "was_false", "no gate 'nothing'"),
        ("passed", "was_false", "was no alarm"),
        ("failed", "was_missed", "was an alarm"),
    ],
)
def test_a_mark_that_cannot_be_is_refused(gate_folder, url, gate, as_what, says):
    for document in (verdict(id="passed"), failed(id="failed")):
        store.record(document, gate_folder(**document), url)
    with pytest.raises(UsageError, match=says):
        store.mark(gate, as_what, url=url)
    assert rows(marks, url) == []


def test_lists_are_of_a_rig_or_a_workload_and_end_with_the_newest(gate_folder, url):
    assert store.listed(url=url) == []
    made = [
        verdict(id="b", finished_utc="2026-11-02T00:00:00Z"),
        verdict(id="a", finished_utc="2026-11-03T00:00:00Z"),
        verdict(id="c", finished_utc="2026-11-01T00:00:00Z", rig="rack-2", workload="page"),
    ]
    for document in made:
        store.record(document, gate_folder(**document), url)

    def ids(**asked):
        return [row["id"] for row in store.listed(**asked, url=url)]

    assert ids() == ["c", "b", "a"]
    assert ids(rig="bench") == ["b", "a"]
    assert ids(workload="page") == ["c"]
    assert ids(rig="bench", workload="page") == []


def test_a_mark_makes_no_history(tmp_path):
    with pytest.raises(UsageError, match="no gate 'g1'"):
        store.mark("g1", "was_false", "", str(tmp_path / "history.sqlite"))
    assert list(tmp_path.iterdir()) == []
