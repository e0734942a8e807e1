# SPDX-License-Identifier: Apache-2.0
"""What ends ``demo``, ``quick``, ``run``, ``analyse``, ``report``: R's tables, printed; the next command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from netjoule.analysis import analysis, summary
from netjoule.core import files
from netjoule.core.console import Output
from netjoule.core.errors import HostLacks, RunFailed, UsageError
from netjoule.diagnostics import sample_size
from netjoule.store.campaign import Campaign


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
    _look_at(campaign, output)
    analysis.require_writable(campaign)
    analysis.run_analysis(verb, campaign, output.event, margin_percent=within)
    summary.tell(campaign, output)
    if verb == "analyse":
        page = campaign / "report.html"
        # Made since the campaign was last run, the page tells of all of it.
        made = page.exists() and page.stat().st_mtime >= (campaign / "campaign.json").stat().st_mtime
        output.say(f"next: {f'open {page}' if made else f'netjoule report {campaign}'}")


def _look_at(campaign: Path, output: Output) -> None:
    """Say what is wrong, or not whole yet, before R is started."""
    Campaign.read(campaign)
    if written := files.being_written(campaign):
        output.error(written)


def overlay(campaigns: Sequence[Path], output: Output, out: Path | None = None) -> None:
    """Write the report that compares two campaigns side by side and name its file.

    Args:
        campaigns: their folders.
        output: takes words and events.
        out: the file; by default ``report-A-and-B.html``, by the folders' names, in the current folder.

    Raises:
        UsageError: unless two different campaigns are given.
        NetjouleError: as `analysis.run_overlay`.
    """
    if len(campaigns) != 2:
        raise UsageError(
            f"a report is of one campaign or of two compared side by side, not of {len(campaigns)}",
            next_step="name one or two campaigns",
        )
    a, b = campaigns
    require_each_once(campaigns)
    for campaign in campaigns:
        _look_at(campaign, output)
    place = out or Path(f"report-{a.resolve().name}-and-{b.resolve().name}.html")
    if place.is_dir():
        raise UsageError(f"{place} is a folder", next_step="name a file with --out")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise RunFailed(
            f"the report cannot be written into {place.parent}: there is no such folder, or it is read-only",
            next_step="name a file in another folder with --out",
        )
    analysis.run_overlay(a, b, place, output.event)
    output.say(f"report: {place}")


def require_each_once(campaigns: Sequence[Path]) -> None:
    """Refuse a folder that is named twice, by whatever path: it would stand there as two results."""
    for place, campaign in enumerate(campaigns):
        if campaign.resolve() in [other.resolve() for other in campaigns[:place]]:
            raise UsageError(f"the campaign {campaign} is given twice", next_step="name each campaign once")


def after_a_run(campaign: Path, output: Output) -> None:
    """Print the table of a campaign that has just ended; without R, say how to get it.

    Machines (--json) have the result of each run already and ask for more with ``analyse``.
    """
    if output.json_lines:
        return
    try:
        tell(campaign, "analyse", output)
    except HostLacks as error:
        output.error(f"no table: {error}")
        output.say(f"next: netjoule analyse {campaign}")
