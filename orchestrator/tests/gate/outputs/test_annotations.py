# SPDX-License-Identifier: Apache-2.0
import re

import pytest
import verdict_documents as made

from netjoule.gate.outputs import github_annotations as annotations

_COMMAND = re.compile(r"::(error|warning) title=([^:,\n]*)::([^\n]*)")


def read(verdict: dict) -> list[tuple[str, str, str]]:
    """Kind, title and message as GitHub's runner decodes them."""
    found = []
    for line in annotations.text(verdict).splitlines():
        kind, title, message = _COMMAND.fullmatch(line).groups()
        title = title.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
        found.append((kind, title, message.replace("%25", "%")))
    return found


def test_a_pass_says_nothing():
    assert annotations.text(made.verdict("pass")) == ""


@pytest.mark.parametrize("kind", ["inconclusive", "skipped"])
def test_what_decides_nothing_is_one_warning(kind):
    assert read(made.verdict(kind)) == [("warning", f"netjoule gate: {kind}", f"{kind}: one sentence")]


def test_a_regression_is_an_error_and_its_cells_are_warnings_the_worst_first():
    assert read(made.verdict("fail")) == [
        ("error", "netjoule gate: fail", "fail: one sentence"),
        ("warning", "netjoule gate: payload_bytes=1440", "+20.0 %, 95 % interval +18.0 % to +22.0 %"),
        ("warning", "netjoule gate: payload_bytes=300", "+6.0 %, 95 % interval +4.0 % to +8.0 %"),
    ]


def test_there_are_ten_at_most():
    found = read(made.of_many_cells(500))
    assert len(found) == 10
    assert found[0][0] == "error"
    assert found[1][1] == "netjoule gate: payload_bytes=490"


def test_an_anchor_has_its_own():
    found = read(made.verdict("pass", anchor=made.anchor("fail")))
    assert found == [("error", "netjoule gate: anchor fail", "against v1: fail")]


def test_hostile_names_are_no_commands():
    found = read(made.hostile())
    assert [kind for kind, _, _ in found] == ["error", "error", "warning"]
    assert found[0][2].startswith("a|b\\n::error::x]]>\\x1b[31m`&<\"'%0A,@all")
    assert "a|b\\n::error::x" in found[2][1]
