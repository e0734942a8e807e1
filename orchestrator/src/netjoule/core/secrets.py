# SPDX-License-Identifier: Apache-2.0
"""Secrets: references in files, values only in memory and in the environment of the process that needs them.

Forms: ``env:NAME`` (environment variable), ``file:PATH`` (first line of a file), ``vault:NAME`` (what the
command in ``NETJOULE_VAULT`` prints when NAME is added to it, e.g. ``NETJOULE_VAULT="pass show"``).

A resolved value is a ``Secret``: it prints as ``***``, cannot be serialised by accident, and every text
that leaves the process goes through ``redact``.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import zlib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, NoReturn

from netjoule.core.errors import HostLacks, UsageError

_FORMS = ("env:", "file:", "vault:")
# A shorter value would blot out ordinary words of every message.
_LEAST_REDACTED = 4
_known: set[str] = set()


class Secret:
    """A resolved secret. ``reveal()`` is the only way to its value; never put it into an argument list."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        if len(value) >= _LEAST_REDACTED:
            _known.add(value)

    def reveal(self) -> str:
        """The value, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not serialised")


def is_reference(text: object) -> bool:
    """Whether ``text`` is a reference to a secret."""
    return isinstance(text, str) and text.startswith(_FORMS)


def references(value: object) -> list[str]:
    """All references inside a JSON-like value, in order."""
    if is_reference(value):
        return [str(value)]
    children = (
        list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    )
    return [found for child in children for found in references(child)]


def into_environment(value: Any, environ: MutableMapping[str, str], *, every_form: bool = False) -> Any:
    """A JSON-like value for a program that knows no vault: each ``vault:`` reference as an ``env:`` one.

    Args:
        value: settings of meters, for instance; ``env:`` and ``file:`` references go through as they are.
        environ: environment of the program's process; takes the resolved values, which appear nowhere else.
        every_form: ``env:`` and ``file:`` too, for a program on another host.

    Raises:
        HostLacks: when the vault does not have one.
    """
    if isinstance(value, str) and value.startswith(_FORMS if every_form else "vault:"):
        name = f"NETJOULE_SECRET_{zlib.crc32(value.encode()):08X}"
        environ[name] = resolve(value).reveal()
        return f"env:{name}"
    if isinstance(value, Mapping):
        return {key: into_environment(child, environ, every_form=every_form) for key, child in value.items()}
    if isinstance(value, list):
        return [into_environment(child, environ, every_form=every_form) for child in value]
    return value


def resolve(reference: str, *, where: str = "") -> Secret:
    """Look a reference up.

    Args:
        reference: ``env:NAME``, ``file:PATH`` or ``vault:NAME``.
        where: field that holds it, for the message.

    Raises:
        UsageError: when it is no reference (its text is not shown: it may be the secret itself).
        HostLacks: when the variable, file or vault entry is missing; the name is shown, never a value.
    """
    form, _, name = reference.partition(":")
    if form == "env":
        return _from_environment(name, where)
    if form == "file":
        return _from_file(Path(name).expanduser(), where)
    if form == "vault":
        return _from_vault(name, where)
    raise UsageError("a secret is given by reference (env:NAME, file:PATH or vault:NAME)", where=where)


def redact(text: str) -> str:
    """``text`` with every secret resolved so far replaced by ``***``."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _from_environment(name: str, where: str) -> Secret:
    value = os.environ.get(name)
    if not value:
        raise HostLacks(
            f"the environment variable {name} is not set", where=where, next_step=f"export {name}=..."
        )
    return Secret(value)


def _from_file(path: Path, where: str) -> Secret:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise HostLacks(f"cannot read the secret file {path}: {reason}", where=where) from error
    if not lines or not lines[0]:
        raise HostLacks(f"the secret file {path} is empty", where=where)
    return Secret(lines[0])


def _from_vault(name: str, where: str) -> Secret:
    command = os.environ.get("NETJOULE_VAULT")
    if not command:
        raise HostLacks(
            f"no vault is set up for vault:{name}",
            where=where,
            next_step="set NETJOULE_VAULT to a command that prints the secret of a name, e.g. 'pass show'",
        )
    try:
        # Its stderr is dropped: a vault's complaint may quote what it read.
        answer = subprocess.run(
            [*shlex.split(command), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise HostLacks(
            "the vault command could not be run", where=where, next_step="check NETJOULE_VAULT"
        ) from error
    lines = answer.stdout.splitlines()
    if answer.returncode != 0 or not lines or not lines[0]:
        raise HostLacks(f"the vault has no entry {name} (exit {answer.returncode})", where=where)
    return Secret(lines[0])
