# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule quick``: a campaign from a command line, and the workload file it stands for."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule.cli import typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netjoule.design.timeline import MeterPace


_TAIL_S = 0.2
_FACTOR = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def quick(
    transports: Annotated[str, typer.Argument(metavar="TRANSPORTS", help="For example udp,tcp,quic,dccp.")],
    bitrate: Annotated[
        str, typer.Option("-b", "--bitrate", metavar="RATE,...", help="Offered loads, bit/s.")
    ] = "6M",
    length: Annotated[
        str, typer.Option("-l", "--length", metavar="BYTES,...", help="Message lengths.")
    ] = "1440",
    blocks: typed.Blocks = 3,
    time_s: Annotated[
        float, typer.Option("-t", "--time", metavar="S", min=0.3, help="Measured per run, s.")
    ] = 5.0,
    testbed: typed.Testbed = None,
    out: typed.Out = None,
    json: typed.Json = False,
) -> None:
    """Compare transports without a workload file: table, report, and the file that it wrote.

    The generator floor (null) is measured beside them. 'netjoule run FILE' does the same again.

    Example: netjoule quick udp,tcp,quic -b 6M -l 1440
    """
    from netjoule.core.console import Output, duration_text
    from netjoule.core.words import counted

    rates = [rate_mbps(rate) for rate in bitrate.split(",")]
    payloads = [_payload_bytes(size) for size in length.split(",")]

    code, _ = typed.start(
        "quick",
        partial(document, transports.split(","), rates, payloads, blocks=blocks, time_s=time_s),
        lambda size: f"{counted(size.runs, 'run')}, {duration_text(size.duration_s)}",
        explained_by="workloads/flow/README.md",
        testbed=testbed,
        out=out,
        output=Output(json_lines=json),
    )
    raise typer.Exit(code)


def rate_mbps(text: str) -> float:
    """Mb/s of an offered load as iperf3 writes it: ``6M``, ``500k``, ``1.5M``, plain bit/s.

    Raises:
        UsageError: for what is no rate.
    """
    from netjoule.core.errors import UsageError

    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)([kmg]?)\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise UsageError(f"'{text}' is no rate", where="-b", next_step="say for example 6M or 500k, in bit/s")
    return float(match[1]) * _FACTOR[match[2].lower()] / 1e6


def _payload_bytes(text: str) -> int:
    from netjoule.core.errors import UsageError

    if not re.fullmatch(r"\s*\d{1,6}\s*", text):
        raise UsageError(f"'{text}' is no number of bytes", where="-l", next_step="say for example 1440")
    return int(text)


def document(
    transports: Sequence[str],
    rates_mbps: Sequence[float],
    payloads: Sequence[int],
    *,
    blocks: int,
    time_s: float,
    seed: int,
    meters: Sequence[MeterPace],
) -> dict[str, Any]:
    """The workload of a command line, with windows that the meters resolve; nothing else is checked yet.

    Raises:
        UsageError: without a transport that sends.
    """
    from netjoule.core.errors import UsageError
    from netjoule.design.timeline import least_warm_up_s

    named = [name for name in map(str.strip, transports) if name not in ("", "null")]
    if not named:
        raise UsageError("no transport but null", next_step="name one, for example udp")
    return {
        "schema_version": 2,
        "name": "quick",
        "load": "flow",
        "factors": {
            "transport": named,
            "payload_bytes": list(payloads),
            "offered_rate_mbps": list(rates_mbps),
        },
        "blocks": blocks,
        "timing": {
            **typed.guards(meters),
            "warm_up_s": round(max(0.5, least_warm_up_s(meters)), 3),
            "measure_s": time_s,
            "tail_s": _TAIL_S,
        },
        "seed": seed,
    }
