# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule import``."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from netjoule.core.words import counted

if TYPE_CHECKING:
    from netjoule.core.console import Output
    from netjoule.core.errors import InvalidData

_Radio = Literal["real", "wired", "unknown"]
_IpVersion = Literal["4", "6"]
_Transport = Literal["udp", "tcp", "dccp-kernel"]


def _place(text: str) -> Path:
    """A path as it was written; nothing is not the current folder."""
    if not text:
        raise typer.BadParameter("a path is empty, which names nothing")
    return Path(text)


def import_results(
    places: Annotated[
        list[Path],
        typer.Argument(
            parser=_place, metavar="FILE...", help="Files of one of the programs, or their folders."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder of the campaign.")],
    transport: Annotated[
        _Transport | None, typer.Option(metavar="NAME", help="udp, tcp or dccp-kernel.")
    ] = None,
    offered_rate_mbps: Annotated[
        float | None, typer.Option(metavar="X", help="[default: what was sent]")
    ] = None,
    generator_version: Annotated[str | None, typer.Option(metavar="V", help="Of the program.")] = None,
    day: Annotated[
        datetime | None, typer.Option(metavar="DAY", formats=["%Y-%m-%d"], help="UTC, of D-ITG's logs.")
    ] = None,
    ip_version: Annotated[
        _IpVersion | None, typer.Option(metavar="V", help="4 or 6, of NetPerfMeter's flows.")
    ] = None,
    radio_source: Annotated[_Radio, typer.Option(metavar="WHAT", help="real, wired or unknown.")] = "unknown",
    json: Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout.")] = False,
) -> None:
    """Bring old results of iperf3, D-ITG or NetPerfMeter into a campaign's tables.

    They come without E_A. The options say what the files do not tell.

    Example: netjoule import old-iperf3/ --out results/old
    """
    import netjoule
    from netjoule.core.clock import SystemClock
    from netjoule.core.console import Output
    from netjoule.core.errors import InvalidData
    from netjoule.importing import campaign
    from netjoule.importing.flows import Options
    from netjoule.importing.read import read_all
    from netjoule.store import folder_limits
    from netjoule.store.fingerprint import host_fingerprint

    output = Output(json_lines=json)
    folder_limits.require_free(out)
    options = Options(
        radio_source=radio_source,
        transport=transport,
        offered_rate_mbps=offered_rate_mbps,
        generator_version=generator_version,
        day=None if day is None else day.date(),
        ip_version=None if ip_version is None else int(ip_version),
    )
    found = read_all(places, options)
    _tell_left_out(found.refused, output)
    if not found.flows:
        raise InvalidData("no flow was found in the files", where=", ".join(map(str, places)))
    rows = campaign.write(
        out,
        found,
        options,
        versions={"netjoule": netjoule.__version__, "python": platform.python_version()},
        host=host_fingerprint(),
        now=SystemClock().utc_now(),
    )
    for row in rows:
        size, rate, direction = (
            row.cell[name] for name in ("payload_bytes", "offered_rate_mbps", "direction")
        )
        told = f"{size} B  {rate:g} Mb/s  {direction}"
        output.say(f"{row.run_id}  {told}  {row.status}{f' ({row.reason})' if row.reason else ''}")
        output.event({"event": "imported", "run_id": row.run_id, "status": row.status, "reason": row.reason})
    output.say(f"{out}: {counted(len(rows), 'run')}; next: netjoule report {out}")


def _tell_left_out(refused: Sequence[InvalidData], output: Output) -> None:
    """What was left out of folders, once for each reason: hundreds of files may be alike."""
    alike: dict[tuple[str, str], list[InvalidData]] = defaultdict(list)
    for error in refused:
        output.event({"event": "left_out", "detail": str(error)})
        alike[error.what, error.next_step].append(error)
    for first, *others in alike.values():
        output.error(f"left out: {first}")
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            output.error(f"left out likewise: {others[0].where}{more}")
