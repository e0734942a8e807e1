# SPDX-License-Identifier: Apache-2.0
"""Debian programs that the guest needs: where they are, or which package has them."""

from __future__ import annotations

import os
import shutil

from netjoule.core.errors import HostLacks

_SBIN = ":/usr/sbin:/sbin"


def tool(program: str, package: str, also: str = "", level: str = "guest") -> str:
    """Path of a program, also where only root's PATH leads, or in a folder that a level of set-up fills.

    Raises:
        HostLacks: naming the package that has it.
    """
    found = shutil.which(program, path=os.environ.get("PATH", "") + _SBIN + (also and f":{also}"))
    if found is None:
        raise HostLacks(
            f"the guest needs the program {program}, which is not on this host",
            next_step=f"install the package {package}; 'scripts/setup.sh {level}' installs all that it needs",
        )
    return found
