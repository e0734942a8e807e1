# SPDX-License-Identifier: Apache-2.0
"""Our DCCP beside the kernel's, inside the QEMU guest: the table of testbed/guest/interop as a section."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from netjoule_bench.tables import Section


def section(repo: Path) -> Section:
    """Goodput and CPU per packet as ratios to the kernel's own DCCP on the same path; no limit is set."""
    done = subprocess.run(
        [sys.executable, str(repo / "testbed/guest/interop"), "bench"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    columns, *rows = _cells(done.stdout)
    return Section(
        title="DCCP in the guest: our stack beside the kernel's (Linux 6.1 in QEMU, software emulation)",
        columns=columns,
        rows=rows,
        note="The guest's clock counts instructions: CPU time is work done, and only ratios mean anything.",
    )


def _cells(table: str) -> list[list[str]]:
    """Lines of a Markdown table without the ruler."""
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    return [line for line in lines if set(line[0]) != {"-"}]
