# SPDX-License-Identifier: Apache-2.0
"""report.html in a browser: on a desk, on a phone, without scripts, with names that mean harm."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import poisoned
import pytest
from chromium import Chromium, Page
from golden_sentences import raises
from page_rules import DRAWINGS, LOW_CONTRAST, SKIPPED_HEADINGS, SMALL_WORDS, UNNAMED
from report_pages import DESK, PHONE, OpenPage, reported

from netjoule.analysis import analysis
from netjoule.core.errors import InvalidData
from netjoule_synthetic import Meter, tiny, write

MOST_BYTES = 10_000_000


@pytest.fixture(scope="module")
def poison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 12 runs whose names mean harm."""
    campaign = write(tmp_path_factory.mktemp("poison") / "campaign", tiny())
    return reported(poisoned.poison(campaign))


def drawings(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(DRAWINGS)
    return found


def figure_names(report: Path) -> list[str]:
    index = json.loads((report.parent / "figures" / "index.json").read_text())
    return [entry["svg"].removesuffix(".svg") for entry in index]


def assert_reads_well(page: Page, report: Path) -> None:
    """What has to hold of every report in every window."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # Those without news and those of the measurement itself are folded.
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    shown = drawings(page)
    assert [one["id"] for one in shown] == [f"figure-{name}" for name in figure_names(report)]
    for one in shown:
        assert one["width"] > 250, one
        assert one["height"] > 100, one
        assert one["marks"] > 10, one
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert page.evaluate(SKIPPED_HEADINGS) == []
    assert page.evaluate(UNNAMED) == []
    for section in ("summary", "figures", "tables", "method", "invalid", "environment", "glossary"):
        assert page.evaluate(f"document.querySelector('section#{section}').innerText.length > 40"), section


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_twelve_runs_are_read_on_a_desk_and_on_a_phone(
    few: Path, open_page: OpenPage, size: dict[str, Any]
) -> None:
    assert_reads_well(open_page(few, **size), few)


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_so_are_7680(many: Path, open_page: OpenPage, size: dict[str, Any]) -> None:
    assert many.stat().st_size < MOST_BYTES
    page = open_page(many, **size)
    assert_reads_well(page, many)
    assert "15360 rows, tables/runs.csv" in page.evaluate("document.querySelector('#table-runs').textContent")


ANSWER = ("Answer", "What it rests on", "What would change it")
MODEL = """
(() => {
  const said = text => (text.replace(/\\s/g, ' ').match(/in this model/gi) ?? []).length;
  const clone = document.body.cloneNode(true);
  clone.querySelectorAll('script, svg, p.source, footer, #glossary').forEach(e => e.remove());
  const sources = [...document.querySelectorAll('p.source, footer')].map(e => said(e.textContent));
  return [said(clone.textContent), said(document.querySelector('header').textContent), Math.max(...sources)];
})()
"""
"""How often a page says it without its source lines, its head says it, and a source line at most."""


def test_the_answer_what_it_rests_on_and_what_would_change_it_are_one_screen(
    few: Path, open_page: OpenPage
) -> None:
    page = open_page(few)
    heads = "[...document.querySelectorAll('#summary h2, #summary h3')].slice(0, 3).map(e => e.textContent)"
    assert tuple(page.evaluate(heads)) == ANSWER
    last = "document.querySelector('#summary ul').getBoundingClientRect().bottom"
    assert 0 < page.evaluate(last) <= DESK["height"]
    assert page.evaluate("document.querySelectorAll('#summary ul li').length") >= 2
    # Statistics and parameters stand behind all figures.
    order = page.evaluate("[...document.querySelectorAll('main > section')].map(e => e.id)")
    assert order[:2] == ["summary", "figures"]
    assert order[order.index("appendix") :] == [
        *("appendix", "tables", "method", "invalid", "environment", "glossary")
    ]


def test_that_it_is_a_model_is_said_once_at_the_head_and_in_each_source_line(
    few: Path, open_page: OpenPage
) -> None:
    page = open_page(few)
    assert page.evaluate(MODEL) == [1, 1, 1]


def test_the_summary_is_the_first_thing_and_no_claim_is_made_untested(few: Path, open_page: OpenPage) -> None:
    page = open_page(few, **PHONE)
    assert page.evaluate("document.querySelector('main > *').id") == "summary"
    lead = page.evaluate("document.querySelector('#summary p').textContent")
    assert lead.startswith("Energy per megabit over all loads, against UDP: TCP 19.18")
    for size in ("less at 64 bytes and", "less at 1440 bytes."):
        assert size in lead
    assert lead.endswith("2 repetitions (blocks) are too few for a significance test; 8 are needed.")
    assert page.evaluate("[...document.querySelectorAll('#summary h3')][1].textContent") == (
        "What would change it"
    )
    first = page.evaluate("document.querySelector('ul.verdicts li').innerText")
    assert first.startswith("not tested")
    assert "TCP, 64 bytes: " in first
    assert "% less than UDP" in first


def test_the_first_figure_follows_the_answer(few: Path, open_page: OpenPage) -> None:
    page = open_page(few, **PHONE)
    figure = "document.querySelector('#summary figure')"
    assert page.evaluate(f"{figure}.id") == "figure-ea"
    assert page.evaluate(f"{figure}.getBoundingClientRect().top + scrollY") < 3 * PHONE["height"]
    assert page.evaluate("document.querySelector('#figures figure').id") == "figure-envelope"


def test_a_figure_without_news_is_folded_and_enlarges_all_the_same(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    assert page.evaluate("document.querySelector('#figure-loss details').open") is False
    assert "No message was lost" in page.evaluate("document.querySelector('#figure-loss .same').textContent")
    page.click("document.querySelector('#figure-loss button.enlarge')")
    assert width_of(page, ENLARGED) > 250
    page.key("Escape")
    assert page.evaluate(PUT_BACK) is True
    assert page.evaluate("document.querySelectorAll('#figure-loss details svg.wide').length") == 1


def test_every_link_leads_somewhere_and_no_name_is_given_twice(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    links = page.evaluate("[...document.querySelectorAll('a')].map(e => e.getAttribute('href'))")
    assert len(ids) == len(set(ids))
    assert {link for link in links if link[1:] not in ids and not link.startswith("data:text/csv;")} == set()
    # A drawing's clipping paths are its own, or those of one figure would cut another.
    foreign = """
      [...document.querySelectorAll('[clip-path]')].filter(e => {
        const id = e.getAttribute('clip-path').slice(5, -1);
        return !e.closest('svg').querySelector('#' + CSS.escape(id));
      }).length
    """
    assert page.evaluate(foreign) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(few: Path, open_page: OpenPage, scheme: str) -> None:
    page = open_page(few)
    page.emulate(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 28)"
    )
    assert page.evaluate(LOW_CONTRAST) == []


DRAWING = "[...document.querySelectorAll('figure svg')].find(e => e.getClientRects().length)"
ENLARGED = "document.querySelector('dialog[open] svg')"
# The dialog tells of its end in a task of its own, some time after it is closed.
PUT_BACK = """new Promise(done => {
  const look = () => document.querySelector('.zoom-place') ? setTimeout(look, 5) : done(true);
  look();
})"""


def width_of(page: Page, element: str) -> float:
    width: float = page.evaluate(f"({element}).getBoundingClientRect().width")
    return width


def test_a_figure_is_enlarged_and_put_back_by_mouse(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    before, names = width_of(page, DRAWING), [one["id"] for one in drawings(page)]
    page.click(DRAWING)
    fitting = width_of(page, ENLARGED)
    assert fitting > before
    page.click("document.querySelector('dialog button[aria-label=Larger]')")
    assert width_of(page, ENLARGED) == pytest.approx(1.5 * fitting, rel=0.01)
    page.click("document.querySelector('dialog button[aria-label=Close]')")
    assert page.evaluate("document.querySelector('dialog').open") is False
    assert page.evaluate(PUT_BACK) is True
    assert width_of(page, DRAWING) == before
    assert [one["id"] for one in drawings(page) if one["marks"]] == names


def test_a_figure_is_enlarged_and_put_back_by_keyboard(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    button = "document.querySelectorAll('button.enlarge')[1]"
    page.evaluate(f"{button}.focus()")
    page.key("Enter")
    fitting = width_of(page, ENLARGED)
    assert page.evaluate("document.querySelector('.zoom-title').textContent").startswith("Figure 2. ")
    page.key("+")
    page.key("+")
    assert width_of(page, ENLARGED) == pytest.approx(2 * fitting, rel=0.01)
    page.key("-")
    page.key("0")
    assert width_of(page, ENLARGED) == pytest.approx(fitting, rel=0.01)
    page.key("Escape")
    assert page.evaluate("document.querySelector('dialog').open") is False
    assert page.evaluate(f"document.activeElement === {button}")


def test_on_a_phone_a_figure_opens_as_high_as_the_screen_fits_it_and_grows(
    few: Path, open_page: OpenPage
) -> None:
    page = open_page(few, **PHONE)
    page.click(DRAWING)
    high = page.evaluate(f"({ENLARGED}).getBoundingClientRect().height")
    room = page.evaluate("document.querySelector('.zoom-view').offsetHeight")
    assert 0.95 * room < high <= room + 1
    assert width_of(page, ENLARGED) >= PHONE["width"]
    page.key("0")
    assert 300 < width_of(page, ENLARGED) <= PHONE["width"]
    page.key("+")
    assert width_of(page, ENLARGED) > PHONE["width"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_on_a_phone_no_figure_and_no_table_is_cut(few: Path, open_page: OpenPage) -> None:
    hints = "[...document.querySelectorAll('figure .hint')].filter(e => e.checkVisibility()).length"
    assert open_page(few).evaluate(hints) == 0
    page = open_page(few, **PHONE)
    assert page.evaluate(hints) > 3
    cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate(cut) == 0


def test_on_a_phone_words_in_figures_are_large_enough_to_read(few: Path, open_page: OpenPage) -> None:
    page = open_page(few, **PHONE)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate(SMALL_WORDS) == []
    shown = "[...document.querySelectorAll('figure svg')].filter(e => e.getClientRects().length)"
    classes = f"[...new Set({shown}.map(e => e.getAttribute('class')))]"
    assert page.evaluate(classes) == ["svglite narrow"]
    assert open_page(few).evaluate(classes) == ["svglite wide"]


def test_every_table_downloads_as_csv_where_it_stands(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    bare = """
      [...document.querySelectorAll('table')].filter(table => {
        const part = table.closest('details, section');
        return !part.querySelector(':scope a[download]');
      }).length
    """
    assert page.evaluate(bare) == 0
    link = "document.querySelector('#environment a[download]')"
    page.evaluate(f"{link}.addEventListener('click', e => e.preventDefault())")
    page.evaluate(f"{link}.click()")
    text = page.evaluate(f"decodeURIComponent({link}.href.split(',').slice(1).join(','))")
    rows = page.evaluate(f"{link}.closest('details').querySelectorAll('tr').length")
    assert len(list(csv.reader(text.splitlines()))) == rows
    assert "\u2212" not in text


def test_composed_figures_tell_their_values(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    for name in ("floor", "message-cost", "power", "envelope"):
        marks = f"document.querySelectorAll('#figure-{name} svg.wide .mark').length"
        assert page.evaluate(marks) > 1, name


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_two_campaigns_are_laid_over_each_other_in_one_page(
    few: Path, tmp_path: Path, open_page: OpenPage, size: dict[str, Any]
) -> None:
    # The path is no ASCII, as a user's may be.
    other = write(tmp_path / "später" / "after", tiny())
    out = tmp_path / "both.html"
    analysis.run_overlay(few.parent, other, out, lambda _: None)
    page = open_page(out, **size)
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(SKIPPED_HEADINGS) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(LOW_CONTRAST) == []
    assert all(one["width"] > 250 for one in drawings(page))
    assert len(drawings(page)) >= 2
    assert "E_A of B is" in page.evaluate("document.querySelector('#summary .lead').textContent")
    assert page.evaluate("document.querySelectorAll('#tables tbody tr').length") > 1


def test_the_keyboard_reaches_the_page_and_shows_where_it_is(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    reached = []
    for _ in range(4):
        page.key("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == ["Skip to the answer", "Answer", "Figures", "Statistics"]


def test_a_link_unfolds_what_it_leads_into(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    folded = "document.querySelector('#table-envelope')"
    assert page.evaluate(f"{folded}.open") is False
    page.click("document.querySelector('#figure-envelope figcaption a')")
    assert page.evaluate(f"{folded}.open") is True
    deep = open_page(few, "#table-runs")
    assert deep.evaluate("document.querySelector('#table-runs').open") is True


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_have_the_page_s_ground_and_words_that_stand_out(
    few: Path, open_page: OpenPage, scheme: str
) -> None:
    page = open_page(few)
    page.emulate(color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.querySelector('figure svg > rect')).fill")
    lightness = [int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (min(lightness) == 255) if scheme == "light" else (max(lightness) < 48)
    fills = page.evaluate(
        # Words of PHY rates stand on tiles of their own.
        "[...document.querySelectorAll('figure:not([id^=figure-phy-rates]) svg text')]"
        ".map(e => getComputedStyle(e).fill)"
        ".map(fill => Math.max(...fill.match(/[0-9]+/g).map(Number)))"
    )
    assert fills
    assert all(fill < 128 for fill in fills) if scheme == "light" else all(fill > 128 for fill in fills)
    # On paper they are as in the light.
    page.emulate("print", color_scheme=scheme)
    assert page.evaluate("getComputedStyle(document.querySelector('figure svg > rect')).fill") == (
        "rgb(255, 255, 255)"
    )


def test_a_table_is_sorted_by_a_click_and_by_the_keyboard(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    table = "document.querySelector('#table-ea_summary table')"
    # null has no E_A.
    column = f"[...{table}.tBodies[0].rows].map(row => parseFloat(row.cells[2].textContent)).filter(x => x)"
    page.click(f"{table}.querySelector('th:nth-child(3) button')")
    values = page.evaluate(column)
    assert len(values) > 3
    assert values == sorted(values)
    assert page.evaluate(f"{table}.querySelector('th:nth-child(3)').ariaSort") == "ascending"
    page.evaluate(f"{table}.querySelector('th:nth-child(3) button').focus()")
    page.key("Enter")
    assert page.evaluate(column) == sorted(values, reverse=True)


def test_a_point_tells_its_value_under_the_pointer_and_by_the_keyboard(
    few: Path, open_page: OpenPage
) -> None:
    page = open_page(few)
    tip = "document.querySelector('.tip').textContent"
    assert page.evaluate(tip) == ""
    mark = "document.querySelector('#figure-ea circle.mark')"
    x, y = page.evaluate(
        f"(() => {{ {mark}.scrollIntoView({{block: 'center'}}); const b = {mark}.getBoundingClientRect();"
        " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    told = page.evaluate(tip)
    assert " bytes, " in told
    assert " Mb/s: " in told
    page.evaluate("document.querySelector('#figure-ea .plot').focus()")
    page.key("ArrowRight")
    first = page.evaluate(tip)
    page.key("ArrowRight")
    second = page.evaluate(tip)
    page.key("ArrowLeft")
    assert page.evaluate(tip) == first != second
    assert {name for name in ("UDP, ", "TCP, ", "generator") if first.startswith(name)}
    marks = page.evaluate("document.querySelectorAll('#figure-ea svg.wide circle.mark').length")
    rows = (few.parent / "tables/ea_summary.csv").read_text().count("\n") - 1
    assert 0 < marks <= rows


def test_a_table_is_downloaded_whole_from_the_page(few: Path, open_page: OpenPage) -> None:
    page = open_page(few)
    link = "document.querySelector('#table-ea_summary a[download]')"
    assert page.evaluate(f"{link}.download") == "ea_summary.csv"
    data = page.evaluate(f"{link}.getAttribute('href')").partition("base64,")[2]
    assert base64.b64decode(data) == (few.parent / "tables/ea_summary.csv").read_bytes()


def test_published_values_stand_beside_the_contrast(beside: Path, open_page: OpenPage) -> None:
    page = open_page(beside)
    columns = "[...document.querySelectorAll('#published th[scope=col]')]"
    heads = page.evaluate(f"{columns}.map(e => e.textContent)")
    assert heads[3:7] == ["quantity", "published", "here", "differs in"]
    text = page.evaluate("document.querySelector('#published').textContent")
    assert "+: more than UDP" in text
    assert "over 3 loads; cells: " in text
    # On a desk all of it is seen without scrolling.
    box = "document.querySelectorAll('#published .scroll')[1]"
    assert page.evaluate(f"{box}.scrollWidth <= {box}.clientWidth")


def test_without_scripts_the_page_reads_the_same(few: Path, browser: Chromium) -> None:
    page = Page(browser, **DESK)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(few)
    assert_reads_well(page, few)
    assert page.evaluate("document.querySelectorAll('button').length") == 0
    assert page.problems() == []
    page.close()


def test_no_other_script_runs_and_nothing_is_fetched(few: Path, browser: Chromium) -> None:
    page = Page(browser, **DESK).open(few)
    page.evaluate(
        """(() => {
          const script = document.createElement('script');
          script.textContent = 'window.pwned = 1';
          const image = document.createElement('img');
          image.src = 'https://example.org/x.png';
          document.body.append(script, image);
          document.body.insertAdjacentHTML('beforeend', '<a id=trap onclick="window.pwned=1">x</a>');
          document.querySelector('#trap').click();
        })()"""
    )
    told = page.problems()
    assert page.evaluate("window.pwned") is None
    assert sum("Content Security Policy" in text for text in told) >= 3, told
    page.close()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_names_that_mean_harm_are_text(poison: Path, open_page: OpenPage, size: dict[str, Any]) -> None:
    page = open_page(poison, **size)
    assert_reads_well(page, poison)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed, base, form, b').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    attributes = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
    assert page.evaluate(f"{attributes}.filter(name => name.startsWith('on'))") == []
    text = page.evaluate("document.body.textContent")
    assert "\u202e" not in text
    for name in (poisoned.SCRIPT, poisoned.IMAGE, poisoned.TRANSPORT, "good<U+202E>rorre", "two lines"):
        assert name in text, name
    assert poisoned.CLOSING[:40] in text
    assert "long-" * 1000 not in text
    assert poisoned.SCRIPT in page.evaluate("document.title + document.querySelector('h1').textContent")


def test_figures_of_such_names_draw_them_as_text(poison: Path, open_page: OpenPage) -> None:
    page = open_page(poison)
    words = "[...document.querySelectorAll('figure svg text')].map(e => e.textContent)"
    drawn = " ".join(page.evaluate(words))
    assert poisoned.TRANSPORT in drawn
    assert poisoned.IMAGE[:30] in drawn.replace("\u00a0", " ")


def test_a_meter_s_name_that_is_no_file_name_is_refused(tmp_path: Path) -> None:
    campaign = write(tmp_path / "campaign", tiny(meters=(Meter("m"),)))
    document = json.loads((campaign / "campaign.json").read_text())
    document["meters"][0]["meter_id"] = poisoned.IMAGE
    (campaign / "campaign.json").write_text(json.dumps(document))
    with raises(InvalidData):
        reported(campaign)
    assert not (campaign / "report.html").exists()
