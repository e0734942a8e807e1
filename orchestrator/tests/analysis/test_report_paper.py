# SPDX-License-Identifier: Apache-2.0
"""report.html on paper: how many pages, whole tables and words, nothing that only a screen has."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import pdf_pages
from page_rules import BROKEN_WORDS, CUT_TABLES
from report_pages import PAPER, OpenPage, of_design

from netjoule_synthetic import Meter, tiny

MOST_PAGES = 12
"""Of a report on paper that a person reads."""


def test_paper_has_no_controls_and_short_folded_parts(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    page.evaluate("addEventListener('afterprint', () => window.over = 1)")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert 4 <= pdf_pages(pdf) <= MOST_PAGES
    # A4 in points.
    assert b"/MediaBox [0 0 594.95" in pdf or b"/MediaBox [0 0 595" in pdf
    assert page.evaluate("window.over") == 1
    assert page.evaluate("document.querySelector('#table-envelope').open") is False
    page.emulate("print")
    shown = "(selector => [...document.querySelectorAll(selector)].filter(e => e.checkVisibility()).length)"
    assert page.evaluate(f"{shown}('nav, button:not(th button), .skip')") == 0
    assert page.evaluate(f"{shown}('#table-ea_summary table')") == 1
    assert page.evaluate(f"{shown}('#table-envelope table, #table-runs table')") == 0
    assert page.evaluate(f"{shown}('#table-runs summary')") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the demo's shape: its transports, sizes, loads, blocks and two meters, one of no use."""
    design = tiny(
        transports=("udp", "dccp", "tcp", "quic", "null"),
        payload_bytes=(64, 1440),
        offered_rate_mbps=(1.0, 6.0, 30.0),
        blocks=3,
        meters=(Meter("client-cpu"), Meter("client-radio")),
    )
    return of_design(tmp_path_factory.mktemp("demo"), design)


def test_the_demo_is_at_most_twelve_pages_and_no_figure_leaves_one_half_empty(
    demo: Path, open_page: OpenPage
) -> None:
    page = open_page(demo, **PAPER)
    assert 6 <= pdf_pages(page.pdf()) <= MOST_PAGES
    page.emulate("print")
    # A figure moves whole to the next page: what it leaves free is less than itself.
    highs = page.evaluate(
        "[...document.querySelectorAll('figure')].filter(e => e.checkVisibility())"
        ".map(e => [e.id, e.getBoundingClientRect().height])"
    )
    assert len(highs) >= 6
    assert [(name, high) for name, high in highs if high > PAPER["height"] / 2] == []


@pytest.mark.parametrize("folder", ["few", "beside"])
def test_on_paper_no_table_is_cut_and_no_word_broken(
    folder: str, request: pytest.FixtureRequest, open_page: OpenPage
) -> None:
    page = open_page(request.getfixturevalue(folder), **PAPER)
    page.emulate("print")
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate(CUT_TABLES) == []
    assert page.evaluate(BROKEN_WORDS) == []
    count = page.evaluate("document.querySelectorAll('#published td').length")
    assert (count > 20) == (folder == "beside")


@pytest.mark.slow
def test_a_long_folded_table_is_named_on_paper_and_not_printed(many: Path, open_page: OpenPage) -> None:
    page = open_page(many)
    assert pdf_pages(page.pdf()) < 200
    page.emulate("print")
    assert page.evaluate("document.querySelector('#table-runs summary').checkVisibility()")
    assert not page.evaluate("document.querySelector('#table-runs table').checkVisibility()")
