# SPDX-License-Identifier: Apache-2.0
"""Command line of the meters room: ``netjoule-meters VERB``.

Verbs: list, probe, read, log, emulate, range, calibrate, clock; one module each. Exit codes: 0 fine,
1 failed, 2 usage, 3 the meter asked for is not there, 4 invalid or inconclusive data. Everything heavy is
imported where it is used, so that help and errors are quick.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from netjoule_meters.cli import (
    calibrate,
    clock,
    emulate,
    list_adapters,
    log,
    probe,
    range_pass,
    read,
)
from netjoule_meters.errors import DialogueError, MeterError, MeterUnavailable, UsageError
from netjoule_meters.usage import bare_help, help_where_arguments_lack, usage_line

app = typer.Typer(
    name="netjoule-meters",
    help="Power meters beside an experiment: find them, read them, log them, or emulate one.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("list")(list_adapters.list_command)
app.command("probe")(probe.probe_command)
app.command("read", no_args_is_help=True)(read.read_command)
app.command("log")(log.log_command)
app.command("emulate")(emulate.emulate_command)
app.command("range", no_args_is_help=True)(range_pass.range_command)
app.command("calibrate")(calibrate.calibrate_command)
app.add_typer(clock.app, name="clock")
help_where_arguments_lack(app)


def main() -> None:
    """Entry point: errors become one line and an exit code; without a verb it prints its help."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever encoding the user has
    try:
        code = app(prog_name="netjoule-meters", standalone_mode=False)
    except TyperException as error:
        if (text := bare_help(error)) is None:
            sys.stderr.write(usage_line(error, "netjoule-meters") + "\n")
            sys.exit(UsageError.exit_code)
        typer.echo(text)
        sys.exit(0)
    except typer.Abort:
        _leave("stopped", 1)
    except MeterError as error:
        _leave(str(error), error.exit_code)
    except DialogueError as error:
        _leave(f"the meter stopped answering ({error}): check it and try again", MeterUnavailable.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, for example `| head`; keep the interpreter quiet about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _leave(sentence: str, exit_code: int) -> None:
    sys.stderr.write(f"netjoule-meters: {sentence}\n")
    sys.exit(exit_code)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"netjoule-meters {version('netjoule-meters')}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the dialogue with the meter.")
    ] = False,
) -> None:
    if verbose:
        import logging

        logging.basicConfig(
            level=logging.DEBUG, stream=sys.stderr, format="%(relativeCreated)d ms %(message)s"
        )
