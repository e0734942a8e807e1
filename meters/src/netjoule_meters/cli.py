# SPDX-License-Identifier: Apache-2.0
"""Command line of the meters room: ``netjoule-meters list | read | log | emulate``.

Exit codes: 0 fine, 1 failed, 2 usage, 3 the meter asked for is not there, 4 invalid data. Everything heavy
is imported where it is used, so that help and errors are quick.
"""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from netjoule_meters.errors import MeterError, UsageError

app = typer.Typer(
    name="netjoule-meters",
    help="Power meters beside an experiment: read them, log them, or emulate one.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class EmulatedModel(StrEnum):
    """Instruments that can be emulated."""

    WT210 = "wt210"


Origin = Annotated[
    int | None, typer.Option(help="CLOCK_MONOTONIC in ns at campaign time 0 (default: now).", metavar="N")
]


def main() -> None:
    """Entry point: errors become one line and an exit code."""
    try:
        app()
    except MeterError as error:
        sys.stderr.write(f"netjoule-meters: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, for example `| head`; keep the interpreter quiet about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.callback()
def _common(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the dialogue with the meter.")
    ] = False,
) -> None:
    if verbose:
        import logging

        logging.basicConfig(
            level=logging.DEBUG, stream=sys.stderr, format="%(relativeCreated)d ms %(message)s"
        )


@app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """List adapters with their settings, and the serial ports of this host.

    Example: netjoule-meters list
    """
    from netjoule_meters.adapters import adapter, adapter_names
    from netjoule_meters.transports.serial_port import serial_port_names

    kinds = [adapter(name) for name in adapter_names()]
    ports = serial_port_names()
    if as_json:
        adapters = [{"name": kind.name, "make": kind.make, "model": kind.model} for kind in kinds]
        typer.echo(json.dumps({"adapters": adapters, "serial_ports": ports}))
        return
    for kind in kinds:
        typer.echo(f"{kind.name}: {kind.make} {kind.model}")
        for setting in kind.all_settings():
            typer.echo(f"  {setting.describe()}")
    typer.echo(f"serial ports: {', '.join(ports) or 'none'}")


@app.command("read")
def read_command(
    adapter_name: Annotated[str | None, typer.Argument(metavar="ADAPTER", help="For example wt210.")] = None,
    port: Annotated[str | None, typer.Option(help="Serial port of the meter.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, NAME=VALUE; may be given again.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Read the first meter of this meter_config instead.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Readings to take.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per reading.")] = False,
) -> None:
    """Read a meter a few times and print what it shows.

    Example: netjoule-meters read wt210 --port /dev/ttyS0 --set voltage_range_v=300 --set current_range_a=0.5
    """
    from netjoule_meters.config import MeterConfig, load_meter_configs
    from netjoule_meters.opening import open_meter

    if config is not None:
        chosen = load_meter_configs(config)[0]
    elif adapter_name is None or port is None:
        raise UsageError("name an adapter and its --port, or a --config file")
    else:
        chosen = MeterConfig("meter", "host", adapter_name, port, dict(map(_name_and_value, setting or [])))
    meter = open_meter(chosen)
    try:
        _print_readings(meter, count, as_json)
    finally:
        meter.close()


def _print_readings(meter: Any, count: int, as_json: bool) -> None:
    import threading

    stop = threading.Event()
    if not as_json:
        typer.echo(f"{meter.identification.text} on {meter.measuring_range.power_w:g} W range")
    for taken, reading in enumerate(meter.readings(stop), start=1):
        if as_json:
            names = ("t_ns", "power_w", "voltage_v", "current_a")
            values = {name: getattr(reading, name) for name in names}
            typer.echo(json.dumps({**values, "flag": reading.flag.value}))
        else:
            cells = ((reading.power_w, "W"), (reading.voltage_v, "V"), (reading.current_a, "A"))
            shown = "  ".join("-" if value is None else f"{value:.6g} {unit}" for value, unit in cells)
            typer.echo(f"{shown}  {reading.flag.value}".rstrip())
        if taken == count:
            return


def _name_and_value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set takes NAME=VALUE, not '{text}'")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@app.command("log")
def log_command(
    config: Annotated[Path, typer.Option(help="Meters to read, JSON by the contract meter_config.")],
    out: Annotated[Path, typer.Option(help="Campaign folder; readings go to meters/<meter_id>.csv in it.")],
    origin_ns: Origin = None,
) -> None:
    """Log all meters until SIGTERM, SIGINT or the end of standard input (when it is a pipe).

    Prints JSON lines: "ready" with the passports, "meter" for gaps and reconnections, "ended".

    Example: netjoule-meters log --config meters.json --out results/mine
    """
    import threading

    from netjoule_meters.announcing import Announcer
    from netjoule_meters.clock import SystemClock, today
    from netjoule_meters.config import load_meter_configs
    from netjoule_meters.ending import end_signals, lifeline, watch_lifeline
    from netjoule_meters.logger.process import Logger

    clock = SystemClock()
    configs = load_meter_configs(config)
    with Announcer() as announcer, end_signals() as signalled:
        logger = Logger(
            configs=configs,
            out=out,
            origin_ns=clock.monotonic_ns() if origin_ns is None else origin_ns,
            clock=clock,
            today=today(),
            announce=announcer.announce,
        )
        if (descriptor := lifeline()) is not None:
            watch_lifeline(descriptor, logger.end)
        # Signals wake this descriptor; the thread turns them into the same end as the lifeline's.
        ender = threading.Thread(target=_end_when_readable, args=(signalled, logger.end), daemon=True)
        ender.start()
        logger.run()


def _end_when_readable(descriptor: int, end: Any) -> None:
    import contextlib

    with contextlib.suppress(OSError):
        if os.read(descriptor, 1):
            end()


@app.command("emulate")
def emulate_command(
    model: Annotated[EmulatedModel, typer.Argument(help="Instrument to be.")],
    power_stream: Annotated[
        str | None, typer.Option(help="Device stream to be fed with: a pipe, - for standard input.")
    ] = None,
    power_w: Annotated[float | None, typer.Option(help="Constant power in W instead of a stream.")] = None,
    link: Annotated[Path | None, typer.Option(help="Symbolic link to make to the pseudo-terminal.")] = None,
    origin_ns: Origin = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw this instrument's errors; without it, it has none.")
    ] = None,
    update_interval_s: Annotated[
        float, typer.Option(help="Update interval in s until a client sets it.")
    ] = 0.1,
    voltage_v: Annotated[float, typer.Option(help="Voltage of the supply in V.")] = 230.0,
    power_factor: Annotated[float, typer.Option(min=0.01, max=1.0, help="Power factor of the device.")] = 1.0,
    current_crest_factor: Annotated[
        float, typer.Option(min=1.0, help="Peak over RMS of the current.")
    ] = 1.41421356,
) -> None:
    """Be a power meter on a pseudo-terminal, speaking the real instrument's language.

    Ends with its power stream, on SIGTERM or on SIGINT. Prints one JSON line when it is ready.

    Example: netjoule-meters emulate wt210 --power-w 12.5 --link /tmp/wt210
    """
    from netjoule_meters.adapters.wt210 import UPDATE_INTERVALS_S
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.emulated.pty_port import PtyPort
    from netjoule_meters.emulated.running import ConstantSource, PowerSource, open_stream, run_instrument
    from netjoule_meters.emulated.wt210 import EmulatedWT210
    from netjoule_meters.emulated.wt210_measuring import Supply
    from netjoule_meters.ending import end_signals

    if (power_stream is None) == (power_w is None):
        raise UsageError("give either --power-stream or --power-w")
    if update_interval_s not in UPDATE_INTERVALS_S:
        raise UsageError(f"a WT210 updates every {', '.join(f'{s:g}' for s in UPDATE_INTERVALS_S)} s")
    clock = SystemClock()
    origin = clock.monotonic_ns() if origin_ns is None else origin_ns
    supply = Supply(voltage_v, power_factor, current_crest_factor)
    instrument = EmulatedWT210(update_interval_s=update_interval_s, seed=seed, supply=supply)
    source: PowerSource = open_stream(power_stream) if power_stream else ConstantSource(float(power_w or 0.0))
    port = PtyPort(link)
    try:
        with end_signals() as stop:
            typer.echo(json.dumps({"event": "ready", "model": model.value, "port": port.name, "seed": seed}))
            sys.stdout.flush()
            run_instrument(instrument, port, source, clock=clock, origin_ns=origin, stop=stop)
    finally:
        port.close()


if __name__ == "__main__":
    main()
