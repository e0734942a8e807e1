# SPDX-License-Identifier: Apache-2.0
"""Starts the R analysis of a campaign and passes on what it says. All statistics are R's (analysis-r)."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import netjoule_contracts as contracts
from netjoule.core import programs
from netjoule.core.errors import HostLacks, InvalidData, NetjouleError, RunFailed, UsageError
from netjoule.hosts import child_process

Verb = Literal["analyse", "report"]
EventSink = Callable[[Mapping[str, Any]], None]

_SCRIPT = "analysis-r/exec/analyse.R"
_MADE = ("tables", "figures")
# At SIGINT, R removes its temporary folder.
_ASK = (signal.SIGINT, signal.SIGTERM)
_GRACE_S = 2.0
_BY_EXIT: dict[int, type[NetjouleError]] = {2: UsageError, 3: HostLacks, 4: InvalidData}


def script() -> Path:
    """The R program.

    Raises:
        HostLacks: when this is not a source tree.
    """
    return programs.shipped(_SCRIPT)


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """``base`` with the folders of the R library and the contracts that the R program needs."""
    env = dict(base)
    env.setdefault("NETJOULE_CONTRACTS", str(contracts.root()))
    root = programs.checkout()
    if root:
        env.setdefault("NETJOULE_R_LIBRARY", str(root / ".r-library"))
    return env


def require_r() -> None:
    """Try R and our package in it, so that a long campaign does not end without its analysis.

    Raises:
        HostLacks: naming what is missing and how to get it.
    """
    command = [*programs.rscript(), str(script()), "--help"]
    answer = programs.said_by(command, env=child_process.in_utf_8(environment(os.environ)))
    if answer.returncode != 0:
        said = (answer.stderr.strip().splitlines() or ["Rscript does not run"])[-1]
        raise HostLacks(
            said.rstrip("."), where="R", next_step="run 'make setup'; 'netjoule run' works without R"
        )


def require_fresh_r() -> None:
    """Refuse our R package where its sources have changed since it was installed; without one nothing.

    Raises:
        HostLacks: before a campaign is run whose results it would not understand.
    """
    root = programs.checkout()
    library = environment(os.environ).get("NETJOULE_R_LIBRARY")
    installed = Path(library or "") / "netjoule" / "DESCRIPTION"
    if root is None or library is None or not installed.exists():
        return
    made = root / "analysis-r"
    sources = (made / "DESCRIPTION", *made.glob("R/*"), *made.glob("inst/*"))
    if any(one.stat().st_mtime > installed.stat().st_mtime for one in sources):
        raise HostLacks(
            f"the package netjoule in {library} is older than its sources in {made}",
            where="R",
            next_step="run 'make setup'",
        )


def require_writable(campaign: Path) -> None:
    """Refuse a campaign into which the analysis cannot be written, before R has worked for it.

    Raises:
        RunFailed: naming the folder.
    """
    for folder in (campaign, *(campaign / name for name in _MADE)):
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise RunFailed(
                f"tables and figures cannot be written into {folder}: the folder is read-only",
                next_step="analyse a copy of the campaign in a folder of your own",
            )


def run_analysis(verb: Verb, campaign: Path, sink: EventSink, *, margin_percent: float | None = None) -> None:
    """Run ``analyse`` (tables and figures) or ``report`` (these and report.html) over a campaign.

    Args:
        verb: what R should do.
        campaign: folder of the campaign.
        sink: gets each NDJSON line of the R program as it comes.
        margin_percent: ask for equivalence within this margin; by default what the workload asks.

    Raises:
        HostLacks: without R or one of its packages.
        InvalidData: when the campaign cannot be analysed.
        RunFailed: when R fails otherwise.
    """
    options = ["--report"] if verb == "report" else []
    if margin_percent is not None:
        options += ["--margin", repr(margin_percent)]
    _run(verb, campaign, options, sink)


def run_blocks_needed(
    pilot: Path,
    workload: Mapping[str, Any],
    mde_percent: float,
    power: float | None,
    sink: EventSink,
) -> None:
    """Ask R how many blocks of a workload find a difference, by what a pilot campaign scattered.

    Args:
        pilot: folder of the campaign.
        workload: effective workload, as campaign.json would keep it.
        mde_percent: least difference of E_A that is to be found.
        power: probability of finding it, 0 to 1; R's default when None.
        sink: gets each NDJSON line; the answer is the event ``blocks_needed``.

    Raises:
        UsageError: when the workload has no pair to compare.
        InvalidData: when the pilot decides nothing.
        HostLacks, RunFailed: as `run_analysis`.
    """
    with tempfile.TemporaryDirectory(prefix="netjoule-") as folder:
        document = Path(folder) / "workload.json"
        document.write_text(json.dumps(workload), encoding="utf-8")
        options = ["--mde", repr(mde_percent), "--workload", str(document)]
        options += [] if power is None else ["--power", repr(power)]
        _run("plan", pilot, options, sink)


def run_table_iv(campaigns: Sequence[Path], sink: EventSink) -> None:
    """Ask R for E_A of the applications of campaigns, beside what was published; nothing is written.

    Args:
        campaigns: folders, one at least.
        sink: gets each NDJSON line; an answer is an event ``table_iv``.

    Raises:
        InvalidData: when a campaign ran no profile.
        HostLacks, RunFailed: as `run_analysis`.
    """
    first, *others = campaigns
    _run("table-iv", first, ["--table-iv", *(str(other.resolve()) for other in others)], sink)


def run_overlay(a: Path, b: Path, out: Path, sink: EventSink) -> None:
    """Ask R for the report that compares two campaigns side by side; nothing is written into them.

    Args:
        a, b: folders of the campaigns.
        out: the HTML file.
        sink: gets each NDJSON line; the last is the event ``report``.

    Raises:
        InvalidData: when they have no cell in common.
        HostLacks, RunFailed: as `run_analysis`.
    """
    # R works in a folder of its own while it writes, so its paths are whole.
    options = [str(b.resolve()), "--overlay", str(out.parent.resolve() / out.name)]
    _run("report", a, options, sink)


def run_history(table: Path, out: Path, sink: EventSink) -> None:
    """Ask R for the page of a history of gates.

    Args:
        table: CSV with the columns that R's history_page() names.
        out: the HTML file.
        sink: gets each NDJSON line; the last is the event ``report``.

    Raises:
        InvalidData: when there is nothing to draw.
        HostLacks, RunFailed: as `run_analysis`.
    """
    _run("history", table, ["--history", str(out.parent.resolve() / out.name)], sink)


def _run(verb: str, campaign: Path, options: Sequence[str], sink: EventSink) -> None:
    """Run the R program over a campaign."""
    run_r(verb, [str(campaign.resolve()), "--json", *options], sink)


def run_r(verb: str, arguments: Sequence[str], sink: EventSink) -> None:
    """Run the R program; its failure becomes ours.

    Args:
        verb: of the command, for messages.
        arguments: of the program, --json among them.
        sink: gets each NDJSON line.

    Raises:
        HostLacks, InvalidData, UsageError, RunFailed: as `run_analysis`.
    """
    command = [*programs.rscript(), str(script()), *arguments]
    errors = []

    def take(event: Mapping[str, Any]) -> None:
        if event["event"] == "error":
            errors.append(str(event.get("message", "")))
        sink(event)

    code, chatter = child_process.run_for_events(
        command, environment(os.environ), take, ask=_ASK, grace_s=_GRACE_S
    )
    if code != 0:
        raise _failure(verb, code, (["", *chatter.strip().splitlines(), *filter(None, errors)])[-1])


def _failure(verb: str, code: int, message: str) -> NetjouleError:
    kind = HostLacks if "is not installed" in message else _BY_EXIT.get(code, RunFailed)
    next_step = "'netjoule check' names the defects of the campaign" if kind is InvalidData else ""
    what = message.rstrip(".") or f"the R program ended with exit code {code}"
    return kind(what, where=verb, next_step=next_step)
