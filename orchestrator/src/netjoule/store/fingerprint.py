# SPDX-License-Identifier: Apache-2.0
"""What machine a campaign ran on, without saying whose: no host name, user, address or serial number."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def host_fingerprint(
    proc: Path = Path("/proc"), os_release: Path = Path("/etc/os-release")
) -> dict[str, object]:
    """Kernel, architecture, distribution, CPU model, cores and memory (bytes) of this host."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "distribution": _field(os_release, "PRETTY_NAME", "=").strip('"') or "unknown",
        "cpu_model": _cpu_model(proc / "cpuinfo"),
        "cpu_cores": cpu_cores(),
        "memory_bytes": int((_field(proc / "meminfo", "MemTotal", ":").split() or ["0"])[0]) * 1024,
    }


def _cpu_model(cpuinfo: Path) -> str:
    """What the kernel calls the CPU; on arm64, which names none, the board."""
    return _field(cpuinfo, "model name", ":") or _field(cpuinfo, "Model", ":") or "unknown"


def cpu_cores() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def _field(path: Path, name: str, separator: str) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    return ""
