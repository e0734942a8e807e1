# SPDX-License-Identifier: Apache-2.0
"""What is started on a host: where a program is there, and what it says of its version."""

from __future__ import annotations

import re
from collections.abc import Mapping

from netjoule.core import programs
from netjoule.hosts.host import Host


def located(host: Host, program: str) -> str:
    """Path of a program, or its name on a lab's host that has it on its PATH. Raises HostLacks without it."""
    provided: Mapping[str, str] | None = getattr(host, "programs", None)
    return programs.find(program) if provided is None else provided.get(program, program)


def version_in(said: str) -> str:
    """The number in what a program says of its version; all of it where there is none."""
    found = re.search(r"\d+(\.\d+)+", said)
    return found.group() if found else said
