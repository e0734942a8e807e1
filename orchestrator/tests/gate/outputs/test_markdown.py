# SPDX-License-Identifier: Apache-2.0
import re

import pytest
import verdict_documents as made
from markdown_it import MarkdownIt

from netjoule.gate.outputs import interval_bars, markdown


def tables(text: str) -> list[list[list[str]]]:
    """Tables of a page as a reader of GitHub's tables sees them: rows of cells."""
    found: list[list[list[str]]] = []
    before = ""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and before in ("th_open", "td_open"):
            found[-1][-1].append("".join(child.content for child in token.children))
        before = token.type
    return found


def test_a_pass_is_one_line():
    assert markdown.text(made.verdict("pass")) == "**netjoule gate:** pass: one sentence\n"


@pytest.mark.parametrize("kind", ["fail", "inconclusive"])
def test_else_what_was_asked_and_a_row_for_decision_and_each_cell(kind):
    about, figure = tables(markdown.text(made.verdict(kind)))
    assert ["asked", "pass below +3 %, fail above +1 %"] in about
    assert ["objective", "energy (J/Mb), power modelled"] in about
    assert figure[0][0] == "cell"
    assert [row[-1] for row in figure[1:]][:4] == [kind, "more", "more", "less"]
    assert len(figure) == 2 + len(made.cells())
    assert {len(row) for row in figure} == {6}
    assert [row[2] for row in figure if row[0] == "payload_bytes=1300"] == ["+0.012 W"]


def test_a_skipped_gate_has_no_session_to_show():
    (about,) = tables(markdown.text(made.verdict("skipped")))
    assert ["base", "main (git, commit 111111111111)"] in about


def test_a_pass_that_fails_against_the_anchor_is_not_silent():
    text = markdown.text(made.verdict("pass", anchor=made.anchor("fail")))
    assert [row[-1] for row in tables(text)[1][1:3]] == ["pass", "fail"]


def test_five_thousand_cells_are_under_64_kb_and_the_rest_is_counted():
    text = markdown.text(made.of_many_cells(5000))
    assert 50_000 < len(text.encode()) < 64_000
    shown = len(tables(text)[1]) - 2
    rest = re.search(r"And (\d+) cells more: (.*)\.\n", text)
    assert rest is not None
    assert shown + int(rest[1]) == 5000
    assert sum(int(n) for n in re.findall(r"(\d+) [a-z]", rest[2])) == int(rest[1])
    assert tables(text)[1][2][-1] == "more"


def test_the_longest_names_are_cut_so_that_it_stays_under_64_kb():
    long = "語" * 100_000
    verdict = made.hostile() | {"words": long, "rig": long, "unit": long, "workload": long}
    verdict["arms"] = [{**arm, "name": long, "text": long} for arm in verdict["arms"] * 2]
    verdict["sessions"][0]["cells"] = [made.cell("more", cell={long: n}, reason=long) for n in range(500)]
    assert len(markdown.text(verdict).encode()) < 64_000


def test_hostile_names_stay_names():
    text = markdown.text(made.hostile())
    about, figure = tables(text)
    assert {len(row) for row in about} == {2}
    assert {len(row) for row in figure} == {6}
    assert len(figure) == 5
    assert all(letter.isprintable() or letter in "\n\u200b" for letter in text)
    inline = [
        t for token in MarkdownIt("commonmark").enable("table").parse(text) for t in token.children or ()
    ]
    assert {t.type for t in inline} == {"text", "code_inline", "strong_open", "strong_close"}
    assert all("@all" not in t.content for t in inline if t.type == "text")
    assert "[31m" in "".join(t.content for t in inline if t.type == "text")


def test_bars_show_where_an_interval_lies():
    part = {"ratio": 1.05, "ratio_low": 0.95, "ratio_high": 1.1}
    end = interval_bars.scale([part], 0.03)
    assert end == 0.1
    assert interval_bars.bar(part, 0.03, end) == "·······├──────┼───╫──●──────┤"
    beyond = {"ratio": 1.5, "ratio_low": 0.1, "ratio_high": 9.0}
    assert interval_bars.scale([beyond], 0.03) == 0.2
    line = interval_bars.bar(beyond, 0.03, 0.2)
    assert (line[0], line[-1]) == ("◂", "●")
    nothing = interval_bars.bar(dict.fromkeys(part), 0.03, 0.1)
    assert nothing == "··············│···╎··········"
