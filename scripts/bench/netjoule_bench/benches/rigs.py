# SPDX-License-Identifier: Apache-2.0
"""What a second rig saves: a campaign that mostly waits, on one and on two, emulated and behind sshd."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from netjoule_bench.tables import Section, Verdict, at_most, by_arm

MOST_OF_ONE = 0.575
"""Half of the time, within 15 %."""
_WORKLOAD = {
    "schema_version": 1,
    "name": "waiting",
    "transports": ["udp"],
    "payload_bytes": [1440],
    "offered_rate_mbps": [1, 2, 3, 4],  # a block of a study takes minutes, a session some seconds to begin
    "timing": {"idle_s": 40.0, "settle_s": 0.2, "warm_up_s": 2.0, "measure_s": 6.0, "tail_s": 0.3},
}
_LAB = Path(__file__).parents[4] / "orchestrator" / "tests" / "two_host_lab.py"
_EMULATED, _LABS = "emulated", "hosts behind sshd"


@dataclass(frozen=True)
class Campaign:
    """What a campaign took, and what its rigs add to E_A, in words."""

    took_s: float
    of_one: float
    effects: tuple[str, ...] = ()
    differing: int = 0


def section(*, quick: bool) -> Section:
    """Time from the command to its table, for the same blocks."""
    blocks = 2 if quick else 4
    found: dict[str, Campaign] = {}
    with tempfile.TemporaryDirectory() as name:
        workload = Path(name) / "waiting.yaml"
        workload.write_text(json.dumps({**_WORKLOAD, "blocks": blocks}))  # JSON is YAML, too
        subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)
        for testbed in (_EMULATED, _LABS):
            one_s = _took_s(testbed, 1, workload, Path(name) / f"{testbed[0]}1")
            two = Path(name) / f"{testbed[0]}2"
            two_s = _took_s(testbed, 2, workload, two)
            found[f"{testbed}, one rig"] = Campaign(one_s, 1.0)
            found[f"{testbed}, two rigs"] = Campaign(two_s, two_s / one_s, *_effects(two / "c"))
    return by_arm(
        f"{blocks} blocks that mostly wait, on one rig and on two of one machine",
        found,
        {
            "time s": lambda one: f"{one.took_s:.1f}",
            "of one rig's": lambda one: f"{one.of_one:.3f}",
            "what each rig adds to E_A, 95 % interval": lambda one: "; ".join(one.effects) or "-",
        },
        arms="rigs",
        note="From the command to its table, start of Dask and of every testbed included; each block of a "
        "campaign on rigs has a session of its own. Power is modelled, by frames; the hosts behind sshd are "
        "namespaces with emulated WT210.",
        verdicts=[verdict for label, one in found.items() for verdict in _verdicts(label, one)],
    )


def _verdicts(label: str, one: Campaign) -> list[Verdict]:
    if not one.effects:
        return []
    return [
        at_most(f"time of one rig's: {label}", one.of_one, MOST_OF_ONE, "{:.3f}"),
        at_most(f"rigs whose interval has no 0: {label}", one.differing, 0, "{:.0f}"),
    ]


def _effects(campaign: Path) -> tuple[tuple[str, ...], int]:
    """What each rig adds to the client's E_A in words, and how many intervals lack 0."""
    with (campaign / "tables" / "rig_effects.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["node"] == "client"]
    bounds = [(row["rig"], float(row["effect_ci95_low"]), float(row["effect_ci95_high"])) for row in rows]
    said = tuple(f"{rig} {low:.2f} to {high:.2f} %" for rig, low, high in bounds)
    return said, sum(not low <= 0 <= high for _, low, high in bounds)


def _took_s(testbed: str, rigs: int, workload: Path, folder: Path) -> float:
    """Seconds that a campaign takes. Raises CalledProcessError when it fails."""
    folder.mkdir()
    argv = [sys.executable, "-m", "netjoule", "run", str(workload), "--seed", "1", "--out", str(folder / "c")]
    several = ["--rigs", str(rigs)] if rigs > 1 else []
    if testbed == _LABS:
        lab = [sys.executable, str(_LAB), str(folder), *several]
        argv = [*lab, *argv, "--no-verify", "--testbed", str(folder / "lab.yaml")]
    began_s = time.monotonic()
    subprocess.run([*argv, *several], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began_s
