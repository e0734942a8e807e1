# SPDX-License-Identifier: Apache-2.0
"""What `netjoule savings` says: to people in lines, to machines in documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from math import floor, log10
from typing import Any

from netjoule.core.words import counted
from netjoule.savings.calculation import Calculation, Question
from netjoule.savings.difference import Difference, same_load
from netjoule.savings.published import Published
from netjoule.savings.range_error import dominates

_LABEL_WIDTH = 52
_BEYOND = "a call has two of both, and a path between them that no meter saw"


def published_lines(published: Published) -> Iterator[str]:
    """The published chain in its own digits, what is to be known of them, and the errors in it."""
    source = published.minuend["source"]["label"]
    less = f"{published.minuend['printed']} - {published.subtrahend['printed']}"
    labels = (
        _calls(published.question),
        f"times {less} = {_number(published.chain.saved)} J/Mb saved"
        f" ({source}, {published.minuend['application']})",
        "at 3.6 MJ/kWh",
        _households(published.question),
    )
    yield f"Published: {published.title}"
    for label, (number, unit) in zip(labels, published.results(), strict=True):
        yield _line(label, f"{number} {unit}")
    yield f"  {published.conditions}"
    yield ""
    yield "Its digits, by exact arithmetic:"
    for unit, judgement in published.judgements():
        yield _line(f"{judgement.printed} {unit}", judgement.words)
    for percent in published.percentages():
        yield _line(f"{percent.printed} % ({source}, {percent.application})", percent.words)
    yield ""
    yield "Errors in the publication, not repeated here:"
    for slip in published.slips():
        yield f"  {slip['words']} Right: {slip['corrected']}. {slip['effect']}"


def own_lines(chain: Calculation, difference: Difference | None) -> Iterator[str]:
    """The same chain with a user's difference of E_A; ``difference`` is None of one that was typed in."""
    model = "in this model, " if _modelled(difference) else ""
    yield _title(difference)
    megabits, *results = chain.steps()
    yield _line(_calls(chain.question), f"{_number(megabits.value)} Mb")
    labels = (
        f"{model}times {with_u95(chain.saved, chain.u95_saved)} J/Mb saved",
        f"{model}at 3.6 MJ/kWh",
        f"{model}{_households(chain.question)}",
    )
    for label, step in zip(labels, results, strict=True):
        yield _line(label, f"{with_u95(step.value, step.u95)} {step.unit}")
    for sentence in sentences(chain, difference):
        yield f"  {sentence}"


def sentences(chain: Calculation, difference: Difference | None) -> Iterator[str]:
    """What has to be known of a user's result."""
    yield f"It counts {_scope(difference)}; {_BEYOND}."
    if chain.u95_saved is None:
        yield "There is no interval: the difference is of a single block, or its meter states no uncertainty."
    else:
        yield _sign_words(chain, difference)
        yield "± is the 95 % half-width of the saving; minutes, bit rate and household are taken as exact."
        yield from _range_words(chain.u95_saved, difference)
    calls_mbps = float(chain.question.bit_rate_kbps) / 1000
    if difference is not None and not same_load(difference.offered_rate_mbps, calls_mbps):
        yield (
            f"The difference is of {1000 * difference.offered_rate_mbps:g} kb/s, the calls are of"
            f" {_number(chain.question.bit_rate_kbps)} kb/s: E_A changes with the load, so such calls are not"
            " estimated by this."
        )
    if _modelled(difference):
        yield (
            "In this model: power or radio is modelled, the model's own error is not in the interval, and no"
            " joules of a real device follow from it."
        )


def _modelled(difference: Difference | None) -> bool:
    return difference is not None and difference.modelled


def _scope(difference: Difference | None) -> str:
    if difference is None:
        return "one metered end and one direction, those that the given difference is of"
    end = f"{difference.node}, by meter {difference.meter_id}"
    return f"one metered end ({end}) and one direction ({difference.direction})"


def _sign_words(chain: Calculation, difference: Difference | None) -> str:
    assert chain.u95_saved is not None
    other = "the other transport" if difference is None else difference.transport
    if abs(chain.saved) <= chain.u95_saved:
        text = "the interval holds zero: there is no clear difference."
    elif chain.saved < 0:
        text = f"the interval of the saving is below zero: {other} takes more energy than UDP."
    else:
        text = f"the interval of the saving is above zero: {other} takes less energy than UDP."
    return f"In this model, {text}" if _modelled(difference) else text[0].upper() + text[1:]


