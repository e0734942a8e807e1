# SPDX-License-Identifier: Apache-2.0
"""Rounds, medians, limits and the page that keeps them."""

from netjoule_bench.repeats import interleaved, median, ratio, shown
from netjoule_bench.tables import Section, Verdict, at_least, at_most, markdown, pruned, text


def test_arms_take_turns():
    order = []
    arms = {name: lambda name=name: order.append(name) or len(order) for name in "ab"}
    assert interleaved(arms, 3) == {"a": [1, 3, 5], "b": [2, 4, 6]}
    assert order == ["a", "b"] * 3


def test_a_median_needs_every_round():
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([3.0, None, 2.0]) is None
    assert median([]) is None


def test_ratios_are_taken_within_a_round():
    # The machine is twice as slow in the second round: both arms are, their ratio is not.
    assert ratio([2.0, 4.0, 2.0], [4.0, 8.0, 4.0]) == 0.5
    assert ratio([2.0, 4.0], [4.0, None]) is None
    assert ratio([2.0], [0.0]) is None


def test_what_is_not_known_is_shown_as_such():
    assert shown(None) == "-"
    assert shown(1234.5, ",.0f") == "1,234"


def test_limits_hold_at_their_border_and_nothing_is_not_judged():
    assert at_most("x", 0.9, 0.9).passed is True
    assert at_most("x", 0.91, 0.9) == Verdict("x", "<= 0.90", "0.91", False)
    assert at_least("x", 0.95, 0.95).passed is True
    assert at_least("x", 0.94, 0.95).word == "NOT met"
    assert at_least("x", None, 0.95) == Verdict("x", ">= 0.95", "not told", None)


def test_a_miss_is_a_miss_and_what_could_not_be_judged_is_none():
    def missed(*verdicts, passed=None):
        return Section("t", ["c"], [["1"]], "n", passed=passed, verdicts=list(verdicts)).missed

    assert not missed(at_most("x", 1, 2), at_most("y", 2, 2))
    assert missed(at_most("x", 1, 2), at_most("y", None, 2))
    assert missed(at_most("x", 1, 2), at_most("y", 3, 2))
    assert missed(passed=False)


def test_the_page_begins_with_every_limit_and_keeps_other_tables():
    first = Section("CPU", ["who", "us"], [["we", "1"]], "note", verdicts=[at_most("cost", 0.8, 0.9)])
    second = Section("Rate", ["who", "pps"], [["we", "2"]], "note", verdicts=[at_least("rate", 1.0, 2.0)])
    plain = Section("Relay", ["case"], [["a"]], "note", passed=True)
    page = markdown([first, plain], "Host: A.")
    page = markdown([second], "Host: B.", page)
    places = [page.index(title) for title in ("What must hold", "## CPU", "## Relay", "## Rate")]
    assert places == sorted(places)
    summary = page.split("\n## ")[1]
    assert "| cost | <= 0.90 | 0.80 | met |" in summary
    assert "| rate | >= 2.00 | 1.00 | NOT met |" in summary
    assert page.count("Host: A.") == 2 and page.count("Host: B.") == 1
    assert "All rows are within the limit." in page


def test_a_table_that_is_measured_again_replaces_its_old_self_and_its_limits():
    def page_of(value, page=""):
        verdicts = [at_most("cost", value, 0.9)]
        return markdown([Section("CPU", ["who"], [["we"]], "note", verdicts=verdicts)], "Host.", page)

    page = page_of(0.8, page_of(1.0))
    assert page.count("| cost |") == 2  # in its section and in the summary
    assert "NOT met" not in page
    assert page_of(0.8, page) == page


def test_the_terminal_gets_aligned_columns_and_verdicts():
    section = Section(
        "T", ["who", "value"], [["a", "1"], ["longer", "22"]], "note", verdicts=[at_most("cost", 1.0, 0.9)]
    )
    lines = text(section).splitlines()
    assert lines[3] == "  a           1"
    assert lines[-1].split() == ["cost", "<=", "0.90", "1.00", "NOT", "met"]


def test_who_is_absent_has_an_empty_row_and_a_reason():
    section = Section("T", ["who", "pps", "loss"], [["we", "1", "0"]], "Note.")
    section = section.with_absent({"NetPerfMeter": "this kernel lacks SCTP"})
    assert section.rows == [["we", "1", "0"], ["NetPerfMeter", "-", "-"]]
    assert section.note == "Note. No NetPerfMeter: this kernel lacks SCTP."


def test_a_whole_run_leaves_no_table_of_a_bench_that_is_gone():
    old, new = (Section(title, ["who"], [["we"]], "note") for title in ("Old", "New"))
    page = markdown([old, new], "Host.")
    assert pruned(page, {"New"}) == markdown([new], "Host.")
