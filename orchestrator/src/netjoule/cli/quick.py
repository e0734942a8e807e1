# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule quick``: a campaign from a command line, and the workload file it stands for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netjoule.design.timeline import MeterPace

_Transports = Annotated[str, typer.Argument(metavar="TRANSPORTS", help="For example udp,tcp,quic,dccp.")]
_Rate = Annotated[str, typer.Option("-b", "--bitrate", metavar="RATE,...", help="Offered loads, bit/s.")]
_Length = Annotated[str, typer.Option("-l", "--length", metavar="BYTES,...", help="Message lengths.")]
_Blocks = Annotated[int, typer.Option("--blocks", metavar="N", min=1, help="Repetitions; a test needs 8.")]
_Time = Annotated[float, typer.Option("-t", "--time", metavar="S", min=0.3, help="Measured per run, s.")]
_Testbed = Annotated[
    Path | None,
    typer.Option("--testbed", metavar="FILE", help="Topology [default: netjoule's own, emulated]."),
]
_Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="New folder [default: results/quick-UTC].")
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout.")]

_FACTOR = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_LEAST_IDLE_S = 1.0
_SETTLE_S = 0.1
_TAIL_S = 0.2


def quick(
    transports: _Transports,
    bitrate: _Rate = "6M",
    length: _Length = "1440",
    blocks: _Blocks = 3,
    time_s: _Time = 5.0,
    testbed: _Testbed = None,
    out: _Out = None,
    json: _Json = False,
) -> None:
    """Compare transports without a workload file: table, report, and the file that it wrote.

    The generator floor (null) is measured beside them. 'netjoule run FILE' does the same again.

    Example: netjoule quick udp,tcp,quic -b 6M -l 1440
    """
    from netjoule import loads
    from netjoule.analysis import analysis
    from netjoule.cli import launch, results
    from netjoule.core import programs
    from netjoule.core.clock import SystemClock
    from netjoule.core.console import Output, duration_text
    from netjoule.core.words import counted
    from netjoule.design import instruments
    from netjoule.design.duration import forecast
    from netjoule.store import folder_limits
    from netjoule.topology import topology

    output = Output(json_lines=json)
    now = SystemClock().utc_now()
    place = out or launch.default_out("quick", now)
    file = place.with_name(f"{place.name}.yaml")
    where = testbed or programs.shipped(launch.DEFAULT_TOPOLOGY)
    on = topology.load(where)
    paces = [instruments.pace_of(meter) for meter in on.meters]
    asked = document(
        transports.split(","),
        [rate_mbps(rate) for rate in bitrate.split(",")],
        [_payload_bytes(size) for size in length.split(",")],
        blocks=blocks,
        time_s=time_s,
        seed=launch.draw_seed(),
        meters=paces,
    )
    inputs = launch.fitting(launch.Inputs(loads.made(asked, where="netjoule quick"), on, file, where))
    analysis.require_r()
    folder_limits.require_free(place)
    launch.write_workload(file, asked, "netjoule quick; workloads/README.md explains the fields")
    size = forecast(inputs.workload, on)
    output.say(f"{counted(size.runs, 'run')}, {duration_text(size.duration_s)}; workload: {file}")
    code = launch.start(inputs, place, asked["seed"], now, output)
    if code == 0:
        results.tell(place, "report", output)
        again = f" --testbed {testbed}" if testbed else ""
        output.say(f"the same again: netjoule run {file}{again}")
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
    from netjoule.design.timeline import MIN_WINDOW_UPDATES, least_warm_up_s

    slowest_s = max((meter.update_interval_s for meter in meters), default=0.0)
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
            "idle_s": max(_LEAST_IDLE_S, MIN_WINDOW_UPDATES * slowest_s),
            "settle_s": _SETTLE_S,
            "warm_up_s": round(max(0.5, least_warm_up_s(meters)), 3),
            "measure_s": time_s,
            "tail_s": _TAIL_S,
        },
        "seed": seed,
    }
