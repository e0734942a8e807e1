# SPDX-License-Identifier: Apache-2.0
import junitparser
import pytest
import verdict_documents as made

from netjoule.gate.outputs import junit


def read(verdict: dict) -> junitparser.TestSuite:
    (suite,) = junitparser.JUnitXml.fromstring(junit.text(verdict).encode())
    return suite


def outcome(case: junitparser.TestCase) -> str:
    return case.result[0]._tag if case.result else "passed"


def properties(owner) -> dict[str, str]:
    found = owner.child(junitparser.Properties)
    return {one.name: one.value for one in found}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("pass", "passed"), ("fail", "failure"), ("inconclusive", "skipped"), ("skipped", "skipped")],
)
def test_the_decision_is_the_first_testcase(kind, expected):
    suite = read(made.verdict(kind))
    decision = next(iter(suite))
    assert decision.name == "decision: energy"
    assert outcome(decision) == expected
    assert properties(decision)["exit_code"] == str(made.EXIT_CODES[kind])
    cases = list(suite)
    assert len({(case.classname, case.name) for case in cases}) == len(cases) == suite.tests
    assert suite.time == pytest.approx(690.5)
    for counted in ("failures", "errors", "skipped"):
        tag = {"failures": "failure", "errors": "error"}.get(counted, counted)
        assert getattr(suite, counted) == sum(outcome(case) == tag for case in cases)


def test_cells_fail_only_where_the_gate_does():
    cells = ["passed", "failure", "failure", "passed", "skipped", "passed", "error"]
    assert [outcome(case) for case in read(made.verdict("fail"))] == ["failure", *cells]
    decided = [one.replace("failure", "passed") for one in cells]
    assert [outcome(case) for case in read(made.verdict("pass"))] == ["passed", *decided]


def test_a_regression_names_ratio_interval_and_blocks_and_numbers_are_properties():
    decision, first, second, *_ = read(made.verdict("fail"))
    (failure,) = decision.result
    assert failure.message == "fail: one sentence"
    assert failure.type == "regression"
    assert failure.text == "ratio 1.0490\ninterval 1.0210 to 1.0780\nblocks 8"
    found = properties(decision)
    assert (float(found["ratio_low"]), int(found["blocks"]), int(found["looks"])) == (1.021, 8, 2)
    assert properties(second)["ratio"] == "1.06"
    assert "difference_w" not in properties(first)
    assert second.name == "payload_bytes=300: energy"


def test_an_anchor_is_a_testcase():
    found = read(made.verdict("pass", anchor=made.anchor("fail")))
    assert [(case.name, outcome(case)) for case in found][:2] == [
        ("decision: energy", "passed"),
        ("anchor: energy", "failure"),
    ]


def test_the_suite_says_of_what_it_is():
    suite = read(made.verdict("fail"))
    assert (suite.hostname, suite.timestamp) == ("emulated", "2026-11-26T20:30:00Z")
    found = properties(suite)
    assert found["arm head"] == "2" * 40
    assert found["power_source"] == "modelled"
    assert "version r" not in found


def test_hostile_names_stay_names():
    suite = read(made.hostile())
    assert [outcome(case) for case in suite] == ["failure", "failure", "failure", "skipped"]
    text = junit.text(made.hostile())
    assert "]]>" not in text
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    shown = next(iter(suite)).result[0].message
    assert shown.startswith("a|b\\n::error::x]]>\\x1b[31m`&<\"'%0A,@all \\x00\\ud800\\u202e")
