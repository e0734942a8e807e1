# SPDX-License-Identifier: Apache-2.0
"""A campaign of seconds on the emulated testbed, as a person would run it: files and the command."""

import csv
import fcntl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TIMING = {"idle_s": 1.0, "settle_s": 0.2, "warm_up_s": 0.6, "measure_s": 1.5, "tail_s": 0.3}
SEED = 11  # of the instruments' errors too: every repetition of these tests draws the same ones
CONSTANT_METER: dict[str, Any] = {
    "meter_id": "constant",
    "node": "client",
    "adapter": "wt210",
    "resource": "emulated",
    "settings": {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.05},
    "device": {"model": "constant"},
}


@dataclass
class Inputs:
    """The files of a campaign, and its folder."""

    workload: Path
    topology: Path
    out: Path

    @property
    def run(self) -> list[str]:
        return ["run", str(self.workload), "--testbed", str(self.topology), "--out", str(self.out)]


def written(
    folder: Path, meters: list[dict[str, Any]], *, link: dict[str, Any] | None = None, **load: Any
) -> Inputs:
    """Workload (one cell and its floor, unless `load` says otherwise) and topology in `folder`."""
    topology = {
        "schema_version": 1,
        "name": "tiny",
        "kind": "emulated",
        "hosts": {
            "client": {"roles": ["client"], "test_addresses": {"ipv4": "10.77.0.2", "ipv6": "fd77::2"}},
            "access_point": {"roles": ["access_point"]},
            "server": {"roles": ["server"], "test_addresses": {"ipv4": "10.77.0.1", "ipv6": "fd77::1"}},
        },
        "link": {"preset": "ideal-216", "seed": 3} | (link or {}),
        "meters": meters,
    }
    workload = {
        "schema_version": 1,
        "name": "tiny",
        "transports": ["udp", "null"],
        "payload_bytes": [1440],
        "offered_rate_mbps": [10],
        "blocks": 1,
        "timing": TIMING,
        "limits": {"max_attempts": 10},  # a busy host may spoil some
    }
    files = Inputs(folder / "workload.yaml", folder / "topology.yaml", folder / "campaign")
    files.workload.write_text(yaml.safe_dump(workload | load))
    files.topology.write_text(yaml.safe_dump(topology))
    return files


def netjoule(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    return subprocess.run(
        [*before, sys.executable, "-m", "netjoule", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def until_released(campaign: Path) -> None:
    """Wait for the end of a campaign's writer that was killed: the kernel takes its lock back then."""
    with (campaign / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
