# SPDX-License-Identifier: Apache-2.0
"""How a meter comes by a password: by reference only, looked up when it connects.

``env:NAME`` is an environment variable, ``file:PATH`` the first line of a file. A literal is refused, and
its text is not shown: it may be the secret itself. Resolved values stay in the connection that needs them.
"""

from __future__ import annotations

import os
from pathlib import Path

from netjoule_meters.errors import MeterUnavailable, UsageError


def check_reference(setting: str, value: object) -> str | None:
    """``value`` if it is a reference or None.

    Raises:
        UsageError: for anything else.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.startswith(("env:", "file:")) and value.partition(":")[2]:
        return value
    raise UsageError(f"setting '{setting}' takes a reference, env:NAME or file:PATH, never the secret itself")


def look_up(setting: str, reference: str) -> str:
    """The secret behind a reference.

    Raises:
        MeterUnavailable: when there is no such variable or file, or it is empty.
    """
    form, _, name = reference.partition(":")
    if form == "env":
        value = os.environ.get(name, "")
        if not value:
            raise MeterUnavailable(
                f"{setting}: the environment variable {name} is not set: export {name}=..."
            )
        return value
    path = Path(name).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise MeterUnavailable(f"{setting}: cannot read the file {path}: {reason}") from error
    if not lines or not lines[0]:
        raise MeterUnavailable(f"{setting}: the file {path} is empty: write the secret into its first line")
    return lines[0]
