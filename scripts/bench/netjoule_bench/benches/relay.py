# SPDX-License-Identifier: Apache-2.0
"""The running link relay against its own model, saturated."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from netjoule_bench.tables import Section

LIMIT = 0.10


def section(repo: Path) -> Section:
    """One row per case of testbed/link/relay/bench_relay.sh; pass: within 10 % of the model."""
    done = subprocess.run(
        [str(repo / "testbed/link/relay/bench_relay.sh")], stdout=subprocess.PIPE, text=True, check=True
    )
    cases = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = [
        [c["case"], f"{c['model_mbps']:.2f}", f"{c['measured_mbps']:.2f}", f"{c['ratio']:.3f}"] for c in cases
    ]
    return Section(
        title="Running link against its model, saturated UDP",
        columns=["case", "model Mb/s", "measured Mb/s", "measured / model"],
        rows=rows,
        note="Payload rate at the receiver. Limit: within 10 % of the model on an idle 2-core machine.",
        passed=all(abs(c["ratio"] - 1) <= LIMIT for c in cases) and bool(cases),
    )
