# SPDX-License-Identifier: Apache-2.0
"""Debian programs that the guest needs: where they are, or which package has them."""

from __future__ import annotations

import os
import shutil

from netjoule.core.errors import HostLacks

_SBIN = ":/usr/sbin:/sbin"


def tool(program: str, package: str, also: str = "") -> str:
    """Path of a program, also where only root's PATH leads, or in a folder of ours.

    Raises:
        HostLacks: naming the package that has it.
    """
    found = shutil.which(program, path=os.environ.get("PATH", "") + f"{_SBIN}:{also}")
    if found is None:
        raise HostLacks(
            f"the guest needs the program {program}, which is not on this host",
            next_step=f"install the package {package}; 'scripts/setup.sh guest' installs all that it needs",
        )
    return found
