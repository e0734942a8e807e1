# SPDX-License-Identifier: Apache-2.0
"""What is started on a host: programs by their place there, our files of Python as a lab's host gets them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from netjoule.core import programs
from netjoule.hosts.host import Host


def located(host: Host, program: str) -> str:
    """Path of a program, or its name on a lab's host that has it on its PATH. Raises HostLacks without it."""
    provided: Mapping[str, str] | None = getattr(host, "programs", None)
    return programs.find(program) if provided is None else provided.get(program, program)


async def python_program(host: Host, module: ModuleType) -> list[str]:
    """What starts a module that is one file and its library; a lab's host gets a copy in its cache."""
    source = Path(str(module.__file__))
    put_once = getattr(host, "put_once", None)
    if put_once is None:
        return [programs.PYTHON[0], "-I", str(source)]
    return [*programs.HOST_PYTHON, await put_once(source.read_bytes(), f"netjoule-{source.stem}", ".py")]


def version_in(said: str) -> str:
    """The number in what a program says of its version; all of it where there is none."""
    found = re.search(r"\d+(\.\d+)+", said)
    return found.group() if found else said
