# SPDX-License-Identifier: Apache-2.0
"""Starts a file of Python of ours on a host: a lab's host gets a copy of it in its cache."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from netjoule.core import programs
from netjoule.hosts.host import Host


async def python_program(host: Host, module: ModuleType) -> list[str]:
    """What starts a module that is one file and its library; a lab's host gets a copy in its cache."""
    source = Path(str(module.__file__))
    put_once = getattr(host, "put_once", None)
    if put_once is None:
        return [programs.PYTHON[0], "-I", str(source)]
    return [*programs.HOST_PYTHON, await put_once(source.read_bytes(), f"netjoule-{source.stem}", ".py")]
