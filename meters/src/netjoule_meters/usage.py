# SPDX-License-Identifier: Apache-2.0
"""A wrong command line in the style of every other error, for all programs that are made with typer."""

from __future__ import annotations

from inspect import Parameter, signature

import typer
from typer.exceptions import TyperException


def usage_line(error: TyperException, program: str) -> str:
    """One line: the program, what is wrong, and where its help is."""
    message = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = program if context is None else context.command_path
    return f"{program}: {message}{'' if message.endswith('?') else ';'} see '{path} --help'"


def help_where_arguments_lack(app: typer.Typer) -> None:
    """Have every command that needs an argument print its help where it is given none at all."""
    for command in app.registered_commands:
        parameters = signature(command.callback).parameters.values() if command.callback else ()
        asked = [one for one in parameters if one.annotation not in (typer.Context, "typer.Context")]
        command.no_args_is_help |= any(one.default is Parameter.empty for one in asked)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            help_where_arguments_lack(group.typer_instance)


def bare_help(error: TyperException) -> str | None:
    """The help that a command without its verb asks for; None of a wrong command line."""
    # typer has no public name for it.
    return error.format_message().strip() if type(error).__name__ == "NoArgsIsHelpError" else None
