# SPDX-License-Identifier: Apache-2.0
"""``clock serve`` and ``clock measure``: how far another host's clock is from this one's."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from netjoule_meters.cli.options import Origin, host_and_port

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
    from netjoule_meters.ending import end_signals
    from netjoule_meters.logger.clock_exchange import DEFAULT_PORT, serve

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
