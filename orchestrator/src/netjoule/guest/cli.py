# SPDX-License-Identifier: Apache-2.0
"""``netjoule guest``: what was typed, handed to the part that does it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netjoule.console import Output
from netjoule.guest.run import DEFAULT_MEMORY_MIB, AccelChoice, Request, to_file
from netjoule.guest.run import run as run_in_guest

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _guest() -> None:
    """Run a command on Debian's kernel, with DCCP.

    Example: netjoule guest run -- uname -r
    """


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="Program and arguments.")],
    rw: Annotated[
        list[Path] | None,
        typer.Option("--rw", metavar="DIR", help="Folder of this host that CMD may write; repeatable."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="End CMD after S seconds (exit 124).")
    ] = None,
    memory: Annotated[
        int, typer.Option("--memory", metavar="MIB", help="Memory of the guest.")
    ] = DEFAULT_MEMORY_MIB,
    accel: Annotated[
        AccelChoice, typer.Option("--accel", help="auto tries KVM once per boot of this host.")
    ] = "auto",
) -> None:
    """Run CMD as root of a guest that sees this host's files and cannot change them.

    Output and exit code are CMD's. No network. CMD's standard input is empty.

    Example: netjoule guest run -- sh -c 'modprobe dccp_ipv4 && grep DCCP /proc/net/protocols'
    """
    output = Output()
    verbose = bool((context.obj or {}).get("verbose"))
    outcome = run_in_guest(
        Request(command, rw or (), timeout, memory, accel),
        to_file(1),
        to_file(2),
        output.error,
        output.error if verbose else lambda _line: None,
    )
    raise typer.Exit(outcome.exit_code)


@app.command()
def prepare() -> None:
    """Download and unpack the guest's kernel, unless it is here already.

    Example: netjoule guest prepare
    """
    from netjoule.guest import kernel

    output = Output()
    ready = kernel.ensure(output.error)
    output.say(f"guest: {ready.package} {ready.version} in {ready.image.parent.parent}")
