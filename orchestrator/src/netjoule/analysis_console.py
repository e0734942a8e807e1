# SPDX-License-Identifier: Apache-2.0
"""What ends ``demo``, ``quick``, ``run``, ``analyse``, ``report``: R's tables, printed; the next command."""

from __future__ import annotations

from pathlib import Path

from netjoule import analysis, sample_size, summary
from netjoule.console import Output
from netjoule.errors import HostLacks
from netjoule.store import Campaign

__all__ = ["after_a_run", "tell"]


def tell(campaign: Path, verb: analysis.Verb, output: Output, margin: str | None = None) -> None:
    """Run R over a campaign, then print its table and name its files and the next command.

    Args:
        campaign: its folder.
        verb: ``analyse`` for tables and figures, ``report`` for the page as well.
        output: takes words and events.
        margin: ask for equivalence within it, e.g. ``5%``.

    Raises:
        NetjouleError: as `analysis.run_analysis` and `summary.tell`.
    """
    within = None if margin is None else sample_size.percent(margin, "--margin")
    Campaign.read(campaign)  # says what is wrong before R is started
    analysis.require_writable(campaign)
    analysis.run_analysis(verb, campaign, output.event, margin_percent=within)
    summary.tell(campaign, output)
    if verb == "analyse":
        output.say(f"next: netjoule report {campaign}")


def after_a_run(campaign: Path, output: Output) -> None:
    """Print the table of a campaign that has just ended; without R, say how to get it.

    Machines (--json) have the result of each run already and ask for more with ``analyse``.
    """
    if output.json_lines:
        return
    try:
        analysis.require_r()
    except HostLacks as error:
        output.error(f"no table: {error}")
        output.say(f"next: netjoule analyse {campaign}")
        return
    tell(campaign, "analyse", output)
