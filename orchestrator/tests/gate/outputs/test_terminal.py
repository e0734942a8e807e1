# SPDX-License-Identifier: Apache-2.0
import pytest
import verdict_documents as made

from netjoule.core.console import Output
from netjoule.gate.outputs import terminal


def test_a_pass_is_one_line(capsys):
    terminal.tell(made.verdict("pass"), Output())
    assert capsys.readouterr().out == "pass: one sentence\n"


def test_a_regression_has_its_sessions_and_cells(capsys):
    terminal.tell(made.verdict("fail"), Output())
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        "fail: one sentence",
        "first session (session-1): fail after 8 of at most 11 blocks, +4.9 % (+2.1 % to +7.8 %)",
        "confirming session (session-2): fail after 8 of at most 11 blocks, +4.9 % (+2.1 % to +7.8 %)",
    ]
    more = ["+20.0", "%", "+18.0", "%", "to", "+22.0", "%", "0.04", "8", "more"]
    (row,) = [line.split() for line in said if "payload_bytes=1440" in line]
    assert row == ["payload_bytes=1440", *more]
    assert sum("payload_bytes=" in line for line in said) == len(made.cells())


def test_what_all_cells_have_in_common_is_not_told_in_each(capsys):
    found = [made.cell(cell={"size": size, "way": "up"}) for size in (64, 1440)]
    names = [row[0] for row in terminal.cell_table(found, "").rows]
    assert names == ["size=64", "size=1440"]
    assert [row[0] for row in terminal.cell_table(found[:1], "").rows] == ["all"]


def test_the_blocks_of_a_pilot_are_those_of_its_cells():
    bad = made.pilot()
    bad["sessions"][0]["looks"] = []
    assert [terminal.findings.blocks(one) for one in bad["sessions"]] == [8]


def test_a_skipped_gate_has_no_table(capsys):
    terminal.tell(made.verdict("skipped"), Output())
    assert capsys.readouterr().out == "skipped: one sentence\n"


def test_a_pilot_ranks_its_cells_and_windows(capsys):
    terminal.tell(made.pilot(), Output())
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = [words for words in said if words and words[0].startswith("payload_bytes=")]
    assert rows == [
        ["payload_bytes=64", "10", "s", "2.1", "%", "11", "15", "min"],
        ["payload_bytes=64", "2.5", "s", "5.5", "%", "71", "20", "min"],
        ["payload_bytes=1440", "until", "done", "30.0", "%", "over", "1000"],
    ]


@pytest.mark.parametrize("kind", ["pass", "fail"])
def test_machines_are_told_nothing_here(kind, capsys):
    terminal.tell(made.verdict(kind), Output(json_lines=True))
    assert capsys.readouterr().out == ""


def test_hostile_names_cannot_move_the_terminal(capsys):
    terminal.tell(made.hostile(), Output())
    said = capsys.readouterr().out
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    head, table = said.split("\n\n")
    assert len(head.splitlines()) == 3
    assert len(table.splitlines()) == 6
