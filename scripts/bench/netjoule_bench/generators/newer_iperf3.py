# SPDX-License-Identifier: Apache-2.0
"""A newer iperf3 beside the installed one: pointed to, or unpacked from the host's own Debian mirror.

Nothing is installed. Debian 13's package comes with the C library that it was built for, and runs by that
library's own loader out of a scratch folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from netjoule_bench.generators.iperf3 import Iperf3

LEAST_VERSION = (3, 18)
WANTED = "iperf3 3.18 or newer"
POINTER = "NETJOULE_BENCH_IPERF3"
_RELEASE = "trixie"
_PACKAGES = ["iperf3", "libiperf0", "libc6", "libssl3t64", "libsctp1", "libzstd1", "zlib1g"]


def find(folder: Path) -> tuple[Iperf3 | None, str]:
    """The newer iperf3, or None and why there is none.

    Args:
        folder: where ``fetch`` unpacked it.
    """
    pointed = os.environ.get(POINTER)
    command = (pointed,) if pointed else unpacked_command(folder)
    if command is None:
        return None, f"{POINTER} names none, and none was fetched (--fetch-iperf3)"
    try:
        found = Iperf3.of(command)
    except (OSError, subprocess.SubprocessError, IndexError) as problem:
        return None, f"{' '.join(command)} does not run: {problem}"
    if version_of(found.version) < LEAST_VERSION:
        return None, f"{' '.join(command)} is iperf3 {found.version}, which is not newer"
    return found, ""


def version_of(text: str) -> tuple[int, ...]:
    """3.18 or 3.17.1+ as numbers."""
    return tuple(int(part) for part in text.rstrip("+").split(".") if part.isdigit())


def unpacked_command(folder: Path) -> tuple[str, ...] | None:
    """How the unpacked iperf3 is run; None where there is none."""
    root = folder / "root"
    program = root / "usr/bin/iperf3"
    loader = next(iter(sorted(root.glob("usr/lib/*/ld-linux*.so.*"))), None)
    if loader is None or not program.exists():
        return None
    return (str(loader), "--library-path", str(loader.parent), str(program))


def fetch(folder: Path) -> str:
    """Unpack Debian 13's iperf3 into ``folder``, unless that was done; what went wrong, or nothing."""
    if unpacked_command(folder):
        return ""
    try:
        targets = _apt(["indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)"], folder)
        mirror = mirror_of(targets.splitlines())
        if mirror is None:
            return "apt has no Debian mirror here"
        _unpack(folder, mirror)
    except (OSError, subprocess.SubprocessError) as problem:
        said = getattr(problem, "stderr", "") or str(problem)
        return f"could not fetch it: {said.strip().splitlines()[-1]}"
    return ""


def mirror_of(targets: Iterable[str]) -> str | None:
    """The Debian mirror among apt's index targets, lines of origin, codename and address."""
    for line in targets:
        origin, codename, *address = line.split(" ")
        # Not the security archive, nor updates and backports: their codenames have a dash.
        if origin == "Debian" and "-" not in codename and len(address) == 1:
            return address[0]
    return None


def _unpack(folder: Path, mirror: str) -> None:
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    (folder / "archives/partial").mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(f"deb {mirror} {_RELEASE} main\n", encoding="ascii")
    own = ["-o", f"Dir::Etc::SourceList={folder}/sources.list", "-o", "Dir::Etc::SourceParts=-"]
    own += ["-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}"]
    own += ["-o", "APT::Sandbox::User=root"]
    _apt([*own, "-q", "update"], folder)
    _apt([*own, "-q", "download", *_PACKAGES], folder)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "root")], check=True)
        package.unlink()


def _apt(arguments: list[str], folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["apt-get", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout
