# SPDX-License-Identifier: Apache-2.0
"""What a user asks of `netjoule savings`, whether it makes sense, and the chains that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from netjoule.core.errors import UsageError
from netjoule.savings.calculation import LEAST, MOST, Calculation, Question, exact, is_in_bounds
from netjoule.savings.difference import Difference, Wanted, of_campaign
from netjoule.store.campaign import Campaign

_BOUNDS = f"{LEAST:g} to {MOST:g}"


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed.

    Attributes:
        campaign: folder to take the difference of E_A from.
        difference: E_A of the transport less that of UDP, J/Mb, in place of a campaign's.
        u95: its 95 % half-width, J/Mb.
        wanted: which cell of the campaign.
        figures: fields of `Question` that differ from the published ones.
    """

    campaign: Path | None
    difference: float | None
    u95: float | None
    wanted: Wanted
    figures: Mapping[str, float]


def require_sense(request: Request) -> None:
    """Refuse options that do not go together, before anything is read.

    Raises:
        UsageError: naming what is missing or too much.
    """
    if request.campaign is not None and not (request.difference is None and request.u95 is None):
        raise UsageError(
            "the difference is given twice", next_step="name --campaign, or --difference with --u95, not both"
        )
    if (request.difference is None) != (request.u95 is None):
        there, missing = ("--difference", "--u95") if request.u95 is None else ("--u95", "--difference")
        raise UsageError(f"{there} without {missing}", next_step="give both, in J/Mb")
    if request.campaign is None and request.wanted != Wanted():
        raise UsageError("a cell is chosen, but no campaign", next_step="name it with --campaign DIR")
    if request.figures and request.campaign is None and request.difference is None:
        named = ", ".join(map(_option, request.figures))
        raise UsageError(
            f"{named} without a difference of your own",
            next_step="give --campaign DIR, or --difference and --u95",
        )
    _require_numbers(request)


def _require_numbers(request: Request) -> None:
    figures = dict(request.figures)
    if request.wanted.offered_rate_mbps is not None:
        figures["offered_rate_mbps"] = request.wanted.offered_rate_mbps
    for name, value in figures.items():
        if not (value > 0 and is_in_bounds(value)):
            step = f"give a number above 0, from {_BOUNDS}"
            raise UsageError(f"{_option(name)} is {value:g}", next_step=step)
    for option, given in (("--difference", request.difference), ("--u95", request.u95)):
        if given is not None and not is_in_bounds(given):
            step = f"give a finite number of J/Mb: 0, or of a size from {_BOUNDS}"
            raise UsageError(f"{option} is {given:g}", next_step=step)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def answer(
    request: Request, published: Question
) -> tuple[list[tuple[Calculation, Difference | None]], list[str]]:
    """The chains that a request asks for; none when it asks for the published one alone.

    Args:
        request: one that `require_sense` lets pass.
        published: minutes, bit rate and household where the request has no others.

    Returns:
        chains, one per meter, and why a meter of the campaign has none.

    Raises:
        UsageError: when the folder is no campaign, or the cell does not exist or is not one.
        InvalidData: when the campaign is not analysed, has no such pair, or no meter resolves it.
    """
    question = replace(published, **{name: exact(value) for name, value in request.figures.items()})
    if request.difference is not None and request.u95 is not None:
        return [(Calculation(question, -exact(request.difference), exact(request.u95)), None)], []
    if request.campaign is None:
        return [], []
    Campaign.read(request.campaign)  # says what is wrong with a folder that is none
    found, refused = of_campaign(request.campaign, request.wanted, float(question.bit_rate_kbps) / 1000)
    return [(Calculation(question, one.saved, one.u95), one) for one in found], refused
