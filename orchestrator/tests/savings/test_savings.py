# SPDX-License-Identifier: Apache-2.0
"""`netjoule savings`: the published chain digit by digit, a given difference, and what makes no sense."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from golden_sentences import same_sentence
from hypothesis import given
from hypothesis import strategies as st

from netjoule.cli.app import run_command
from netjoule.savings import published
from netjoule.savings.calculation import Calculation, Question, exact, mean_power_w
from netjoule.savings.output import with_u95
from netjoule.savings.rounding import cut_to, judge

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    monkeypatch.chdir(ROOT)


def documents(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


# -- the published chain --------------------------------------------------------------------------


def test_the_published_chain_comes_out_in_its_printed_digits(capsys):
    assert run_command(["savings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip().rsplit("  ", 1) for line in lines[1:5]] == [
        ["  167e9 minutes of calls at 65 kb/s                   ", "6.513e11 Mb"],
        ["  times 454 - 334 = 120 J/Mb saved (Table IV, skype)  ", "78.15 TJ"],
        ["  at 3.6 MJ/kWh                                       ", "21.7 GWh"],
        ["  at 4226 kWh a home                                  ", "5137 homes"],
    ]


def test_it_is_computed_from_its_inputs():
    """Twice the minutes are twice the results: nothing of them is typed in."""
    found = published.read()
    document = json.loads(json.dumps(found.document))
    twice = published.Published(document, replace(found.question, minutes=2 * found.question.minutes))
    assert list(twice.results()) == [
        ("1.303e12", "Mb"),
        ("156.31", "TJ"),
        ("43.4", "GWh"),
        ("10274", "homes"),
    ]


def test_every_digit_by_whole_numbers():
    """The same by hand: joules of 167e9 minutes, 65,000 bit/s and 120 J/Mb."""
    bits = 167 * 10**9 * 60 * 65_000
    assert bits == 6_513 * 10**8 * 10**6
    joules = bits // 10**6 * 120
    assert joules == 78_156 * 10**9
    assert joules * 100 == 2171 * 36 * 10**11  # 1 GWh is 3.6e12 J
    homes = Fraction(joules, 3_600_000 * 4226)
    megabits, tj, gwh, homes_found = (step.value for step in published.read().chain.steps())
    assert (megabits, tj, gwh) == (651_300_000_000, Fraction(78_156, 1000), Fraction(2171, 100))
    assert homes_found == homes
    assert 5137 < homes < 5138


def test_where_printed_and_computed_digits_differ_is_said(capsys):
    words = {judgement.printed: judgement.words for _, judgement in published.read().judgements()}
    assert words == {
        "6.513e11": "exact",
        "78.15": "78.156 computed, cut off: rounding gives 78.16",
        "21.7": "21.71 computed, rounded",
        "5137": "5137.246 computed, rounded; from the printed 21.7 it would be 5135",
    }
    assert [percent.words for percent in published.read().percentages()] == [
        "26.43 from the printed E_A, rounded",
        "26.67 from the printed E_A, which rounds to 27; the E_A before rounding allow 24.7 to 28.6",
    ]
    assert run_command(["savings"]) == 0
    text = capsys.readouterr().out
    assert all(found in text for found in words.values())


def test_the_page_tells_the_same_digits():
    page = (ROOT / "docs" / "savings.md").read_text(encoding="utf-8")
    told = page.partition("## The published digits")[2]
    for _, judgement in published.read().judgements():
        carried = judgement.from_printed if judgement.from_printed != judgement.printed else ""
        assert judgement.printed in told
        assert carried in told
    for words in ("78.156", "78.16", "26.43", "26.67", "24.7 to 28.6"):
        assert words in told


def test_its_slips_are_named_with_what_is_right(capsys):
    assert run_command(["savings"]) == 0
    text = capsys.readouterr().out
    for words in (
        "lists 27 rates, of which 24 are distinct",
        "26 combinations x 40 is one payload size",
        "24 rates x 2 sizes x 40 = 1920 runs",
        "total 1.33 h, not 1.5",
        "about 50 % where Table IV says 26 %",
        "365 days, though it is a leap year",
        "2.478 MW over 365 days, 2.472 MW over 366",
    ):
        assert words in text, words


def test_the_length_of_the_year_is_in_no_result():
    chain = published.read().chain
    assert mean_power_w(chain, 365) * 365 == mean_power_w(chain, 366) * 366
    assert round(float(mean_power_w(chain, 366)) / 1e6, 3) == 2.472


def test_the_published_defaults_are_those_that_the_help_names(capsys):
    question = published.read().question
    assert run_command(["savings", "--help"]) == 0
    text = capsys.readouterr().out
    assert f"[default: {question.minutes / 10**9}e9]" in text
    assert f"[default: {question.bit_rate_kbps}]" in text
    assert f"[default: {question.household_kwh}]" in text


def test_for_machines_it_is_one_document_per_line(capsys):
    assert run_command(["savings", "--difference", "-0.12", "--u95", "0.03", "--json"]) == 0
    own, first, *slips = documents(capsys.readouterr().out)
    assert (first["event"], own["event"]) == ("savings_published", "savings")
    assert {slip["event"] for slip in slips} == {"slip"}
    assert [step["printed"] for step in first["steps"]] == ["6.513e11", "78.15", "21.7", "5137"]
    assert [step["value"] for step in first["steps"][:3]] == [651.3e9, 78.156, 21.71]
    assert first["saved_j_per_mbit"] == 120
    assert own["metered_ends"] == own["directions"] == 1
    assert own["steps"][1] == {
        "step": "energy_tj",
        "unit": "TJ",
        "value": pytest.approx(0.078156),
        "u95": pytest.approx(0.019539),
    }


# -- digits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "like", "rounded", "truncated"),
    [
        ("78.156", "78.15", "78.16", "78.15"),
        ("651300000000", "6.513e11", "6.513e11", "6.513e11"),
        ("999960000000", "6.513e11", "1.000e12", "9.999e11"),
        ("5137.5", "5137", "5138", "5137"),
        ("0.04", "21.7", "0.0", "0.0"),
        ("0", "5137", "0", "0"),
    ],
)
def test_a_number_takes_the_digits_and_the_form_of_a_printed_one(value, like, rounded, truncated):
    assert cut_to(Fraction(value), like, "rounded") == rounded
    assert cut_to(Fraction(value), like, "truncated") == truncated


@given(st.fractions(min_value=0, max_value=10**6), st.sampled_from(["5137", "21.7", "78.15", "1.234567"]))
def test_rounding_is_within_half_a_digit_and_cutting_off_never_adds(value, like):
    digit = Fraction(10) ** Decimal(like).as_tuple().exponent
    assert abs(Fraction(cut_to(value, like, "rounded")) - value) <= digit / 2
    assert 0 <= value - Fraction(cut_to(value, like, "truncated")) < digit


def test_a_number_that_neither_rounds_nor_is_cut_off_is_told():
    found = judge([Fraction(5), Fraction(10)], ["5", "12"], 1, "rounded")
    same_sentence(found.words)


# -- one's own difference -------------------------------------------------------------------------------

POSITIVE = st.fractions(min_value=Fraction(1, 1000), max_value=10**9)


@given(POSITIVE, POSITIVE, POSITIVE, st.fractions(min_value=-500, max_value=500), POSITIVE)
def test_uncertainty_goes_through_every_step_as_a_share(minutes, rate, household, saved, u95):
    for step in list(Calculation(Question(minutes, rate, household), saved, u95).steps())[1:]:
        assert step.u95 * saved == step.value * u95


def test_a_given_difference_keeps_its_uncertainty(capsys):
    assert run_command(["savings", "--difference", "-0.12", "--u95", "0.03"]) == 0
    own, published, _ = capsys.readouterr().out.partition("\nPublished: ")
    same_sentence(own)  # one's own figure comes first
    assert published
    same_sentence(own)
    assert "in this model" not in own.lower()


def test_minutes_bit_rate_and_household_are_ones_own_when_given(capsys):
    words = ["savings", "--difference", "-120", "--u95", "0", "--minutes", "1000", "--bit-rate-kbps", "100"]
    assert run_command([*words, "--household-kwh", "0.2", "--json"]) == 0
    own, *_ = documents(capsys.readouterr().out)
    assert (own["minutes"], own["bit_rate_kbps"], own["household_kwh"]) == (1000, 100, 0.2)
    # 1000 min x 60 s x 0.1 Mb/s = 6000 Mb, 720 kJ = 0.2 kWh: one home.
    assert [step["value"] for step in own["steps"]] == [6000, 720e3 / 1e12, 0.2e-6, 1]


@pytest.mark.parametrize(
    ("difference", "u95", "words"),
    [
        (
            "-0.12",
            "0.03",
            "the interval of the saving is above zero: the other transport takes less energy than UDP",
        ),
        (
            "0.12",
            "0.03",
            "the interval of the saving is below zero: the other transport takes more energy than UDP",
        ),
        ("0.02", "0.03", "the interval holds zero: there is no clear difference"),
        ("-0.03", "0.03", "the interval holds zero"),
    ],
)
def test_what_the_interval_says_is_said(difference, u95, words, capsys):
    assert run_command(["savings", f"--difference={difference}", "--u95", u95]) == 0
    assert words in capsys.readouterr().out.replace("The interval", "the interval")


@pytest.mark.parametrize(
    ("value", "u95", "text"),
    [
        ("78.156", "19.5", "78 ± 20"),
        ("78.156", "0.0195", "78.156 ± 0.020"),
        ("5137.2", "1284", "5100 ± 1300"),
        ("-0.5", "0.3", "-0.50 ± 0.30"),
        ("0.1", None, "0.1"),
        ("0.1", "0", "0.1 ± 0"),
    ],
)
def test_a_value_is_written_to_the_second_digit_of_its_uncertainty(value, u95, text):
    assert with_u95(exact(value), None if u95 is None else exact(u95)) == text


@pytest.mark.parametrize("difference", ["1e18", "-1e18", "1e-12", "0"])
@pytest.mark.parametrize("u95", ["1e18", "1e-12", "0"])
@pytest.mark.parametrize("size", ["1e18", "1e-12"])
@pytest.mark.parametrize("household", ["1e18", "1e-12"])
def test_the_bounds_themselves_are_computed(difference, u95, size, household, capsys):
    words = [
        "savings",
        f"--difference={difference}",
        "--u95",
        u95,
        "--minutes",
        size,
        "--bit-rate-kbps",
        size,
    ]
    assert run_command([*words, "--household-kwh", household]) == 0
    assert "With the difference given" in capsys.readouterr().out


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--campaign", "nowhere"],
        ["--campaign", "x", "--difference", "1", "--u95", "1"],
        ["--difference", "1"],
        ["--u95", "1"],
        ["--transport", "tcp"],
        ["--minutes", "5"],
        ["--difference", "1", "--u95", "1", "--household-kwh", "0"],
        ["--difference", "1", "--u95", "1", "--bit-rate-kbps", "nan"],
        ["--difference", "inf", "--u95", "1"],
        ["--difference", "1", "--u95", "-1"],
        ["--difference", "1", "--u95", "nan"],
        ["--difference", "1", "--u95", "inf"],
        ["--difference", "nan", "--u95", "1"],
        ["--difference", "1e999", "--u95", "1"],
        ["--difference=-1e300", "--u95", "1"],
        ["--difference", "1", "--u95", "1e300"],
        ["--difference", "1", "--u95", "5e-324"],
        *(
            ["--difference", "1", "--u95", "1", f"--{name}", value]
            for name in ("minutes", "bit-rate-kbps", "household-kwh")
            for value in ("nan", "inf", "1e308", "1e-300")
        ),
        ["--campaign", "x", "--offered-rate-mbps", "nan"],
        ["--campaign", "x", "--offered-rate-mbps", "1e308"],
    ],
)
def test_what_makes_no_sense_is_one_line_and_exit_2(words, capsys):
    assert run_command(["savings", *words]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    same_sentence(seen.err)
