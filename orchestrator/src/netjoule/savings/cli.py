# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule savings``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from netjoule.core.console import Output
    from netjoule.savings.request import Request


def savings(
    campaign: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take the difference from this campaign.")
    ] = None,
    difference: Annotated[
        float | None, typer.Option(metavar="X", help="E_A less that of UDP, J/Mb; below 0: it saves.")
    ] = None,
    u95: Annotated[
        float | None, typer.Option(metavar="X", min=0, help="95 % half-width of --difference, J/Mb.")
    ] = None,
    transport: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compared with UDP [default: dccp]")
    ] = None,
    meter: Annotated[str | None, typer.Option(metavar="ID", help="Only this meter.")] = None,
    payload_bytes: Annotated[int | None, typer.Option(metavar="N", help="Only this size.")] = None,
    offered_rate_mbps: Annotated[float | None, typer.Option(metavar="X", help="Only this load.")] = None,
    direction: Annotated[str | None, typer.Option(metavar="WAY", help="up or down.")] = None,
    pacing: Annotated[str | None, typer.Option(metavar="NAME", help="Only this pacing.")] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", help="Of calls in a year [default: 167e9]")
    ] = None,
    bit_rate_kbps: Annotated[
        float | None, typer.Option(metavar="X", help="One direction [default: 65]")
    ] = None,
    household_kwh: Annotated[
        float | None, typer.Option(metavar="X", help="A year, of one [default: 4226]")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout.")] = False,
) -> None:
    """What a difference of E_A adds up to in a year of calls: yours, then the published estimate.

    Example: netjoule savings --campaign results/skype-1
    """
    from netjoule.core.console import Output
    from netjoule.savings.difference import Wanted
    from netjoule.savings.request import Request, require_sense

    figures = {"minutes": minutes, "bit_rate_kbps": bit_rate_kbps, "household_kwh": household_kwh}
    wanted = Wanted(transport, meter, payload_bytes, offered_rate_mbps, direction, pacing)
    own = {name: value for name, value in figures.items() if value is not None}
    request = Request(campaign, difference, u95, wanted, own)
    require_sense(request)
    _tell(request, Output(json_lines=json))


def _tell(request: Request, output: Output) -> None:
    """The user's own figures, then the published ones."""
    from netjoule.savings import output as said
    from netjoule.savings import published as publication
    from netjoule.savings.request import answer

    published = publication.read()
    chains, refused = answer(request, published.question)
    for chain, of_cell in chains:
        for line in said.own_lines(chain, of_cell):
            output.say(line)
        output.say()
        output.event(said.own_document(chain, of_cell))
    for reason in refused:
        output.say(f"No difference of E_A of {reason}.")
        output.say()
        output.event({"event": "no_difference", "detail": reason})
    for line in said.published_lines(published):
        output.say(line)
    output.event(said.published_document(published))
    for slip in published.slips():
        output.event({"event": "slip", **slip})
    if not (chains or refused):
        output.say()
        output.say("Yours: netjoule savings --campaign CAMPAIGN, or --difference X --u95 X")
