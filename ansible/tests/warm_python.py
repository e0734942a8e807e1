# SPDX-License-Identifier: Apache-2.0
"""The Python of the tests' hosts: a copy of a warm process for each module, as in the guest's lab.

Most of a task's time is otherwise the loading of what all modules of Ansible import.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from pathlib import Path

_LAB = Path(__file__).resolve().parents[2] / "testbed/guest/lab"
INTERPRETER = str(_LAB / "python")


def environment(folder: Path) -> dict[str, str]:
    """What a host's interpreter needs to know of a warm Python that has this folder."""
    return {"WARM_FOLDER": str(folder), "WARM_PYTHON": sys.executable}


def start(folder: Path, **values: str) -> str:
    """Shell that starts one, with the environment of the host's modules; it ends with the shell."""
    folder.mkdir()
    os.mkfifo(folder / "ask")
    warm = [sys.executable, "-I", "-S", _LAB / "warm.py", folder, sysconfig.get_path("purelib")]
    own = (f"{name}={value}" for name, value in values.items())
    command = shlex.join(map(str, ["env", *own, *warm]))
    return f"{command} </dev/null >/dev/null &\nwarm=$!\ntrap 'kill $warm' EXIT\n"
