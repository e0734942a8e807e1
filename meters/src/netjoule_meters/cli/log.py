# SPDX-License-Identifier: Apache-2.0
"""``log``: the logger's process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netjoule_meters.cli.options import Origin, host_and_port
from netjoule_meters.errors import UsageError


def log_command(
    config: Annotated[Path, typer.Option(help="Meters to read, JSON by the contract meter_config.")],
    out: Annotated[Path, typer.Option(help="Campaign folder; readings go to meters/<meter_id>.csv in it.")],
    origin_ns: Origin = None,
    clock_server: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of `clock serve` on the controller, when this host is another one."),
    ] = None,
) -> None:
    """Log all meters until SIGTERM, SIGINT or the end of standard input (when it is a pipe).

    Prints JSON lines: "ready" with the passports, "meter" for gaps and reconnections, "ended". With
    --clock-server, --origin-ns is the controller's, times are mapped to its clock, and "clock" lines hold the
    rows of clocks.csv.

    Example: netjoule-meters log --config meters.json --out results/mine
    """
    from netjoule_meters.clock import SystemClock, today
    from netjoule_meters.config import load_meter_configs
    from netjoule_meters.json_lines import JsonLinesWriter
    from netjoule_meters.logger.process import Logger
    from netjoule_meters.shutdown import on_end_signal, on_lifeline_end

    if clock_server is not None and origin_ns is None:
        raise UsageError(
            "--clock-server needs --origin-ns, the controller's CLOCK_MONOTONIC at campaign time 0"
        )
    clock = SystemClock()
    configs = load_meter_configs(config)
    with JsonLinesWriter() as events:
        logger = Logger(
            configs=configs,
            out=out,
            origin_ns=clock.monotonic_ns() if origin_ns is None else origin_ns,
            clock=clock,
            today=today(),
            emit=events.write,
            clock_server=None if clock_server is None else host_and_port(clock_server, "--clock-server"),
        )
        on_lifeline_end(logger.end)
        with on_end_signal(logger.end):
            logger.run()
