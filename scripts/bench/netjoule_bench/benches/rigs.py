# SPDX-License-Identifier: Apache-2.0
"""What a second rig saves: a campaign that mostly waits, on one and on two emulated rigs of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from netjoule_bench.tables import Section, at_most, by_arm

MOST_OF_ONE = 0.575
"""Half of the time, within 15 %."""
_WORKLOAD = {
    "schema_version": 1,
    "name": "waiting",
    "transports": ["udp"],
    "payload_bytes": [1440],
    "offered_rate_mbps": [2],
    "timing": {"idle_s": 10.0, "settle_s": 0.2, "warm_up_s": 2.0, "measure_s": 6.0, "tail_s": 0.3},
}


def section(*, quick: bool) -> Section:
    """Time from the command to its table, for the same blocks."""
    blocks = 2 if quick else 8
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload = folder / "waiting.yaml"
        workload.write_text(json.dumps({**_WORKLOAD, "blocks": blocks}))  # JSON is YAML, too
        subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)
        words = {"one rig": [], "one rig of Dask": ["--rigs", "1"], "two rigs": ["--rigs", "2"]}
        took_s = {
            label: _took_s(workload, folder / str(place), options)
            for place, (label, options) in enumerate(words.items())
        }
    ratio = took_s["two rigs"] / took_s["one rig"]
    return by_arm(
        f"{blocks} blocks that mostly wait, on emulated rigs of one machine",
        took_s,
        {"time s": lambda one: f"{one:.1f}", "of one rig's": lambda one: f"{one / took_s['one rig']:.3f}"},
        arms="rigs",
        note="From the command to its table, start of Dask and of every testbed included; each block of a "
        "campaign on rigs has a session of its own.",
        verdicts=[at_most("time of two rigs over that of one", ratio, MOST_OF_ONE, "{:.3f}")],
    )


def _took_s(workload: Path, out: Path, options: list[str]) -> float:
    """Seconds that a campaign takes. Raises CalledProcessError when it fails."""
    began_s = time.monotonic()
    argv = [sys.executable, "-m", "netjoule", "run", str(workload), "--seed", "1", "--out", str(out)]
    subprocess.run([*argv, *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began_s
