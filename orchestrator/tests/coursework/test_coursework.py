# SPDX-License-Identifier: Apache-2.0
"""`netjoule coursework check`: right answers pass, wrong ones are told with what to look at."""

import json
import re
import shutil

import coursework_folders as folders
import pytest
from golden_sentences import same_sentence

import netjoule_contracts as contracts
from netjoule.cli.app import run_command
from netjoule.coursework.cells import Cells
from netjoule.coursework.exercises import EXERCISES
from netjoule.coursework.question import Number, Question, judge


def test_right_answers_pass(handed_in, capsys):
    assert folders.checked(handed_in) == 0
    found = folders.events(capsys)
    assert folders.verdicts(found) == dict.fromkeys(folders.NAMES, "right")
    assert found[-1] == {
        "event": "coursework",
        "folder": str(handed_in),
        "right": len(folders.NAMES),
        "wrong": 0,
        "missing": 0,
        "undecided": 0,
    }
    assert run_command(["coursework", "check", str(handed_in)]) == 0
    same_sentence(capsys.readouterr().out)


def wrong(question, answer):
    """An answer that is off by a third, or another choice."""
    if not question.choices:
        return answer * 1.3 + 0.1
    return next(choice for choice in question.choices if choice != answer)


def test_each_wrong_answer_is_told_with_what_to_look_at_and_without_what_is_right(handed_in, right, capsys):
    spoilt = {
        name: {q.name: wrong(q, right[name][q.name]) for q in exercise.questions}
        for name, exercise in EXERCISES.items()
    }
    folders.answer(handed_in, spoilt)
    assert folders.checked(handed_in) == 1
    seen = capsys.readouterr()
    found = [json.loads(line) for line in seen.out.splitlines()]
    assert folders.verdicts(found) == dict.fromkeys(folders.NAMES, "wrong")
    for event, (name, question) in zip(found, folders.QUESTIONS, strict=False):
        assert event["words"].endswith(question.look_at)
        answer = right[name][question.name]
        if isinstance(answer, float):
            assert f"{answer:.2g}" not in re.findall(r"\d[\d.]*", event["words"]), question.name
    same_sentence(seen.err)


@pytest.mark.parametrize(("exercise", "question"), folders.QUESTIONS, ids=folders.NAMES)
def test_one_wrong_answer_is_one_wrong_answer(finished, right, exercise, question):
    from netjoule.coursework import cells
    from netjoule.coursework.question import judge

    found = cells.read(finished / exercise, EXERCISES[exercise].cell_factors)
    for other in EXERCISES[exercise].questions:
        assert judge(exercise, other, right[exercise][other.name], found).verdict == "right"
    told = judge(exercise, question, wrong(question, right[exercise][question.name]), found)
    assert (told.exercise, told.question, told.verdict) == (exercise, question.name, "wrong")
    assert told.words.endswith(question.look_at)
    assert judge(exercise, question, None, found).verdict == "missing"


def named(choices, sentence):
    """Choices that a sentence says word by word; a plural is as good as a singular."""
    said = {word.rstrip("s") for word in re.findall(r"[a-z0-9]+", sentence.lower())}
    return [one for one in choices if {word.rstrip("s") for word in str(one).lower().split("_")} <= said]


@pytest.mark.parametrize(("exercise", "question"), folders.QUESTIONS, ids=folders.NAMES)
def test_no_hint_names_a_choice_and_not_the_others(exercise, question):
    """Other questions' hints have names of cells and columns, which are choices too, but no sentences."""
    assert len(named(question.choices, question.look_at)) != 1
    sentences = [choice for choice in question.choices if str(choice).count("_") > 1]
    for other in EXERCISES[exercise].questions:
        assert len(named(sentences, other.look_at)) != 1, other.name


def test_an_unanswered_question_is_missing_and_asked_again(handed_in, right, capsys):
    exercises = {name: dict(answers) for name, answers in right.items()}
    exercises["floor"]["floor_w"] = None
    del exercises["floor"]["floor_share_ratio"]
    folders.answer(handed_in, exercises)
    assert folders.checked(handed_in) == 1
    found = {e["question"]: e for e in folders.events(capsys) if e["event"] == "answer"}
    assert {name for name, e in found.items() if e["verdict"] == "missing"} == {
        "floor_w",
        "floor_share_ratio",
    }
    assert found["floor_w"]["words"].endswith("?")


def test_an_exercise_without_campaign_says_how_to_make_it(handed_in, capsys):
    shutil.rmtree(handed_in / "congestion")
    assert folders.checked(handed_in) == 1
    missing = [e for e in folders.events(capsys) if e.get("verdict") == "missing"]
    assert {e["exercise"] for e in missing} == {"congestion"}
    command = "netjoule run coursework-congestion --testbed testbed/topologies/seed-like.yaml --out"
    assert all(command in e["words"] for e in missing)


def test_one_exercise_can_be_checked_alone(handed_in, right, capsys):
    for other in ("floor", "congestion"):
        shutil.rmtree(handed_in / other)
    folders.answer(handed_in, {"envelope": right["envelope"], "floor": None})
    assert folders.checked(handed_in, "--exercise", "envelope") == 0
    assert set(folders.verdicts(folders.events(capsys)).values()) == {"right"}
    assert folders.checked(handed_in, "--exercise", "swimming") == 2
    same_sentence(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1000, "a factor of 1000: look at the unit"),
        (0.001, "a factor of 1000: look at the unit"),
        (8, "a factor of 8: bits or bytes"),
        (0.125, "a factor of 8: bits or bytes"),
        (100, "a factor of 100: percent or a ratio"),
        (-1, "the other sign"),
        (1.5, ""),
    ],
)
def test_a_known_slip_is_named(factor, words):
    number = Number(0.37, 0.02)
    assert not number.holds(0.37 * factor)
    same_sentence(number.slip(0.37 * factor))
    assert bool(number.slip(0.37 * factor)) == bool(words)


def test_a_number_holds_within_the_wider_of_its_tolerances():
    assert Number(10, 0.02).holds(10.2)
    assert not Number(10, 0.02).holds(10.21)
    assert Number(0.001, 0.02, 0.01).holds(0.0109)
    assert not Number(0.001, 0.02, 0.01).holds(0.0111)
    assert Number(0.0, 0.02, 0.01).holds(-0.01)
    assert not Number(5.0, 0.02).holds("5")
    assert not Number(1.0, 0.02).holds(True)


def test_each_of_several_right_choices_is_right():
    question = Question("q", "Which?", "Look.", lambda _cells: frozenset({"udp", "tcp"}))
    found = [judge("x", question, choice, Cells([])).verdict for choice in ("udp", "tcp", "quic")]
    assert found == ["right", "right", "wrong"]


def test_the_version_that_is_known_is_the_contracts(handed_in, monkeypatch, capsys):
    name, schema = "coursework_answers", contracts.schema
    later = schema(name) | {"properties": schema(name)["properties"] | {"schema_version": {"const": 2}}}
    monkeypatch.setattr(contracts, "schema", lambda of: later if of == name else schema(of))
    path = handed_in / "answers.yaml"
    path.write_text(path.read_text().replace("schema_version: 1", "schema_version: 3"))
    assert folders.checked(handed_in) == 4
    same_sentence(capsys.readouterr().err)
