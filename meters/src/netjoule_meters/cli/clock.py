# SPDX-License-Identifier: Apache-2.0
"""``clock serve``, ``measure`` and ``chrony``: how far another host's clock is from this one's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from netjoule_meters.cli.options import Origin, host_and_port
from netjoule_meters.errors import UsageError

if TYPE_CHECKING:
    from netjoule_meters.logger.clock_exchange import Offset

app = typer.Typer(help="Offset and drift between the clocks of two hosts.", no_args_is_help=True)


@app.command("serve")
def serve_command(
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT to answer on [default: 127.0.0.1 and the usual port].")
    ] = None,
) -> None:
    """Answer time stamps over UDP until SIGTERM or SIGINT; the other host runs `clock measure`.

    Example: netjoule-meters clock serve --listen 192.0.2.1:5303
    """
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.logger.clock_exchange import DEFAULT_PORT, serve
    from netjoule_meters.shutdown import end_signals

    host, port = host_and_port(listen or f"127.0.0.1:{DEFAULT_PORT}", "--listen")

    def ready(host: str, port: int) -> None:
        typer.echo(json.dumps({"event": "ready", "host": host, "port": port}))
        sys.stdout.flush()

    with end_signals() as stop:
        serve(host, port, clock=SystemClock(), stop=stop, ready=ready)


@app.command("measure")
def measure_command(
    server: Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="Where `clock serve` runs.")],
    count: Annotated[int, typer.Option(min=1, help="Exchanges of one measurement.")] = 20,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Measure again after so many s, which gives the drift.")
    ] = 0.0,
    origin_ns: Origin = None,
    as_json: Annotated[bool, typer.Option("--json", help="The row of clocks.csv as JSON.")] = False,
) -> None:
    """Measure that host's clock against this one's; nothing is set or stepped.

    Example: netjoule-meters clock measure 192.0.2.1 --seconds 60
    """
    import time

    from netjoule_meters.clock import SystemClock
    from netjoule_meters.logger.clock_exchange import DEFAULT_PORT, clock_row, measure

    host, port = host_and_port(server if ":" in server else f"{server}:{DEFAULT_PORT}", "clock measure")
    clock = SystemClock()
    origin = clock.monotonic_ns() if origin_ns is None else origin_ns
    offsets: list[Offset] = [measure(host, port, clock=clock, count=count)]
    if seconds > 0:
        time.sleep(seconds)
        offsets.append(measure(host, port, clock=clock, count=count))
    row = clock_row(host, offsets, origin)
    if as_json:
        typer.echo(json.dumps(row))
        return
    drift = row["drift_ppm"]
    typer.echo(
        f"{host}: offset {1e3 * row['offset_s']:.4f} ms, known to {1e3 * row['residual_s']:.4f} ms, drift "
        + ("not known yet" if drift is None else f"{drift:.2f} ppm")
    )


@app.command("chrony")
def chrony_command(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Whose clock it is, for the row.")],
    here: Annotated[
        Path | None,
        typer.Option(help="What chronyc says here [default: it is asked].", metavar="FILE"),
    ] = None,
    origin_ns: Origin = None,
) -> None:
    """Compare the wall clocks of two hosts as their chronyd know them; prints the row of clocks.csv as JSON.

    Standard input holds what `chronyc -n tracking` says on HOST. Nothing is set or stepped.

    Example: ssh meterhost chronyc -n tracking | netjoule-meters clock chrony meterhost
    """
    from netjoule_meters.clock import SystemClock, campaign_time_s
    from netjoule_meters.logger.chrony import chrony_row, parse_tracking, tracking_here

    there = parse_tracking(sys.stdin.read(), host)
    ours = tracking_here() if here is None else parse_tracking(_text_of(here), "this host")
    now_ns = SystemClock().monotonic_ns()
    t_s = campaign_time_s(now_ns, now_ns if origin_ns is None else origin_ns)
    typer.echo(json.dumps(chrony_row(host, t_s, there, ours)))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
