# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule compare``: two campaigns, or two arms of one, by the gate's two numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule.cli import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def compare(
    campaigns: Annotated[list[Path], typer.Argument(metavar="A [B]", help="Folders of campaigns.")],
    arm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Arm that must not cost more; of two campaigns, B's."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help="Arm it is compared with; of two campaigns, A's.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="0: an increase of this size is ruled out.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="1: an increase of this size is shown.")
    ] = None,
    unlike: Annotated[
        bool, typer.Option("--unlike", help="Compare though kernel, CPU, meters or workload differ.")
    ] = False,
    json: typed.Json = False,
) -> None:
    """Say whether B costs more than A, or one arm more than another: 0 no, 1 yes, 4 not decided.

    The arms are those of a gate, or the only two; margin and tolerance those of a gate, or 3 and 1 %.
    Campaigns measured at different times decide nothing unless both ran the same reference workload.

    Example: netjoule compare results/before results/after
    """
    from netjoule.analysis import decision
    from netjoule.core.console import Output
    from netjoule.core.errors import UsageError
    from netjoule.gate.verdict import EXIT_CODES, no_regression_by_failure
    from netjoule.validation.check import unfinished

    if len(campaigns) > 2:
        raise UsageError(f"{len(campaigns)} campaigns", next_step="name one or two")
    found_unlike = _differences(campaigns) if len(campaigns) == 2 else []
    if found_unlike and not unlike:
        raise UsageError(
            f"the campaigns differ: {'; '.join(found_unlike)}",
            next_step="measure both alike, use 'netjoule gate', or compare them all the same with --unlike",
        )
    if arm is None and reference is None and len(campaigns) == 2:
        arm, reference = _heads(campaigns)
    asked = {"--margin": margin, "--tolerance": tolerance, "--arm": arm, "--reference": reference}
    options = [word for name, value in asked.items() if value is not None for word in (name, str(value))]
    with no_regression_by_failure():
        found = decision.comparison(campaigns, options)
    lacking = [f"{path}: {said}" for path in campaigns if (said := unfinished(path))]
    if lacking:  # whoever stops when the figures please has decided already
        found = {**found, "verdict": "inconclusive", "words": _of_incomplete(str(found["words"]))}
    if found_unlike:
        found = {**found, "words": f"unlike campaigns: {found['words']}"}
    _tell({**found, "unlike": found_unlike, "incomplete": lacking}, Output(json_lines=json))
    raise typer.Exit(EXIT_CODES[str(found["verdict"])])


def _of_incomplete(words: str) -> str:
    """What was found in a campaign that is not at its end, without a verdict."""
    so_far = re.sub("^[A-Z]+: ", "", words)
    return f"INCONCLUSIVE: a campaign is not at its end; so far: {so_far}"


def _heads(campaigns: Sequence[Path]) -> tuple[str | None, str | None]:
    """Of two sessions of gates the heads: B's, and A's."""
    from netjoule.store.campaign import Campaign

    a, b = ((Campaign.read(path).workload.document.get("gate") or {}).get("head") for path in campaigns)
    return (b, a) if a and b else (None, None)


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
    output.say(str(found["words"]))
    for line in (*found["unlike"], *found["incomplete"]):
        output.say(f"  {line}")
    if found["cells"]:
        output.say()
        which = "Cells of unlike campaigns" if found["unlike"] else "Cells"
        title = f"{which}: {found['arm']} against {found['reference']}"
        output.show(terminal.cell_table(found["cells"], title))
