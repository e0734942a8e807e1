# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule compare``: two campaigns, or two arms of one, by the gate's two numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule.cli import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 4}


def compare(
    campaigns: Annotated[list[Path], typer.Argument(metavar="A [B]", help="Folders of campaigns.")],
    arm: Annotated[
        str | None, typer.Option(metavar="NAME", help="Arm of A that must not cost more [default: the last].")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help="Arm it is compared with [default: the first].")
    ] = None,
    margin: Annotated[
        float, typer.Option(metavar="PERCENT", help="0: an increase of so much is ruled out.")
    ] = 3.0,
    tolerance: Annotated[
        float, typer.Option(metavar="PERCENT", help="1: an increase of so much is shown.")
    ] = 1.0,
    unlike: Annotated[
        bool, typer.Option("--unlike", help="Compare though kernel, CPU, meters or workload differ.")
    ] = False,
    json: typed.Json = False,
) -> None:
    """Say whether B costs more than A, or one arm more than another: 0 no, 1 yes, 4 not decided.

    Campaigns taken apart in time decide nothing unless both ran the same reference workload: the gate
    interleaves its arms.

    Example: netjoule compare results/before results/after
    """
    from netjoule.analysis import decision
    from netjoule.core.console import Output
    from netjoule.core.errors import UsageError

    if len(campaigns) > 2:
        raise UsageError(f"{len(campaigns)} campaigns", next_step="name one or two")
    if tolerance >= margin:
        raise UsageError(f"the tolerance of {tolerance:g} % is not under the margin of {margin:g} %")
    found_unlike = _differences(campaigns) if len(campaigns) == 2 else []
    if found_unlike and not unlike:
        raise UsageError(
            f"the campaigns were not taken alike: {'; '.join(found_unlike)}",
            next_step="take both alike, use 'netjoule gate', or compare them all the same with --unlike",
        )
    options = ["--margin", repr(margin), "--tolerance", repr(tolerance)]
    for name, value in (("--arm", arm), ("--reference", reference)):
        options += [name, value] if value is not None else []
    found = decision.comparison(campaigns, options)
    _tell({**found, "unlike": found_unlike}, Output(json_lines=json))
    raise typer.Exit(_EXIT_CODES[str(found["verdict"])])


def _differences(campaigns: Sequence[Path]) -> list[str]:
    from netjoule.gate.likeness import differences
    from netjoule.store.campaign import Campaign

    documents = []
    for path in campaigns:
        campaign = Campaign.read(path)
        documents.append({**campaign.document, "workload": campaign.workload.document})
    return list(differences(*documents))


def _tell(found: Mapping[str, Any], output: Any) -> None:
    from netjoule.gate.outputs import terminal

    output.event(found)
    output.say(f"{'unlike campaigns: ' if found['unlike'] else ''}{found['words']}")
    for line in found["unlike"]:
        output.say(f"  {line}")
    if found["cells"]:
        output.say()
        output.show(
            terminal.cell_table(found["cells"], f"Cells: {found['arm']} against {found['reference']}")
        )