def _range_words(u95_saved: Fraction, difference: Difference | None) -> Iterator[str]:
    """Advice where more or longer runs would not narrow the interval."""
    u95_range = None if difference is None else difference.u95_range_j_per_mbit
    if u95_range is not None and dominates(u95_range, float(u95_saved)):
        model = "In this model, most" if _modelled(difference) else "Most"
        yield (
            f"{model} of ± is the meter's range error ({u95_range:.2g} J/Mb), which longer measuring does not"
            " reduce: choose a smaller range or a meter with a smaller range error."
        )


def _title(difference: Difference | None) -> str:
    if difference is None:
        return "With the difference given:"
    names = f"{difference.transport} against {difference.reference}"
    device = f", device model {difference.device_model}" if difference.device_model else ""
    model = "in this model, " if difference.modelled else ""
    sources = f"power {difference.power_source}, radio {difference.radio_source}"
    pairs = counted(difference.pairs, "pair")
    return (
        f"With the difference of E_A of the campaign, {model}{names} at {difference.node}"
        f" (meter {difference.meter_id}{device}; {sources}), {difference.cell}, {pairs}:"
    )


def published_document(published: Published) -> dict[str, Any]:
    """The published chain for machines: printed digits, exact numbers, judgements."""
    chain = published.chain
    steps = [
        {"step": step.step, "unit": step.unit, "value": float(step.value)}
        | asdict(judgement)
        | {"words": judgement.words}
        for step, (_, judgement) in zip(chain.steps(), published.judgements(), strict=True)
    ]
    percentages = [
        _numbers(asdict(percent)) | {"words": percent.words} for percent in published.percentages()
    ]
    return {
        "event": "savings_published",
        "title": published.title,
        **_numbers(asdict(chain.question)),
        "saved_j_per_mbit": float(chain.saved),
        "steps": steps,
        "percentages": percentages,
        "conditions": published.conditions,
    }


def own_document(chain: Calculation, difference: Difference | None) -> dict[str, Any]:
    """The same chain with a user's difference of E_A for machines."""
    steps = [_numbers(asdict(step)) for step in chain.steps()]
    cell = {} if difference is None else asdict(difference)
    for name in ("saved", "u95"):
        cell.pop(name, None)
    return {
        "event": "savings",
        **_numbers(asdict(chain.question)),
        "saved_j_per_mbit": float(chain.saved),
        "u95_saved_j_per_mbit": None if chain.u95_saved is None else float(chain.u95_saved),
        "metered_ends": 1,
        "directions": 1,
        "in_this_model": None if difference is None else difference.modelled,
        **cell,
        "steps": steps,
        "words": list(sentences(chain, difference)),
    }


def _numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with floats for fractions, as JSON has them."""
    return {name: float(one) if isinstance(one, Fraction) else one for name, one in fields.items()}


def with_u95(value: Fraction, u95: Fraction | None) -> str:
    """A value with its half-width, both to the second significant digit of the half-width."""
    if not u95:
        return _number(value) if u95 is None else f"{_number(value)} ± 0"
    decimals = 1 - floor(log10(float(u95)))
    return f"{_rounded(value, decimals)} ± {_rounded(u95, decimals)}"


def _rounded(value: Fraction, decimals: int) -> str:
    """Half up, also to tens and hundreds, which float formatting cannot."""
    whole = floor(abs(value) * Fraction(10) ** decimals + Fraction(1, 2))
    sign = "-" if value < 0 and whole else ""
    return f"{sign}{Decimal(whole).scaleb(-decimals):f}"


def _number(value: Fraction) -> str:
    """Four significant digits: 65, 4226, 1.67e+11 as 1.67e11."""
    text = f"{float(value):.4g}"
    mantissa, _, power = text.partition("e")
    return f"{mantissa}e{int(power)}" if power else text


def _calls(question: Question) -> str:
    unit = "minute" if question.minutes == 1 else "minutes"
    billions = question.minutes / 10**9
    # As the publication writes them: 167e9.
    minutes = f"{_number(billions)}e9" if 1 <= billions < 10**4 else _number(question.minutes)
    return f"{minutes} {unit} of calls at {_number(question.bit_rate_kbps)} kb/s"


def _households(question: Question) -> str:
    return f"at {_number(question.household_kwh)} kWh a home"


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL_WIDTH}}  {text}"
