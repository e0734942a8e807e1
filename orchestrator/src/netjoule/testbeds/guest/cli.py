# SPDX-License-Identifier: Apache-2.0
"""``netjoule guest``: what was typed, handed to the part that does it."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from netjoule.core.console import Output
from netjoule.core.signals import termination_signals
from netjoule.testbeds.guest import DEFAULT_MEMORY_MIB, AccelChoice, Network

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
        typer.Option(metavar="DIR", help="Folder of this host that CMD may write; repeatable."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="End CMD after S seconds (exit 124).")
    ] = None,
    memory: Annotated[int, typer.Option(metavar="MIB", help="Memory of the guest.")] = DEFAULT_MEMORY_MIB,
    accel: Annotated[AccelChoice, typer.Option(help="auto tries KVM once per boot of this host.")] = "auto",
    virtual_time: Annotated[
        bool,
        typer.Option("--virtual-time", help="The guest's clock counts instructions: for comparing speeds."),
    ] = False,
) -> None:
    """Run CMD as root of a guest that sees this host's files and cannot change them.

    Output and exit code are CMD's. No network. CMD's standard input is empty.

    Example: netjoule guest run -- sh -c 'modprobe dccp_ipv4 && grep DCCP /proc/net/protocols'
    """
    from netjoule.testbeds.guest.run import Request, to_file
    from netjoule.testbeds.guest.run import run as run_in_guest

    output = Output()
    outcome = run_in_guest(
        Request(command, rw or (), timeout, memory, accel, virtual_time),
        to_file(1),
        to_file(2),
        output.error,
        _detail(context, output),
    )
    raise typer.Exit(outcome.exit_code)


@app.command()
def lab(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="For keys and topology of this boot.")],
    network: Annotated[Network, typer.Option(help="Radio network of the topology.")] = "ht40-wpa2",
) -> None:
    """Boot an access point, a client and a server in one guest; they stay until Ctrl-C or the end of input.

    FOLDER/testbed-topology.yaml is for provision, doctor and run; `ssh -F FOLDER/ssh_config client` logs in.
    Radios are mac80211_hwsim's: real hostapd and wpa_supplicant, but no air time.

    Example: netjoule guest lab guest-lab --network vht80-sae
    """
    from netjoule.testbeds.guest import lab as guest_lab

    output = Output()

    def ready(topology: Path) -> None:
        output.say(f"guest: the lab is ready: {topology}")

    # Keys and passphrase of the boot go however it is ended; by default only Ctrl-C runs what removes them.
    for number in termination_signals():
        signal.signal(number, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        guest_lab.lab(
            folder,
            network,
            ready,
            output.error,
            _detail(context, output),
            stop=_lifeline(),
        )


def _detail(context: typer.Context, output: Output) -> Callable[[str], None]:
    """Where details go: with -v to stderr, else nowhere."""
    return output.error if (context.obj or {}).get("verbose") else lambda _line: None


def _lifeline() -> int | None:
    """Standard input when its end is the end of who started us: a pipe, a socket or a terminal."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return None
    return 0 if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(0) else None


@app.command()
def prepare() -> None:
    """Download and unpack the guest's kernel, unless it is here already.

    Example: netjoule guest prepare
    """
    from netjoule.testbeds.guest import kernel

    output = Output()
    ready = kernel.ensure(output.error)
    output.say(f"guest: {ready.package} {ready.version} in {ready.image.parent.parent}")
