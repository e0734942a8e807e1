# SPDX-License-Identifier: Apache-2.0
"""A wrong command line in the style of every other error, for all programs that are made with typer."""

from __future__ import annotations

from typer.exceptions import TyperException

__all__ = ["bare_help", "usage_line"]


def usage_line(error: TyperException, program: str) -> str:
    """One line: the program, what is wrong, and where its help is."""
    message = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = program if context is None else context.command_path
    return f"{program}: {message}{'' if message.endswith('?') else ';'} see '{path} --help'"


def bare_help(error: TyperException) -> str | None:
    """The help that a command without its verb asks for; None of a wrong command line."""
    # typer has no public name for it.
    return error.format_message().strip() if type(error).__name__ == "NoArgsIsHelpError" else None
