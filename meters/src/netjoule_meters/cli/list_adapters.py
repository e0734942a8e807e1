# SPDX-License-Identifier: Apache-2.0
"""``list``: which adapters and emulated instruments there are, and which serial ports this host has."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def list_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ADAPTER]...", help="Only these adapters.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """List adapters with their settings, emulated instruments, and the serial ports of this host.

    Example: netjoule-meters list wt210
    """
    from netjoule_meters.adapters import adapter, adapter_names
    from netjoule_meters.emulated.registry import EMULATED
    from netjoule_meters.transports.serial_port import serial_port_names

    kinds = [adapter(name) for name in names or adapter_names()]
    ports = serial_port_names()
    if as_json:
        adapters = [
            {
                "name": kind.name,
                "make": kind.make,
                "model": kind.model,
                "interfaces": list(kind.interfaces),
                "semantics": kind.semantics.value,
                "quantity": kind.quantity.value,
                "provisional": list(kind.provisional),
            }
            for kind in kinds
        ]
        typer.echo(json.dumps({"adapters": adapters, "emulated": sorted(EMULATED), "serial_ports": ports}))
        return
    for kind in kinds:
        typer.echo(f"{kind.name}: {kind.make} {kind.model}, by {', '.join(kind.interfaces)}")
        for setting in kind.all_settings():
            typer.echo(f"  {setting.describe()}")
        for statement in kind.provisional:
            typer.echo(f"  provisional: {statement}")
    typer.echo(f"emulated instruments: {', '.join(sorted(EMULATED))}")
    typer.echo(f"serial ports: {', '.join(ports) or 'none'}")
