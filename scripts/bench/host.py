# SPDX-License-Identifier: Apache-2.0
"""One sentence about the machine and the commit a bench ran on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def description(repo: Path, iperf3_version: str) -> str:
    """CPU, cores, kernel, iperf3's version and the commit."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(
        ["git", "-C", str(repo), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return (
        f"Host: {model}, {os.cpu_count()} cores, Linux {platform.release()}, iperf3 {iperf3_version}, "
        f"commit {commit or 'unknown'}."
    )
