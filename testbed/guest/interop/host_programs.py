# SPDX-License-Identifier: Apache-2.0
"""Programs of this host that the matrix needs, and the commit that it is run from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def find(name: str) -> str:
    """Path of a program: of netjoule's own in the source tree, else of the host's.

    Raises:
        FileNotFoundError: with the command that gets it.
    """
    folders = (
        os.environ.get("NETJOULE_BIN_DIR", ""),
        str(ROOT / "target/release"),
        str(Path(sys.executable).parent),
    )
    found = shutil.which(name, path=os.pathsep.join((*filter(None, folders), _PATH)))
    if found is None:
        raise FileNotFoundError(f"no {name} on this host; run scripts/setup.sh guest-test")
    return found


def commit() -> str:
    """Commit of the source tree as ``git describe`` names it; "unknown" without git."""
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--tags", "--dirty", "--abbrev=12"]
    ended = subprocess.run(describe, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or "unknown"
