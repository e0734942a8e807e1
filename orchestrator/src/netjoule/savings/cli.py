# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule savings``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from netjoule.core.console import Output
    from netjoule.savings.published import Published
    from netjoule.savings.request import Answer

_Campaign = Annotated[
    Path | None, typer.Option("--campaign", metavar="DIR", help="Take the difference from this campaign.")
]
_Difference = Annotated[
    float | None,
    typer.Option("--difference", metavar="X", help="E_A less that of UDP, J/Mb; below 0: it saves."),
]
_U95 = Annotated[
    float | None, typer.Option("--u95", metavar="X", min=0, help="95 % half-width of --difference, J/Mb.")
]
_Transport = Annotated[
    str | None, typer.Option("--transport", metavar="NAME", help="Compared with UDP [default: dccp]")
]
_Meter = Annotated[str | None, typer.Option("--meter", metavar="ID", help="Only this meter.")]
_Payload = Annotated[int | None, typer.Option("--payload-bytes", metavar="N", help="Only this size.")]
_Load = Annotated[float | None, typer.Option("--offered-rate-mbps", metavar="X", help="Only this load.")]
_Direction = Annotated[str | None, typer.Option("--direction", metavar="WAY", help="up or down.")]
_Pacing = Annotated[str | None, typer.Option("--pacing", metavar="NAME", help="Only this pacing.")]
_Minutes = Annotated[
    float | None, typer.Option("--minutes", metavar="N", help="Of calls in a year [default: 167e9]")
]
_BitRate = Annotated[
    float | None, typer.Option("--bit-rate-kbps", metavar="X", help="One direction [default: 65]")
]
_Household = Annotated[
    float | None, typer.Option("--household-kwh", metavar="X", help="A year, of one [default: 4226]")
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout.")]


def savings(
    campaign: _Campaign = None,
    difference: _Difference = None,
    u95: _U95 = None,
    transport: _Transport = None,
    meter: _Meter = None,
    payload_bytes: _Payload = None,
    offered_rate_mbps: _Load = None,
    direction: _Direction = None,
    pacing: _Pacing = None,
    minutes: _Minutes = None,
    bit_rate_kbps: _BitRate = None,
    household_kwh: _Household = None,
    json: _Json = False,
) -> None:
    """What a difference of E_A adds up to in a year of calls: yours, then the published estimate.

    Example: netjoule savings --campaign results/skype-1
    """
    from netjoule.core.console import Output
    from netjoule.savings import published as publication
    from netjoule.savings.difference import Wanted
    from netjoule.savings.request import Request, answer, require_sense

    figures = {"minutes": minutes, "bit_rate_kbps": bit_rate_kbps, "household_kwh": household_kwh}
    wanted = Wanted(transport, meter, payload_bytes, offered_rate_mbps, direction, pacing)
    own = {name: value for name, value in figures.items() if value is not None}
    request = Request(campaign, difference, u95, wanted, own)
    require_sense(request)
    published = publication.read()
    _tell(published, answer(request, published.question), Output(json_lines=json))


def _tell(published: Published, answered: Answer, output: Output) -> None:
    from netjoule.savings import words

    for chain, difference in answered.chains:
        for line in words.own_lines(chain, difference):
            output.say(line)
        output.say()
        output.event(words.own_document(chain, difference))
    for reason in answered.refused:
        output.say(f"No difference of E_A of {reason}.")
        output.say()
        output.event({"event": "no_difference", "detail": reason})
    for line in words.published_lines(published):
        output.say(line)
    output.event(words.published_document(published))
    for slip in published.slips():
        output.event({"event": "slip", **slip})
    if not (answered.chains or answered.refused):
        output.say()
        output.say("Yours: netjoule savings --campaign CAMPAIGN, or --difference X --u95 X")
