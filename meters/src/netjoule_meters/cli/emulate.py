# SPDX-License-Identifier: Apache-2.0
"""``emulate``: an instrument of ``emulated.registry`` on a port of its own."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule_meters.cli.options import Origin, host_and_port, settings_of
from netjoule_meters.errors import UsageError

if TYPE_CHECKING:
    from netjoule_meters.emulated.instrument_loop import PowerSource
    from netjoule_meters.emulated.ports.network import Port

_DEFAULT_LISTEN = "127.0.0.1:0"


def emulate_command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Instrument to emulate; `list` names them, e.g. wt210.")
    ],
    power_stream: Annotated[
        str | None,
        typer.Option(help="Its power, as netjoule-device prints it: a pipe, - for standard input."),
    ] = None,
    power_w: Annotated[float | None, typer.Option(help="Constant power in W instead of a stream.")] = None,
    power_trace: Annotated[
        Path | None, typer.Option(help="Recorded power instead: CSV with t_s and power_w, or NDJSON.")
    ] = None,
    repeat: Annotated[bool, typer.Option("--repeat", help="Begin the trace again at its end.")] = False,
    port_kind: Annotated[
        str | None,
        typer.Option(help="pty, tcp, tcp-once, udp or vxi11 [default: the instrument's usual one]."),
    ] = None,
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT of tcp and udp; port 0 takes a free one.", metavar="ADDRESS")
    ] = None,
    link: Annotated[Path | None, typer.Option(help="Symbolic link to make to the pseudo-terminal.")] = None,
    baud_rate: Annotated[
        int | None,
        typer.Option(help="Baud rate it is set to; a client at another one receives noise [default: any]."),
    ] = None,
    variant: Annotated[str, typer.Option(help="Which device of its kind: the preset of a socket.")] = "",
    extra: Annotated[
        list[str] | None, typer.Option("--set", help="A further option of this model, NAME=VALUE.")
    ] = None,
    control: Annotated[
        Path | None,
        typer.Option(help="Unix datagram socket that takes faults as JSON lines.", metavar="PATH"),
    ] = None,
    origin_ns: Origin = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw this instrument's errors; without it, it has none.")
    ] = None,
    update_interval_s: Annotated[
        float | None, typer.Option(help="Update interval in s until a client sets it [default: its own].")
    ] = None,
    voltage_v: Annotated[float, typer.Option(help="Voltage of the supply in V.")] = 230.0,
    power_factor: Annotated[float, typer.Option(min=0.01, max=1.0, help="Power factor of the device.")] = 1.0,
    current_crest_factor: Annotated[
        float, typer.Option(min=1.0, help="Peak over RMS of the current.")
    ] = 1.41421356,
) -> None:
    """Emulate a power meter: it speaks the real instrument's protocol.

    Ends with its power stream or trace, on SIGTERM or on SIGINT. Prints one JSON line when it is ready:
    "port" is where it is, "resource" what a configuration calls it.

    Example: netjoule-meters emulate wt210 --power-w 12.5 --link /tmp/wt210
    """
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.emulated.instrument_loop import run_instrument
    from netjoule_meters.emulated.mains import Supply
    from netjoule_meters.emulated.registry import (
        EmulationOptions,
        client_resource,
        emulated_model,
        make_instrument,
        variant_of,
    )
    from netjoule_meters.shutdown import end_signals

    _require_numbers(power_w, voltage_v, power_factor, current_crest_factor)
    clock = SystemClock()
    origin = clock.monotonic_ns() if origin_ns is None else origin_ns
    supply = Supply(voltage_v, power_factor, current_crest_factor)
    options = EmulationOptions(seed, update_interval_s, supply, variant, settings_of(extra))
    description = emulated_model(model)
    source = _source(power_stream, power_w, power_trace, repeat)
    instrument = make_instrument(model, options)
    way = variant_of(description, variant)
    kind = _kind(way.ports, port_kind, listen, model)
    with contextlib.ExitStack() as stack:
        port = _open_port(kind, listen, link, baud_rate)
        stack.callback(port.close)
        faults = _faults(control, seed, stack)
        stop = stack.enter_context(end_signals())
        resource = client_resource(way.resource, kind, port.name)
        reached_by = {"adapter": description.adapter, "resource": resource, "settings": dict(way.settings)}
        _say_ready({"model": model, "port": port.name, "seed": seed, "emulated": True, **reached_by})
        run_instrument(instrument, port, source, clock=clock, origin_ns=origin, stop=stop, **faults)


def _say_ready(facts: dict[str, Any]) -> None:
    """One line for whoever started the instrument and waits for it."""
    typer.echo(json.dumps({"event": "ready", **facts}))
    sys.stdout.flush()


def _require_numbers(power_w: float | None, voltage_v: float, *factors: float) -> None:
    """Refuse what no instrument could be fed with; watts below 0 are power that is fed back."""
    if not all(math.isfinite(value) for value in (power_w or 0.0, voltage_v, *factors)):
        raise UsageError("power, voltage and factors are numbers: neither nan nor inf can be metered")
    if voltage_v <= 0:
        raise UsageError(f"--voltage-v is the supply's and more than 0, not {voltage_v:g}")


def _source(stream: str | None, power_w: float | None, trace: Path | None, repeat: bool) -> PowerSource:
    from netjoule_meters.emulated.instrument_loop import ConstantSource, open_stream
    from netjoule_meters.emulated.recorded_trace import load_trace

    if sum(choice is not None for choice in (stream, power_w, trace)) != 1:
        raise UsageError("give one of --power-stream or --power-w or --power-trace")
    if repeat and trace is None:
        raise UsageError("--repeat goes with --power-trace: a stream ends when its sender does")
    if stream is not None:
        return open_stream(stream)
    if trace is not None:
        return load_trace(trace, repeat=repeat)
    return ConstantSource(float(power_w or 0.0))


def _kind(kinds: tuple[str, ...], asked: str | None, listen: str | None, name: str) -> str:
    """The kind of port to open; an address asks for the first that has one.

    Raises:
        UsageError: for a kind that the instrument does not have.
    """
    kind = asked or next((k for k in kinds if k != "pty" or listen is None), kinds[0])
    if kind not in kinds:
        raise UsageError(f"an emulated {name} cannot sit on {kind}: choose one of {', '.join(kinds)}")
    return kind


def _open_port(kind: str, listen: str | None, link: Path | None, baud_rate: int | None) -> Port:
    from netjoule_meters.emulated.ports.baud_rate import BaudPort, require_baud_rate
    from netjoule_meters.emulated.ports.network import TcpPort, UdpPort
    from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort

    if kind == "pty":
        if listen is not None:
            raise UsageError("a pseudo-terminal has no address: leave --listen out, or use --port-kind tcp")
        if baud_rate is None:
            return PtyPort(link)
        require_baud_rate(baud_rate)
        return BaudPort(link, baud_rate)
    if baud_rate is not None:
        raise UsageError(f"--baud-rate goes with a pseudo-terminal, and this instrument is on {kind}")
    if link is not None:
        raise UsageError(f"--link names a pseudo-terminal, and this instrument is on {kind}: use --listen")
    host, port = host_and_port(listen or _DEFAULT_LISTEN, "--listen")
    if kind == "vxi11":
        from netjoule_meters.emulated.ports.vxi11 import Vxi11Port

        return Vxi11Port(host, port)
    return UdpPort(host, port) if kind == "udp" else TcpPort(host, port, once=kind == "tcp-once")


def _faults(control: Path | None, seed: int | None, stack: contextlib.ExitStack) -> dict[str, Any]:
    """The argument that hands faults to the instrument's loop; none without ``--control``."""
    if control is None:
        return {}
    from netjoule_meters.emulated.control import Control

    opened = Control(control)
    stack.callback(opened.close)
    return {"control": opened, "seed": seed or 0}
