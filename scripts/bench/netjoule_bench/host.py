# SPDX-License-Identifier: Apache-2.0
"""One sentence about the machine, what it did meanwhile, and the commit a bench ran on."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from netjoule.store.fingerprint import host_fingerprint
from netjoule_bench.generators.contest import Contest

_STEAL = 7  # place of the stolen time among the figures of /proc/stat (proc(5))
_PAGE = "docs/benchmarks.md"


class Watch:
    """What the machine's CPUs did since the start."""

    def __init__(self) -> None:
        """Begin."""
        self._start = _cpu_ticks()

    def sentence(self, repo: Path, contest: Contest) -> str:
        """CPU, cores, kernel, stolen time, generators and commit."""
        stolen = stolen_percent(self._start, _cpu_ticks())
        generators = [one.name for one in contest.iperf3s] + [one.name for one in contest.neighbours]
        return (
            f"Host: {host_fingerprint()['cpu_model']}, {os.cpu_count()} cores, Linux {platform.release()}, "
            f"{', '.join(generators)}, commit {_commit(repo)}. "
            f"Time that a hypervisor took from it: {stolen:.1f} %."
        )


def stolen_percent(before: Sequence[int], after: Sequence[int]) -> float:
    """Share of all CPU time that a hypervisor gave to others, from two readings of /proc/stat."""
    passed = [b - a for a, b in zip(before, after, strict=True)]
    # Guest time (after the first eight) is part of user time.
    return 100 * passed[_STEAL] / max(1, sum(passed[: _STEAL + 1]))


def _cpu_ticks() -> list[int]:
    first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    return [int(figure) for figure in first.split()[1:]]


def _commit(repo: Path) -> str:
    """The commit, "-dirty" where anything differs from it but the page that the bench itself writes."""
    git = ["git", "-C", str(repo)]
    named = subprocess.run([*git, "describe", "--always"], capture_output=True, text=True, check=False)
    changed = [*git, "diff", "--quiet", "HEAD", "--", ".", f":!{_PAGE}"]
    dirty = subprocess.run(changed, capture_output=True, check=False).returncode != 0
    return f"{named.stdout.strip() or 'unknown'}{'-dirty' if dirty else ''}"
